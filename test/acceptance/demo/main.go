// Command demo moves a StatefulSet of five replicas between two local clusters. A witness observes
// the move independently, and the demo checks that nothing was lost. With -kill the process that
// moves the set is killed ten times during the move.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

const (
	// budget is d: how many ordinals may be unavailable at once.
	budget = 1
	// pace is how long a pod takes to start and to stop, slow enough to follow.
	pace = time.Second
	// kills is the number of kills with -kill.
	kills = 10
)

func main() {
	kill := flag.Bool("kill", false, fmt.Sprintf("kill apply with SIGKILL at %d random moments", kills))
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses the moments")
	report := flag.String("report", filepath.Join(os.TempDir(), "stsmigrate-demo.html"), "where the report of the move is written")
	picture := flag.String("picture", "", "where the picture of the move is written; empty for nowhere")
	flag.Parse()
	var moments []time.Duration
	if *kill {
		fmt.Printf("The moments of the kills of apply are chosen by -seed %d.\n", *seed)
		moments = choose(rand.New(rand.NewPCG(*seed, 0)))
	}
	for _, file := range []*string{report, picture} {
		if *file != "" {
			*file, _ = filepath.Abs(*file) // the program runs in a folder of its own
		}
	}
	fixture.Main("demo", func(ctx context.Context) error { return run(ctx, moments, *report, *picture) })
}

// show is one run of the demo.
type show struct {
	*terminal
	dir, kubeconfig, binary string
	bed                     *cluster.Bed
	set                     fixture.Set
	report, picture         string // files
}

func run(ctx context.Context, moments []time.Duration, report, picture string) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &show{
		terminal: &terminal{out: os.Stdout}, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"),
		set:    fixture.Set{Namespace: "shop", Replicas: 5, Claims: []string{"data", "logs"}},
		report: report, picture: picture,
	}
	s.say("Building stsmigrate ...")
	if s.binary, err = fixture.Build(ctx, dir, "stsmigrate"); err != nil {
		return err
	}
	s.say("Starting two clusters, east and west ...")
	o := cluster.Options{PodStart: pace, PodStop: pace}
	if len(moments) > 0 { // the move must outlast the kills
		o.PodStart, o.PodStop = 2*pace, 2*pace
	}
	if s.bed, err = cluster.StartBed(ctx, filepath.Join(dir, "bed"), o); err != nil {
		return err
	}
	defer func() {
		s.say("\nRemoving the clusters ...")
		err = errors.Join(err, s.bed.Stop(context.WithoutCancel(ctx)))
	}()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	f, err := s.play(ctx, moments)
	if err != nil {
		return err
	}
	s.say("\n%s", f)
	if err := f.verdict(); err != nil {
		return err
	}
	s.say("\nThe report of the move: %s (open it in a browser)", s.report)
	return nil
}

// prepare creates the initial state: the set runs in east, and west has only the namespace.
func (s *show) prepare(ctx context.Context) error {
	if err := fixture.Kubeconfig(s.kubeconfig, s.bed.East, s.bed.West); err != nil {
		return err
	}
	s.say("Starting a set of %d with %d volumes each in east ...", s.set.Replicas, len(s.set.Claims))
	if err := fixture.Namespace(ctx, s.set.Namespace, s.bed.East, s.bed.West); err != nil {
		return err
	}
	return s.set.Install(ctx, s.bed.East.Config())
}

// play moves the set and returns the findings.
func (s *show) play(ctx context.Context, moments []time.Duration) (*findings, error) {
	before, err := s.set.Handles(ctx, s.bed.East.Config())
	if err != nil {
		return nil, err
	}
	eyes, err := witness.Watch(ctx, fixture.Name, 1, s.side(s.bed.East), s.side(s.bed.West))
	if err != nil {
		return nil, err
	}
	if err := s.run(ctx, "plan", fixture.Name, "-n", s.set.Namespace, "--context", "east", "--to-context", "west", "--out", "web.yaml"); err != nil {
		return nil, err
	}
	killed, err := s.move(ctx, moments)
	if err != nil {
		return nil, err
	}
	for _, verb := range []string{"status", "finalize"} {
		args := []string{verb, fixture.Name, "-n", s.set.Namespace, "--context", "west"}
		if verb == "finalize" {
			args = append(args, "--yes")
		}
		if err := s.run(ctx, args...); err != nil {
			return nil, err
		}
	}
	if err := s.draw(ctx); err != nil {
		return nil, err
	}
	f := &findings{
		set: s.set, before: before, report: eyes.Stop(),
		killed: killed, wanted: len(moments),
	}
	return f, s.lookAround(ctx, f)
}

// draw writes the report of the move, and its picture if that is wanted.
func (s *show) draw(ctx context.Context) error {
	args := []string{"report", fixture.Name, "-n", s.set.Namespace, "--context", "west", "--out"}
	if err := s.run(ctx, append(args, s.report)...); err != nil || s.picture == "" {
		return err
	}
	return s.run(ctx, append(args, s.picture, "--format", "svg")...)
}

func (s *show) side(c *cluster.Cluster) witness.Side {
	return witness.Side{Config: c.Config(), Namespace: s.set.Namespace}
}

// move runs apply, while the second terminal watches the pods. It returns how often apply was
// killed.
func (s *show) move(ctx context.Context, moments []time.Duration) (killed int, err error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	s.say("\nA second terminal watches the pods: %s.", legend)
	if err := watch(watching, s.set, func(text string) { s.line("watch", text) }, s.bed.East, s.bed.West); err != nil {
		return 0, err
	}
	apply := []string{"apply", "web.yaml", "--yes"}
	for _, moment := range moments {
		finished, err := s.runUntil(ctx, moment, apply...)
		if finished || err != nil {
			return killed, err
		}
		killed++
		s.say("\nKilled after %s (%d of %d). Once more:", moment, killed, len(moments))
	}
	return killed, s.run(ctx, apply...)
}

// run runs stsmigrate to its end. Its output is shown under the verb's name.
func (s *show) run(ctx context.Context, args ...string) error {
	_, err := s.runUntil(ctx, 0, args...)
	return err
}

// runUntil runs stsmigrate and kills it after moment, unless moment is 0. It reports whether the
// process ended by itself.
func (s *show) runUntil(ctx context.Context, moment time.Duration, args ...string) (finished bool, err error) {
	s.say("\n$ stsmigrate %s", strings.Join(args, " "))
	out := s.as(args[0])
	defer out.flush()
	cmd := fixture.Command(ctx, s.kubeconfig, s.dir, s.binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if moment > 0 {
		// The process may have ended before that moment.
		defer time.AfterFunc(moment, func() { _ = cmd.Process.Kill() }).Stop()
	}
	err = cmd.Wait()
	if moment > 0 && ctx.Err() == nil && wasKilled(cmd.ProcessState) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stsmigrate %s: %w", args[0], err)
	}
	return true, nil
}

func wasKilled(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// choose returns the moments of the kills, counted from the start of each process. They range from
// before the process's first request to after most of the move of an ordinal.
func choose(r *rand.Rand) []time.Duration {
	var out []time.Duration
	for range kills {
		out = append(out, time.Duration(100+r.IntN(3100))*time.Millisecond)
	}
	return out
}
