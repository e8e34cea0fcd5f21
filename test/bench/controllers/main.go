// Command controllers measures what it costs to take care of StatefulSets: by slicecontroller
// and, in the same run and on the same cluster, by the built-in controller of the same
// version of Kubernetes, in a process that does nothing else. Its aims are ratios; missing
// one is no failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/bench/traffic"
	"github.com/stsmigrate/stsmigrate/test/cluster"
	"github.com/stsmigrate/stsmigrate/test/controller/rig"
	"github.com/stsmigrate/stsmigrate/test/demo/stage"
)

func main() {
	pods := flag.Int("pods", 500, "how many pods the large set has")
	sets := flag.Int("sets", 200, "how many sets are made at once, of three pods each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := run(ctx, int32(*pods), *sets); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; everything has been cleaned up")
		}
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

// bench is what every run needs.
type bench struct {
	client.WithWatch
	requests   *traffic.Counter
	kubeconfig string // by way of requests
}

// contestant is a controller that can be started.
type contestant struct {
	name    string
	program string
	args    []string
}

// The limits on requests, so high that nobody feels them.
const qps, burst = 2000, 4000

func run(ctx context.Context, pods int32, sets int) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("Building slicecontroller ...")
	ours, err := stage.Build(ctx, dir, "slicecontroller")
	if err != nil {
		return err
	}
	theirs, err := cluster.Program(ctx, "kube-controller-manager")
	if err != nil {
		return err
	}
	fmt.Println("Starting two clusters, east and west; the controllers take turns in the west ...")
	bed, err := cluster.StartBed(ctx, filepath.Join(dir, "bed"), cluster.Options{StopByUID: true, Unmanaged: []string{"west"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop(context.WithoutCancel(ctx))) }()
	b := &bench{kubeconfig: filepath.Join(dir, "kubeconfig")}
	if b.WithWatch, err = rig.Client(bed.West); err != nil {
		return err
	}
	if b.requests, err = traffic.Listen(ctx, b.kubeconfig, bed.West); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.requests.Close()) }()
	limits := []string{"--kubeconfig", b.kubeconfig, "--leader-elect=false", "--kube-api-qps", strconv.Itoa(qps), "--kube-api-burst", strconv.Itoa(burst)}
	// What is cold for the first is warm for the second.
	contestants := []contestant{
		{"slicecontroller", ours, append([]string{"--manage=" + rig.Native, "--guard=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, limits...)},
		{"built-in", theirs, append([]string{"--controllers=statefulset-controller", "--secure-port=0"}, limits...)},
	}
	return b.compare(ctx, contestants, scenarios(pods, sets))
}

// compare lets either play every scenario, and prints what it took.
func (b *bench) compare(ctx context.Context, contestants []contestant, all []scenario) error {
	var table []row
	for k, s := range all {
		var costs [2][]cost
		for c, who := range contestants {
			fmt.Printf("%s: %s ...", s.name, who.name)
			var err error
			if costs[c], err = b.play(ctx, who, s, fmt.Sprintf("bench-%d-%d", k, c)); err != nil {
				fmt.Println()
				return fmt.Errorf("%s: %s: %w", s.name, who.name, err)
			}
			fmt.Println()
		}
		for k, act := range s.acts {
			table = append(table, row{act.name, act.pods, costs[0][k], costs[1][k]})
		}
	}
	fmt.Printf("\n%s", costTable(table))
	return nil
}

// begin starts a controller.
func (c contestant) begin() (*exec.Cmd, error) {
	cmd := exec.Command(c.program, c.args...) //nolint:noctx // it is ended by end
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}
