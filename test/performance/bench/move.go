package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

//go:embed by-hand.sh
var script string

// line is one line of output and its time of arrival.
type line struct {
	at   time.Time
	text string
}

// clock is a writer that records when each line arrives.
type clock struct {
	lines []line
	rest  []byte
}

func (c *clock) Write(p []byte) (int, error) {
	now := time.Now()
	c.rest = append(c.rest, p...)
	for {
		text, rest, complete := bytes.Cut(c.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		c.lines = append(c.lines, line{now, string(text)})
		c.rest = rest
	}
}

// timed runs a command and returns its lines of output.
func timed(cmd *exec.Cmd) ([]line, error) {
	var out clock
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, complaints.Bytes())
	}
	return out.lines, nil
}

// withTool moves the set with stsmigrate.
func (b *bench) withTool(ctx context.Context, set fixture.Set) ([]line, error) {
	if err := b.plan(ctx, b.kubeconfig, set); err != nil {
		return nil, err
	}
	return timed(b.apply(ctx, b.kubeconfig, set))
}

// plan plans the move without a bridge for names, as the script does: a bridge costs two more
// writes per ordinal.
func (b *bench) plan(ctx context.Context, kubeconfig string, set fixture.Set) error {
	_, err := timed(fixture.Command(ctx, kubeconfig, b.dir, b.stsmigrate, "plan", fixture.Name,
		"-n", set.Namespace, "--context", b.bed.East.Name, "--to-context", b.bed.West.Name, "--names", "none", "--out", set.Namespace+".yaml"))
	return err
}

func (b *bench) apply(ctx context.Context, kubeconfig string, set fixture.Set) *exec.Cmd {
	return fixture.Command(ctx, kubeconfig, b.dir, b.stsmigrate, "apply", set.Namespace+".yaml", "--yes")
}

// byHand moves the set with the script.
func (b *bench) byHand(ctx context.Context, set fixture.Set) ([]line, error) {
	path, manifests := filepath.Join(b.dir, "by-hand.sh"), filepath.Join(b.dir, "manifests.json")
	objects, err := set.Manifests()
	if err != nil {
		return nil, err
	}
	for file, content := range map[string][]byte{path: []byte(script), manifests: objects} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, err
		}
	}
	cmd := fixture.Command(ctx, b.kubeconfig, b.dir, "bash", path, b.kubectl, set.Namespace, strconv.Itoa(int(set.Replicas)), manifests)
	cmd.Env = append(cmd.Env, "KUBECACHEDIR="+filepath.Join(b.dir, "kubectl-cache"))
	return timed(cmd)
}

// watched is a move that the witness observes.
type watched struct {
	*bench
	set    fixture.Set
	before map[fixture.Disk]string
	eyes   *witness.Witness
}

// measured is a move that has been timed.
type measured struct {
	lines    []line
	passages []passage
}

func (b *bench) watch(ctx context.Context, set fixture.Set) (*watched, error) {
	before, err := set.Handles(ctx, b.bed.East.Config())
	if err != nil {
		return nil, err
	}
	side := func(c *cluster.Cluster) witness.Side {
		return witness.Side{Config: c.Config(), Namespace: set.Namespace}
	}
	eyes, err := witness.Watch(ctx, fixture.Name, 1, side(b.bed.East), side(b.bed.West))
	return &watched{bench: b, set: set, before: before, eyes: eyes}, err
}

// stop ends the witness's watch. It checks that the set has arrived with its volumes, one ordinal
// at a time and without a violation.
func (w *watched) stop(ctx context.Context, lines []line) (*measured, error) {
	report := w.eyes.Stop()
	if len(report.Violations) > 0 {
		return nil, fmt.Errorf("moving %s: the witness saw %q", w.set.Namespace, report.Violations)
	}
	if report.MaxUnavailable > 1 {
		return nil, fmt.Errorf("moving %s: %d ordinals were unavailable at once", w.set.Namespace, report.MaxUnavailable)
	}
	after, err := w.set.Handles(ctx, w.bed.West.Config())
	if err != nil {
		return nil, err
	}
	if len(after) != int(w.set.Replicas) || !maps.Equal(w.before, after) {
		return nil, fmt.Errorf("moving %s: the volumes are not the same: %v before, %v after", w.set.Namespace, w.before, after)
	}
	destroyed, err := w.bed.Backend.Destroyed()
	if err != nil || len(destroyed) > 0 {
		return nil, fmt.Errorf("moving %s: destroyed volumes: %v (error: %w)", w.set.Namespace, destroyed, err)
	}
	start, err := startOf(lines, w.set.Replicas-1)
	if err != nil {
		return nil, fmt.Errorf("moving %s: %w", w.set.Namespace, err)
	}
	passages, err := passagesOf(start, report.Spans, w.set.Replicas)
	if err != nil {
		return nil, fmt.Errorf("moving %s: %w", w.set.Namespace, err)
	}
	return &measured{lines, passages}, nil
}
