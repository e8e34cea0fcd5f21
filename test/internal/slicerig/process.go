package slicerig

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// The kinds of sets that a Process manages.
const (
	Native = "apps/v1"
	Slice  = "apps.stsmigrate.dev/v1alpha1"
)

// Process is a running slicecontroller.
type Process struct {
	*exec.Cmd
	// Done receives the result of the process, and is closed.
	Done chan error

	lock sync.Mutex
	said bytes.Buffer
}

// Write implements io.Writer.
func (p *Process) Write(b []byte) (int, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.said.Write(b)
}

// Output returns everything that the process has written.
func (p *Process) Output() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.said.String()
}

// Begin starts the program for a kind of sets of a cluster.
func Begin(program, kubeconfig, kind string, more ...string) (*Process, error) {
	p := &Process{Done: make(chan error, 1)}
	args := []string{"--manage=" + kind, "--kubeconfig", kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	p.Cmd = exec.Command(program, append(args, more...)...) //nolint:noctx // it is ended by Stop
	p.Stdout, p.Stderr = p, p
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() { p.Done <- p.Wait(); close(p.Done) }()
	return p, nil
}

// Stop ends the process as a cluster would. If the process does not end well,
// the error contains its output.
func (p *Process) Stop() error {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.Done:
		if err != nil {
			return fmt.Errorf("slicecontroller: %w\n%s", err, p.Output())
		}
		return nil
	case <-time.After(30 * time.Second):
		p.Kill()
		return fmt.Errorf("slicecontroller did not end\n%s", p.Output())
	}
}

// Kill ends the process as a power cut would.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.Done //nolint:errcheck // killed
}
