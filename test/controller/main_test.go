// Package controller_test runs the slice controller for the StatefulSets of a real control plane, beside
// the built-in controller in another one.
package controller_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

var (
	// bed has the built-in controller in the east, and ours in the west.
	bed *cluster.Bed
	// binary is slicecontroller, and mover stsmigrate.
	binary, mover string
	// eastDir is the directory for the files of the slice controller in the east.
	eastDir string
)

// podStart and podStop leave a controller enough time to act in between.
const podStart, podStop = 30 * time.Millisecond, 30 * time.Millisecond

func TestMain(m *testing.M) {
	parallel := 8
	if os.Getenv("SOAK") != "" {
		parallel = 100
	}
	fixture.Tests("controller", parallel, func(ctx context.Context, dir string) (int, error) { return withBed(ctx, dir, m) })
}

func withBed(ctx context.Context, dir string, m *testing.M) (code int, err error) {
	eastDir = filepath.Join(dir, "east")
	if err := os.Mkdir(eastDir, 0o755); err != nil {
		return 1, err
	}
	for program, path := range map[string]*string{"slicecontroller": &binary, "stsmigrate": &mover} {
		if *path, err = fixture.Build(ctx, dir, program); err != nil {
			return 1, err
		}
	}
	bed, err = cluster.StartBed(ctx, "", cluster.Options{PodStart: podStart, PodStop: podStop, StopByUID: true, Unmanaged: []string{"west"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, bed.Stop(ctx)) }()
	installed, err := slicerig.Install(ctx, bed.West, dir)
	if err != nil {
		return 1, err
	}
	var running []*slicerig.Process
	for kind, flags := range map[string][]string{slicerig.Native: nil, slicerig.Slice: installed.Webhook} {
		p, err := slicerig.Begin(binary, installed.Kubeconfig, kind, flags...)
		if err != nil {
			return 1, err
		}
		running = append(running, p)
	}
	if err := installed.Answers(ctx); err != nil {
		for _, p := range running {
			err = errors.Join(err, p.Stop(), errors.New(p.Output()))
		}
		return 1, fmt.Errorf("the webhook does not answer: %w", err)
	}
	code = m.Run()
	for _, p := range running {
		err = errors.Join(err, p.Stop())
	}
	return code, err
}

// connect returns a live client of a cluster.
func connect(t *testing.T, c *cluster.Cluster) client.WithWatch {
	t.Helper()
	out, err := slicerig.Client(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
