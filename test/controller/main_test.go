// Package controller_test lets the slice controller take care of the StatefulSets of a
// real control plane, beside the built-in controller in another one.
package controller_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

var (
	// bed has the built-in controller in the east, and ours in the west.
	bed *cluster.Bed
	// binary is slicecontroller, and mover stsmigrate.
	binary, mover string
)

// podStart and podStop are long enough for a controller to act in between.
const podStart, podStop = 30 * time.Millisecond, 30 * time.Millisecond

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(zapr.NewLogger(zap.NewNop()))
	if err := flag.Set("test.parallel", "8"); err != nil {
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
	dir, err := os.MkdirTemp("", "stsmigrate-controller-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, mover = filepath.Join(dir, "slicecontroller"), filepath.Join(dir, "stsmigrate")
	for _, program := range []string{binary, mover} {
		out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/stsmigrate/stsmigrate/cmd/"+filepath.Base(program)).CombinedOutput()
		if err != nil {
			return 1, fmt.Errorf("building %s: %w\n%s", program, err, out)
		}
	}
	bed, err = cluster.StartBed(ctx, "", cluster.Options{PodStart: podStart, PodStop: podStop, StopByUID: true, Unmanaged: []string{"west"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, bed.Stop(ctx)) }()
	kubeconfig, err := install(ctx, bed.West, dir)
	if err != nil {
		return 1, err
	}
	var running []*process
	for _, kind := range []string{native, slice} {
		p, err := begin(kubeconfig, kind)
		if err != nil {
			return 1, err
		}
		running = append(running, p)
	}
	code = m.Run()
	for _, p := range running {
		err = errors.Join(err, p.stop())
	}
	return code, err
}

// The kinds of sets that the controller takes care of.
const native, slice = "apps/v1", "apps.stsmigrate.dev/v1alpha1"

// process is the slice controller at work.
type process struct {
	*exec.Cmd
	lock sync.Mutex
	said bytes.Buffer
	done chan error
}

func (p *process) Write(b []byte) (int, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.said.Write(b)
}

func (p *process) output() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.said.String()
}

// begin starts the slice controller for a kind of sets of a cluster.
func begin(kubeconfig, kind string, more ...string) (*process, error) {
	p := &process{done: make(chan error, 1)}
	args := []string{"--manage=" + kind, "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	p.Cmd = exec.Command(binary, append(args, more...)...) //nolint:noctx // it is ended by stop
	p.Stdout, p.Stderr = p, p
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.Wait() }()
	return p, nil
}

// stop ends it as a cluster would, and says what it said if it does not end well.
func (p *process) stop() error {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.done:
		if err != nil {
			return fmt.Errorf("slicecontroller: %w\n%s", err, p.output())
		}
		return nil
	case <-time.After(30 * time.Second):
		_ = p.Process.Kill()
		return fmt.Errorf("slicecontroller did not end\n%s", p.output())
	}
}

// connect makes a live client of a cluster.
func connect(t *testing.T, c *cluster.Cluster) client.WithWatch {
	t.Helper()
	config := c.Config()
	config.QPS = -1
	out, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
