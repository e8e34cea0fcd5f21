package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// KillServer kills the API server of the cluster and, with it, the scheduler (which ends by
// itself when it has missed that a pod was replaced), as a power cut would. start starts both
// again, as children of this process, and again when one ends, as a kubelet does, until stop.
func (c *Cluster) KillServer() (start func() (stop func()), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var again sync.WaitGroup
	var kept [][]string
	for _, name := range []string{"kube-scheduler", "kube-apiserver"} {
		pid, args, err := c.process(name)
		if err != nil {
			cancel()
			return nil, err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			cancel()
			return nil, err
		}
		kept = append(kept, args)
	}
	return func() func() {
		for _, args := range kept {
			again.Go(func() {
				keep(ctx, args, filepath.Join(c.Dir, "clusters", c.Name, "logs", filepath.Base(args[0])+".log"))
			})
		}
		return func() { cancel(); again.Wait() }
	}, nil
}

// keep runs a program, and again a moment after it has ended.
func keep(ctx context.Context, args []string, log string) {
	runtime.LockOSThread() // the program ends with the thread that has started it
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		program := exec.CommandContext(ctx, args[0], args[1:]...)
		program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if out, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			program.Stdout, program.Stderr = out, out
			_ = program.Run() // why it ended is in the log
			_ = out.Close()
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// process gives the process of a program of the cluster, and how it was started.
func (c *Cluster) process(name string) (pid int, args []string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(raw, []byte(c.Dir)) {
			continue // it has ended, or is another's
		}
		args := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
		if filepath.Base(args[0]) == name {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid, args, err
		}
	}
	return 0, nil, errors.Join(fmt.Errorf("no %s of %s is running", name, c.Dir), err)
}
