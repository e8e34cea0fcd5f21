// Package move_test runs the real stsmigrate binary against real control planes, with a witness beside every
// move.
package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// Pods take some time, so that there is something to interrupt and to wait for.
const (
	podStart    = 50 * time.Millisecond
	podStop     = 50 * time.Millisecond
	detachDelay = 300 * time.Millisecond
)

var (
	bed    *cluster.Bed
	binary string
)

func TestMain(m *testing.M) {
	// The moves wait more than they compute, up to a point.
	fixture.Tests("move", 4, func(ctx context.Context, dir string) (int, error) { return withBed(ctx, dir, m) })
}

func withBed(ctx context.Context, dir string, m *testing.M) (code int, err error) {
	if binary, err = fixture.Build(ctx, dir, "stsmigrate"); err != nil {
		return 1, err
	}
	began := time.Now()
	bed, err = cluster.StartBed(ctx, "", cluster.Options{PodStart: podStart, PodStop: podStop, DetachDelay: detachDelay})
	if err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "two clusters ready in %s\n", time.Since(began).Round(100*time.Millisecond))
	defer func() { err = errors.Join(err, bed.Stop(ctx)) }()
	if code = m.Run(); code != 0 {
		fmt.Printf("MOVE_DAY=%d runs the same modes again.\n", day)
	}
	return code, nil
}
