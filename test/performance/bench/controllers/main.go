// Command controllers measures the cost of managing StatefulSets with slicecontroller and, in the
// same run and on the same cluster, with the built-in controller of the same Kubernetes version, in
// a process that does nothing else. It measures slicecontroller twice: with StatefulSets, and with
// StatefulSetSlices, for which the built-in controller gets StatefulSets. Its aims are ratios; a
// missed aim is a failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

func main() {
	pods := flag.Int("pods", 500, "how many pods the large set has")
	sets := flag.Int("sets", 200, "how many sets are created at once, with three pods each")
	rounds := flag.Int("rounds", 3, "how many rounds each controller runs; the medians are shown")
	only := flag.String("only", "", "run only the scenarios whose names contain this text")
	profiles := flag.String("profiles", "", "keep the profiles of slicecontroller's CPU time in this folder, and print the kinds of requests")
	flag.Parse()
	fixture.Main("bench", func(ctx context.Context) error {
		return run(ctx, *only, *profiles, int32(*pods), *sets, *rounds)
	})
}

// bench holds what every run uses.
type bench struct {
	client.WithWatch
	requests   *traffic.Counter
	kubeconfig string // its requests go through the counter
	rounds     int
	kinds      bool // the kinds of requests are printed
}

// contestant is a controller that can be started.
type contestant struct {
	name    string
	program string
	args    []string
	// slices is true if the sets are StatefulSetSlices.
	slices bool
	// profiles is the folder of its profiles, "" for none.
	profiles string
}

// The limits on requests, so high that no controller reaches them.
const qps, burst = 2000, 4000

func run(ctx context.Context, only, profiles string, pods int32, sets, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("Building slicecontroller ...")
	ours, err := build(ctx, dir, profiles != "")
	if err != nil {
		return err
	}
	theirs, err := cluster.Program(ctx, "kube-controller-manager")
	if err != nil {
		return err
	}
	fmt.Println("Starting a cluster, in which the controllers take turns ...")
	const name = "west"
	at, err := cluster.Start(ctx, name, cluster.Options{StopByUID: true, Unmanaged: []string{name}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Stop(context.WithoutCancel(ctx))) }()
	stop, err := furnish(ctx, at, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	b := &bench{kubeconfig: filepath.Join(dir, "kubeconfig"), rounds: rounds, kinds: profiles != ""}
	if b.WithWatch, err = slicerig.Client(at); err != nil {
		return err
	}
	if err := slicerig.Define(ctx, b.WithWatch); err != nil {
		return err
	}
	if b.requests, err = traffic.Listen(ctx, b.kubeconfig, at); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.requests.Close()) }()
	limits := []string{"--kubeconfig", b.kubeconfig, "--leader-elect=false", "--kube-api-qps", strconv.Itoa(qps), "--kube-api-burst", strconv.Itoa(burst)}
	quiet := append([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}, limits...)
	contestants := []contestant{
		{"built-in", theirs, append([]string{"--controllers=statefulset-controller", "--secure-port=0"}, limits...), false, ""},
		{"native", ours, append([]string{"--manage=" + slicerig.Native, "--guard=false"}, quiet...), false, profiles},
		{"slices", ours, append([]string{"--manage=" + slicerig.Slice}, quiet...), true, profiles},
	}
	played := slices.DeleteFunc(scenarios(pods, sets), func(s scenario) bool { return !strings.Contains(s.name, only) })
	return b.compare(ctx, contestants, played)
}

// furnish installs the storage, then serves volumes and ends deleted pods until stop is called.
func furnish(ctx context.Context, at *cluster.Cluster, dir string) (stop func() error, err error) {
	backend, err := cluster.OpenBackend(filepath.Join(dir, "backend.jsonl"))
	if err != nil {
		return nil, err
	}
	if err := cluster.InstallStorage(ctx, at.Config()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var serving errgroup.Group
	serving.Go(func() error { return cluster.Serve(ctx, backend, 0, at) })
	serving.Go(func() error { return cluster.EndPods(ctx, at, 0) })
	return func() error { cancel(); return serving.Wait() }, nil
}

// compare runs every scenario with each contestant, prints the costs, and returns an error that
// names the missed aims. The first contestant is the one that the others are compared with.
func (b *bench) compare(ctx context.Context, contestants []contestant, all []scenario) error {
	var table []row
	for k, s := range all {
		costs := map[string][][]cost{} // by contestant, round and act
		for round := range b.rounds {
			order := slices.Clone(contestants)
			if round%2 == 1 { // the first contestant finds cold caches, the others find warm ones
				slices.Reverse(order)
			}
			for _, who := range order {
				if s.slicesOnly && who.name == "native" {
					continue
				}
				fmt.Printf("%s, round %d: %s\n", s.name, round+1, who.name)
				took, err := b.play(ctx, who, s, fmt.Sprintf("bench-%d-%d-%s", k, round, who.name))
				if err != nil {
					return fmt.Errorf("%s: %s: %w", s.name, who.name, err)
				}
				costs[who.name] = append(costs[who.name], took)
			}
		}
		for k, act := range s.acts {
			for _, who := range contestants[1:] {
				if rounds := costs[who.name]; rounds != nil {
					table = append(table, row{name: act.name, who: who.name, pods: act.pods, ours: median(rounds, k), theirs: median(costs[contestants[0].name], k), aim: aimOf(who)})
				}
			}
		}
	}
	text, missed := costTable(table)
	fmt.Printf("\n%s", text)
	if len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, ", "))
	}
	return nil
}

// begin starts a controller for a namespace.
func (c contestant) begin(namespace string) (*exec.Cmd, error) {
	cmd := exec.Command(c.program, c.args...) //nolint:noctx // it is ended by end
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if c.profiles != "" {
		var err error
		if cmd.Env, err = c.profile(namespace); err != nil {
			return nil, err
		}
	}
	return cmd, cmd.Start()
}

func (c contestant) end(cmd *exec.Cmd) {
	if c.profiles == "" {
		_ = cmd.Process.Kill()
	} else {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it writes its profile
	}
	_ = cmd.Wait() // ended by a signal
}
