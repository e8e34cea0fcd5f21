package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Serve is the process around a program that runs until it is stopped. It exits the process and never
// returns. After a signal the program has some patience to end by itself: a library may wait for a cluster that never
// answers. A second signal ends it at once.
func Serve(c *cobra.Command, patience time.Duration) {
	// The garbage collector must know the container's memory limit, so that it stays below it and the kernel
	// does not kill the process. Without a limit there is nothing to set. GOMEMLIMIT, if set, takes
	// precedence. A fifth is left for memory outside the heap and for a late collection.
	_, _ = memlimit.Set(memlimit.WithRatio(0.8), memlimit.WithProvider(memlimit.FromCgroup))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(patience, func() {
			fmt.Fprintf(os.Stderr, "error: the process has not ended within %s of the signal, and ends now\n", patience)
			os.Exit(1)
		})
	})
	code := Run(ctx, c, os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(code)
}

// Run is the whole program except the process around it. It returns the exit code. A stop by ctx is no error.
func Run(ctx context.Context, c *cobra.Command, args []string, out, errOut io.Writer) (code int) {
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(errOut)
	err := c.ExecuteContext(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return 0
	}
	fmt.Fprintln(errOut, "error: "+err.Error()+Remedy(err, "start it again (in a pod, the kubelet does that)"))
	return 1
}

// Reach asks an API server for its version: a server that does not answer is then reported as such, and not as what a
// library wanted of it. A server that refuses to tell its version has answered.
func Reach(ctx context.Context, config *rest.Config) error {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("the kubeconfig: %w", err)
	}
	err = c.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if err == nil || apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("asking the API server for its version: %w", err)
}

// inPod is the file in which a pod finds the namespace that it runs in.
const inPod = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Connect returns the cluster and the namespace of a kubeconfig, or, if kubeconfig is empty, those of the
// pod.
func Connect(kubeconfig string) (*rest.Config, string, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", fmt.Errorf("--kubeconfig is missing, and this process is not in a pod: %w", err)
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
