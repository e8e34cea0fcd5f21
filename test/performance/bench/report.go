package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/performance/bench/traffic"
)

// report is everything that a run has measured, and where.
type report struct {
	commit, kubernetes, date string
	cores                    int
	ordinals, large          int32 // of the small set and of the large one
	moves                    []*measured
	planned                  int // requests of a plan that is not carried out
}

// describe fills in where the figures come from.
func (r *report) describe(ctx context.Context, c *cluster.Cluster) error {
	var out bytes.Buffer
	git := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	git.Stdout, git.Stderr = &out, &out
	if err := git.Run(); err != nil {
		return fmt.Errorf("git describe: %w\n%s", err, out.Bytes())
	}
	client, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	r.commit, r.kubernetes = strings.TrimSpace(out.String()), version.GitVersion
	r.cores, r.date = runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly)
	return nil
}

// find returns a move, or an empty one, whose figures miss every goal.
func (r *report) find(w way) *measured {
	for _, m := range r.moves {
		if m.way == w {
			return m
		}
	}
	return &measured{counts: &counts{}}
}

// requests returns the requests of apply per ordinal, those of one kind or all.
func (m *measured) requests(kinds ...traffic.Kind) float64 {
	n := 0
	for _, k := range kinds {
		n += sum(number(m.apply, k))
	}
	return m.each(float64(n))
}

func (m *measured) each(n float64) float64 { return n / float64(m.ordinals) }

// publish prints the tables. It also writes the page and its picture if a file is named. The error
// names the goals that were missed.
func (r *report) publish(verbose bool, file string) error {
	tool, hand := r.find(way{ordinals: r.ordinals, window: 1}), r.find(way{ordinals: r.ordinals, window: 1, byHand: true})
	counted := r.find(way{ordinals: r.ordinals, window: 1, counted: true})
	fmt.Printf("\n%d ordinals with one volume each, between two clusters; pods start and stop at once.\n", r.ordinals)
	fmt.Printf("\n%s", overheadTable(tool.passages, hand.passages))
	fmt.Printf("\n%s", writeTable(counted.counts, r.ordinals))
	if verbose {
		blamed := blameOf(counted)
		fmt.Printf("\nOverhead by step, while counting:\n%s\n%s\n", aligned(blamed.rows()), blamed)
		fmt.Printf("\n%s", requestTable(counted.counts, r.ordinals))
	}
	fmt.Printf("\nOf each wave, median / p99 in milliseconds:\n%s", aligned(r.spanRows()))
	fmt.Printf("\nOf apply, per ordinal:\n%s", aligned(r.requestRows()))
	table, missed := goalTable(r.goals())
	fmt.Printf("\n%s", table)
	if file == "" {
		return missed
	}
	picture := strings.TrimSuffix(file, filepath.Ext(file)) + ".svg"
	return errors.Join(missed,
		os.WriteFile(file, []byte(r.page(filepath.Base(picture))), 0o644),
		os.WriteFile(picture, []byte(r.picture()), 0o644))
}
