// Command orchestrator carries out the plans that are put into its namespace, between its own
// cluster and those whose kubeconfigs it finds there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/orchestrator/hub"
)

var version = "devel" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	c := command()
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(errOut)
	err := c.ExecuteContext(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return 0
	}
	fmt.Fprintln(errOut, "error: "+err.Error())
	return 1
}

// flags are what the command line says.
type flags struct {
	hub.Options
	kubeconfig string
}

func command() *cobra.Command {
	var f flags
	c := &cobra.Command{
		Use: "orchestrator", Short: "Carry out the plans of a namespace, for as long as this runs",
		Long: `Carry out the plans of a namespace, for as long as this runs.

"stsmigrate apply --detach" puts a plan there. The clusters of its two sides are this one, or
those whose kubeconfigs are in Secrets of the namespace with the label stsmigrate.dev/cluster.
Several of these processes share the plans and take over from one another.`,
		Version: version, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	s := c.Flags()
	s.SortFlags = false
	s.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig of its own cluster; without it, that of the pod's service account")
	s.StringVar(&f.Namespace, "namespace", "", "where plans and Secrets of clusters are (default: that of the kubeconfig or of the pod)")
	s.DurationVar(&f.StepTimeout, "step-timeout", 10*time.Minute, "how long one step may wait before its plan is held")
	s.Float32Var(&f.Limits.QPS, "cluster-qps", 50, "requests per second to one cluster, of all plans together")
	s.IntVar(&f.Limits.Burst, "cluster-burst", 100, "requests at once before that limit holds")
	s.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8443", "host:port of the metrics, or 0 for none")
	s.BoolVar(&f.SecureMetrics, "metrics-secure", true, "serve metrics by TLS, to those who may get the path /metrics")
	s.StringVar(&f.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz, or 0 for none")
	return c
}

func (f *flags) run(ctx context.Context) error {
	switch {
	case f.Limits.QPS <= 0 || f.Limits.Burst < 1:
		return fmt.Errorf("--cluster-qps is %v and --cluster-burst %d: expected more than 0, and 1 or more", f.Limits.QPS, f.Limits.Burst)
	case f.StepTimeout <= 0:
		return fmt.Errorf("--step-timeout is %s: expected more than 0", f.StepTimeout)
	}
	config, namespace, err := connect(f.kubeconfig)
	if err != nil {
		return err
	}
	if f.Namespace == "" {
		f.Namespace = namespace
	}
	f.Now, f.Agent = time.Now, "stsmigrate-orchestrator/"+version
	config.UserAgent, config.QPS = f.Agent, -1 // plans of its own cluster go by the limits of a cluster
	logger, err := zap.NewProduction()
	if err != nil {
		return err
	}
	log.SetLogger(zapr.NewLogger(logger))
	klog.SetLogger(zapr.NewLogger(logger))
	return hub.Run(ctx, config, f.Options)
}

// inPod is where a pod finds the namespace that it runs in.
const inPod = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// connect gives the cluster of a kubeconfig, or, without one, that of the pod.
func connect(kubeconfig string) (*rest.Config, string, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", fmt.Errorf("there is no --kubeconfig, and this is no pod: %w", err)
		}
		namespace, err := os.ReadFile(inPod)
		return config, string(namespace), err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	config, err := file.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	namespace, _, err := file.Namespace()
	return config, namespace, err
}
