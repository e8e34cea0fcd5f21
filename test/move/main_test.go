// Package move_test runs the real stsmigrate binary against real control planes,
// with a witness beside every move.
package move_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/test/cluster"
	demo "github.com/stsmigrate/stsmigrate/test/demo/stage"
)

// Pods take their time, so that there is something to interrupt and to wait for.
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
	flag.Parse()
	log.SetLogger(zapr.NewLogger(zap.NewNop())) // or the client library complains that nobody has set one
	// The moves wait more than they compute, up to a point.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code, err := withBed(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withBed(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "stsmigrate-move-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if binary, err = demo.Build(ctx, dir, "stsmigrate"); err != nil {
		return 1, err
	}
	began := time.Now()
	bed, err = cluster.StartBed(ctx, "", cluster.Options{PodStart: podStart, PodStop: podStop, DetachDelay: detachDelay})
	if err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "two clusters ready in %s\n", time.Since(began).Round(100*time.Millisecond))
	defer func() { err = errors.Join(err, bed.Stop(ctx)) }()
	return m.Run(), nil
}
