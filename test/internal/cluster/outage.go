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

// KillServer kills the API server of the cluster, as a power cut would. It also kills the
// scheduler, which would end by itself after it has missed that a pod was replaced. start starts
// both again, as children of this process, and restarts each one that ends, as a kubelet does,
// until stop is called.
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

// keep runs a program and restarts it one second after it ends, until ctx ends.
func keep(ctx context.Context, args []string, log string) {
	runtime.LockOSThread() // Pdeathsig kills the program when the thread that started it ends
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

// process returns the process ID of a program of the cluster, and its arguments.
func (c *Cluster) process(name string) (pid int, args []string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(raw, []byte(c.Dir)) {
			continue // the process has ended, or belongs to another cluster
		}
		args := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
		if filepath.Base(args[0]) == name {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid, args, err
		}
	}
	return 0, nil, errors.Join(fmt.Errorf("no %s of %s is running", name, c.Dir), err)
}
