package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Files in the folder of a storm.
const (
	logs  = "orchestrators.log"
	users = "persons.log" // the output of stsmigrate for users
)

// replicas holds the orchestrators.
type replicas struct {
	dir, program string
	qps          float64
	waves        int
	memory       int64  // bytes that a process may use: four fifths of the limit of its container
	limit        int64  // of the container, in bytes; 0 for processes without a cage
	kubeconfig   string // of the account of the Deployment

	lock   sync.Mutex
	all    []*process
	killed int
	// suspended counts those that slept while another one took their plans over.
	suspended int
	past      usage // of orchestrators that have ended
	// own receives an error for each that has ended by itself.
	own chan error
	// begun is how many were started.
	begun int
}

// process is one orchestrator.
type process struct {
	*exec.Cmd
	metrics string
	log     *os.File
	done    chan struct{}
	cage    *cage
	// asked reports that the storm ends it.
	asked atomic.Bool
}

// usage is the resource usage of processes.
type usage struct {
	requests int
	peak     int64   // bytes, the largest of one process
	caged    int64   // bytes, the most that one cage has held
	waves    int     // that arrived
	down     float64 // seconds that these waves were on neither side, in total
}

func (c *replicas) start(n int) error {
	for range n {
		p, err := c.begin()
		if err != nil {
			return err
		}
		c.all = append(c.all, p)
	}
	return nil
}

func (c *replicas) begin() (*process, error) {
	p := &process{done: make(chan struct{})}
	var profiles string
	err := errors.Join(address(&p.metrics), address(&profiles))
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.dir, logs), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.log = log
	p.Cmd = exec.Command(c.program, "--kubeconfig", c.kubeconfig, "--metrics-bind-address", p.metrics, "--metrics-secure=false", "--pprof-bind-address", profiles, "--cluster-qps", fmt.Sprint(c.qps), "--cluster-waves", fmt.Sprint(c.waves), "--health-probe-bind-address=0", "--allow-loopback-clusters") //nolint:noctx // it is ended by kill and stop
	p.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.FormatInt(c.memory, 10))
	p.Stdout, p.Stderr = log, log
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.begun++
	if c.limit > 0 {
		if p.cage, err = newCage(fmt.Sprintf("stsmigrate-storm-%d-%d", os.Getpid(), c.begun), c.limit); err != nil {
			return nil, fmt.Errorf("no cgroup can be made for an orchestrator (-cgroup=false does without): %w", err)
		}
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	if err := p.cage.hold(p.Process.Pid); err != nil {
		return nil, err
	}
	go func() {
		how := p.Wait() // killed, or asked to end
		close(p.done)
		if !p.asked.Load() {
			c.own <- fmt.Errorf("an orchestrator has ended by itself (%w; killed by the kernel for its memory: %d times); see %s", how, p.cage.killed(), p.log.Name())
		}
	}()
	return p, nil
}

// address sets into to a free address of this machine.
func address(into *string) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*into = l.Addr().String()
	return l.Close()
}

// replace kills one orchestrator, and starts another in its place.
func (c *replicas) replace(k int) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	p := c.all[k]
	select {
	case <-p.done:
		return fmt.Errorf("an orchestrator has ended by itself; see %s", p.log.Name())
	default:
	}
	c.note(p)
	p.asked.Store(true)
	_ = p.Process.Kill()
	<-p.done
	_ = p.log.Close()
	_ = p.cage.remove()
	c.killed++
	var err error
	c.all[k], err = c.begin()
	return err
}

// suspend stops one orchestrator for a while, which is longer than its Leases last. It may wake in the middle of a
// write of plans that others have taken over (S9).
func (c *replicas) suspend(ctx context.Context, k int, nap time.Duration) {
	c.lock.Lock()
	p := c.all[k]
	c.suspended++
	c.lock.Unlock()
	_ = p.Process.Signal(syscall.SIGSTOP) // one that has ended meanwhile is found by replace
	select {
	case <-time.After(nap):
	case <-ctx.Done():
	}
	_ = p.Process.Signal(syscall.SIGCONT)
}

// note adds the usage of a process.
func (c *replicas) note(p *process) {
	text := metrics(context.Background(), p.metrics)
	c.past.requests += int(total(text, "rest_client_requests_total{"))
	c.past.waves += int(total(text, `stsmigrate_downtime_seconds_count{span="ready"`))
	c.past.down += total(text, "stsmigrate_downtime_seconds_sum{")
	c.past.peak, c.past.caged = max(c.past.peak, p.memory("VmHWM")), max(c.past.caged, p.cage.most())
}

// memory returns a line of the process's status, in bytes, or 0 if the process has ended.
func (p *process) memory(line string) int64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	_, rest, _ := strings.Cut(string(raw), line+":")
	var kB int64
	_, _ = fmt.Sscan(rest, &kB)
	return kB << 10
}

// most returns the largest current memory of one process, in bytes.
func (c *replicas) most() (most int64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, p := range c.all {
		most = max(most, p.memory("VmRSS"))
	}
	return most
}

// total sums the samples that begin with begin.
func total(text, begin string) (sum float64) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begin) {
			n, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			sum += n
		}
	}
	return sum
}

// metrics reads the metrics of a process. They are empty if it has only just started.
func metrics(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return ""
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	raw, _ := io.ReadAll(answer.Body)
	return string(raw)
}

// metrics returns the metrics of all processes.
func (c *replicas) metrics(ctx context.Context) (all string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, p := range c.all {
		all += metrics(ctx, p.metrics)
	}
	return all
}

// used returns the usage of all processes, past and present.
func (c *replicas) used() usage {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, p := range c.all {
		c.note(p)
	}
	return c.past
}

// stop ends all processes.
func (c *replicas) stop() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, p := range c.all {
		p.asked.Store(true)
		_ = p.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range c.all {
		select {
		case <-p.done:
		case <-time.After(30 * time.Second):
			_ = p.Process.Kill()
			<-p.done
		}
		_ = p.log.Close()
		_ = p.cage.remove()
	}
	c.all = nil
}

// outlive returns an error as soon as an orchestrator ends by itself: the storm kills many, and none may die of others.
func (c *replicas) outlive(ctx context.Context) error {
	select {
	case err := <-c.own:
		return err
	case <-ctx.Done():
		return nil
	}
}

// kills kills an orchestrator at random intervals, and suspends every third instead.
func (s *storm) kills(ctx context.Context) error {
	if s.every == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	for n := 1; ; n++ {
		select {
		case <-time.After(s.every/2 + time.Duration(random.Int64N(int64(s.every)))):
		case <-ctx.Done():
			return nil
		}
		if k := random.IntN(s.processes); s.nap > 0 && n%3 == 0 {
			s.replicas.suspend(ctx, k, s.nap)
		} else if err := s.replicas.replace(k); err != nil {
			return err
		}
	}
}
