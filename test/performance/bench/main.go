// Command bench measures what a move costs beyond the time that the pods themselves take to stop
// and to start: with stsmigrate, and, in the same run and on the same clusters, with a shell script
// of kubectl commands. It also counts the requests of stsmigrate, and compares a large set with a
// small one, one cluster with two, and waves of three ordinals with waves of one. It fails when a goal
// is missed: its goals in seconds are for a quiet machine with two cores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

func main() {
	ordinals := flag.Int("ordinals", 20, "how many ordinals to move")
	large := flag.Int("large", 200, "how many ordinals the large set has")
	results := flag.String("results", "", "also write a page to this file, and a picture beside it")
	verbose := flag.Bool("v", false, "also print where the time goes, step by step")
	flag.Parse()
	fixture.Main("bench", func(ctx context.Context) error {
		if *large <= *ordinals || *ordinals < 4 {
			return fmt.Errorf("-ordinals is %d and -large is %d: expected at least 4, and more than -ordinals", *ordinals, *large)
		}
		return run(ctx, int32(*ordinals), int32(*large), *verbose, *results)
	})
}

// bench holds the programs and clusters that every run uses.
type bench struct {
	dir, kubeconfig, stsmigrate, kubectl string
	bed                                  *cluster.Bed
}

// heartbeat is how often a real kubelet looks whether the status of its node has changed. Its default is to write a
// status that has not changed only every five minutes.
const heartbeat = 10 * time.Second

func run(ctx context.Context, ordinals, large int32, verbose bool, results string) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	fmt.Println("Building stsmigrate ...")
	if b.stsmigrate, err = fixture.Build(ctx, dir, "stsmigrate"); err != nil {
		return err
	}
	if b.kubectl, err = cluster.Program(ctx, "kubectl"); err != nil {
		return err
	}
	fmt.Println("Starting two clusters, east and west ...")
	if b.bed, err = cluster.StartBed(ctx, filepath.Join(dir, "bed"), cluster.Options{Heartbeat: heartbeat}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.bed.Stop(context.WithoutCancel(ctx))) }()
	if err := fixture.Kubeconfig(b.kubeconfig, b.bed.East, b.bed.West); err != nil {
		return err
	}
	r := &report{ordinals: ordinals, large: large}
	if err := r.describe(ctx, b.bed.East); err != nil {
		return err
	}
	if err := b.moves(ctx, r); err != nil {
		return err
	}
	return r.publish(verbose, results)
}

// moves makes all moves, and one plan that is not carried out.
func (b *bench) moves(ctx context.Context, r *report) (err error) {
	for _, w := range ways(r.ordinals, r.large) {
		if w.ordinals == r.large && r.planned == 0 {
			if r.planned, err = b.planned(ctx); err != nil {
				return err
			}
		}
		m, err := b.measure(ctx, w)
		if err != nil {
			return fmt.Errorf("moving %s: %w", w, err)
		}
		r.moves = append(r.moves, m)
	}
	return nil
}

// measure moves a set in namespaces of its own and times every wave.
func (b *bench) measure(ctx context.Context, w way) (*measured, error) {
	fmt.Printf("%s: starting the set ...", w)
	if err := b.install(ctx, w); err != nil {
		fmt.Println()
		return nil, err
	}
	eyes, err := b.watch(ctx, w)
	if err != nil {
		fmt.Println()
		return nil, err
	}
	fmt.Print(" moving it ...")
	start := time.Now()
	m, err := b.move(ctx, w)
	fmt.Printf(" %.1f s\n", time.Since(start).Seconds())
	if err != nil {
		return nil, err
	}
	m.passages, err = eyes.stop(ctx, m.lines)
	return m, err
}

// install creates the set, and the namespace to which it moves.
func (b *bench) install(ctx context.Context, w way) error {
	if err := fixture.Namespace(ctx, w.set().Namespace, b.bed.East); err != nil {
		return err
	}
	if err := fixture.Namespace(ctx, w.arrived().Namespace, b.destination(w)); err != nil {
		return err
	}
	return w.set().Install(ctx, b.bed.East.Config())
}

// move moves the set in the given way.
func (b *bench) move(ctx context.Context, w way) (m *measured, err error) {
	m = &measured{way: w}
	switch {
	case w.byHand:
		m.lines, err = b.byHand(ctx, w.set())
	case w.counted:
		m.counts, m.lines, err = b.count(ctx, w)
	default:
		if err = b.plan(ctx, b.kubeconfig, w); err == nil {
			m.lines, err = timed(b.apply(ctx, b.kubeconfig, w))
		}
	}
	return m, err
}
