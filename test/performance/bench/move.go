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

// plan plans the move without a bridge for names and without placeholders, as the script does: a bridge costs two more
// writes per ordinal, and what placeholders cost and save is measured on kind.
func (b *bench) plan(ctx context.Context, kubeconfig string, w way) error {
	namespace, size := w.namespace(), strconv.Itoa(int(w.window))
	args := []string{
		"plan", fixture.Name, "-n", namespace, "--context", b.bed.East.Name, "--names", "none", "--placeholder", "off",
		"--window", size, "--max-unavailable", size, "--out", namespace + ".yaml",
	}
	if w.within {
		args = append(args, "--to-namespace", w.arrived().Namespace)
	} else {
		args = append(args, "--to-context", b.bed.West.Name)
	}
	_, err := timed(fixture.Command(ctx, kubeconfig, b.dir, b.stsmigrate, args...))
	return err
}

func (b *bench) apply(ctx context.Context, kubeconfig string, w way) *exec.Cmd {
	return fixture.Command(ctx, kubeconfig, b.dir, b.stsmigrate, "apply", w.namespace()+".yaml", "--yes")
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
	way
	before map[fixture.Disk]string
	eyes   *witness.Witness
}

// measured is a move that has been timed.
type measured struct {
	way
	lines    []line
	passages []passage // of the waves
	*counts            // nil unless the requests were counted
}

func (b *bench) watch(ctx context.Context, w way) (*watched, error) {
	before, err := w.set().Handles(ctx, b.bed.East.Config())
	if err != nil {
		return nil, err
	}
	eyes, err := witness.Watch(ctx, fixture.Name, int(w.window),
		witness.Side{Config: b.bed.East.Config(), Namespace: w.set().Namespace},
		witness.Side{Config: b.destination(w).Config(), Namespace: w.arrived().Namespace})
	return &watched{bench: b, way: w, before: before, eyes: eyes}, err
}

// stop ends the witness's watch. It checks that the set has arrived with its volumes, one wave at a
// time and without a violation, and returns the passages of the waves.
func (w *watched) stop(ctx context.Context, lines []line) ([]passage, error) {
	report := w.eyes.Stop()
	if len(report.Violations) > 0 {
		return nil, fmt.Errorf("the witness saw %q", report.Violations)
	}
	if report.MaxUnavailable > int(w.window) {
		return nil, fmt.Errorf("%d ordinals were unavailable at once", report.MaxUnavailable)
	}
	after, err := w.arrived().Handles(ctx, w.destination(w.way).Config())
	if err != nil {
		return nil, err
	}
	if len(after) != int(w.ordinals) || !maps.Equal(w.before, after) {
		return nil, fmt.Errorf("the volumes are not the same: %v before, %v after", w.before, after)
	}
	destroyed, err := w.bed.Backend.Destroyed()
	if err != nil || len(destroyed) > 0 {
		return nil, fmt.Errorf("destroyed volumes: %v (error: %w)", destroyed, err)
	}
	start, err := startOf(lines, waveBelow(w.ordinals, w.window).String())
	if err != nil {
		return nil, err
	}
	return passagesOf(start, report.Spans, w.ordinals, w.window)
}
