package cluster_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// childFolder is the environment variable that makes this test binary start one cluster in the
// named folder and then wait to be killed.
const childFolder = "STSMIGRATE_TEST_CHILD"

var bed *cluster.Bed

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		child(dir)
	}
	os.Exit(withBed(m))
}

func withBed(m *testing.M) int {
	// There is no signal handling: an interrupt ends this process and with it the bed.
	ctx := context.Background()
	start := time.Now()
	var err error
	if bed, err = cluster.StartBed(ctx, "", cluster.Options{}); err != nil {
		return complain(err)
	}
	fmt.Fprintf(os.Stderr, "two clusters ready in %s\n", time.Since(start).Round(100*time.Millisecond))
	code := m.Run()
	if err := bed.Stop(ctx); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func child(dir string) {
	// The name is already in use, on purpose: names need not be unique.
	c, err := cluster.Start(context.Background(), "east", cluster.Options{Dir: filepath.Join(dir, "east")})
	if err != nil {
		os.Exit(complain(err))
	}
	fmt.Println(c.Dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	os.Exit(0)
}

func clientOf(t *testing.T, c *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits until want returns true without an error. It fails the test with the last error.
func eventually(t *testing.T, what string, want func(ctx context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true,
		func(ctx context.Context) (ok bool, _ error) {
			ok, last = want(ctx)
			return ok && last == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: not in time (last error: %v)", what, last)
	}
}
