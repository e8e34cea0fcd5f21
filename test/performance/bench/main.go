// Command bench measures what a move costs beyond the time that the pods themselves take to stop
// and to start: with stsmigrate, and, in the same run and on the same clusters, with a shell script
// of kubectl commands. It also counts the requests of stsmigrate. It fails when a goal is missed: its
// goals in seconds are for a quiet machine with two cores.
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
	verbose := flag.Bool("v", false, "also print where the time goes, step by step")
	flag.Parse()
	fixture.Main("bench", func(ctx context.Context) error { return run(ctx, int32(*ordinals), *verbose) })
}

// bench holds the programs and clusters that every run uses.
type bench struct {
	dir, kubeconfig, stsmigrate, kubectl string
	bed                                  *cluster.Bed
	ordinals                             int32
}

func run(ctx context.Context, ordinals int32, verbose bool) (err error) {
	dir, err := os.MkdirTemp("", "stsmigrate-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), ordinals: ordinals}
	fmt.Println("Building stsmigrate ...")
	if b.stsmigrate, err = fixture.Build(ctx, dir, "stsmigrate"); err != nil {
		return err
	}
	if b.kubectl, err = cluster.Program(ctx, "kubectl"); err != nil {
		return err
	}
	fmt.Println("Starting two clusters, east and west ...")
	if b.bed, err = cluster.StartBed(ctx, filepath.Join(dir, "bed"), cluster.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.bed.Stop(context.WithoutCancel(ctx))) }()
	if err := fixture.Kubeconfig(b.kubeconfig, b.bed.East, b.bed.West); err != nil {
		return err
	}
	return b.compare(ctx, verbose)
}

// compare makes the three moves and prints their costs. The order favours the script: the first
// move finds cold caches, and the second finds warm ones.
func (b *bench) compare(ctx context.Context, verbose bool) error {
	tool, err := b.measure(ctx, "with-stsmigrate", b.withTool)
	if err != nil {
		return err
	}
	hand, err := b.measure(ctx, "by-hand", b.byHand)
	if err != nil {
		return err
	}
	counted, err := b.count(ctx, "counted")
	if err != nil {
		return err
	}
	fmt.Printf("\n%d ordinals with one volume each, between two clusters; pods start and stop at once.\n", b.ordinals)
	fmt.Printf("\n%s", overheadTable(tool.passages, hand.passages))
	fmt.Printf("\n%s", writeTable(counted, b.ordinals))
	if verbose {
		fmt.Printf("\n%s", stepTable(counted.passages, counted.lines, counted.apply))
		fmt.Printf("\n%s", requestTable(counted, b.ordinals))
	}
	table, missed := goalTable(goals(tool.passages, hand.passages, counted, b.ordinals))
	fmt.Printf("\n%s", table)
	return missed
}

// measure moves a set in a namespace of its own and times every ordinal.
func (b *bench) measure(ctx context.Context, namespace string, move func(context.Context, fixture.Set) ([]line, error)) (*measured, error) {
	set := fixture.Set{Namespace: namespace, Replicas: b.ordinals, Claims: []string{"data"}}
	fmt.Printf("Starting a set of %d in namespace %s ...\n", set.Replicas, namespace)
	if err := fixture.Namespace(ctx, namespace, b.bed.East, b.bed.West); err != nil {
		return nil, err
	}
	if err := set.Install(ctx, b.bed.East.Config()); err != nil {
		return nil, err
	}
	w, err := b.watch(ctx, set)
	if err != nil {
		return nil, err
	}
	fmt.Printf("Moving it %s ...", namespace)
	start := time.Now()
	lines, err := move(ctx, set)
	if err != nil {
		fmt.Println()
		return nil, fmt.Errorf("moving %s: %w", namespace, err)
	}
	fmt.Printf(" %.1f s\n", time.Since(start).Seconds())
	return w.stop(ctx, lines)
}
