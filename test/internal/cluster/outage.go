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
	killed, err := c.kill("kube-scheduler", "kube-apiserver")
	return func() func() { return c.run(killed) }, err
}

// Upgrade replaces the control plane by the programs of another folder, with the same flags and the same etcd. They
// run as after KillServer, until stop is called.
func (c *Cluster) Upgrade(bin string) (stop func(), err error) {
	killed, err := c.kill("kube-controller-manager", "kube-scheduler", "kube-apiserver")
	if err != nil {
		return nil, err
	}
	// Processes of the cluster are recognised by a path in its folder.
	folder := filepath.Join(c.Dir, "upgrade")
	if err := os.Symlink(bin, folder); err != nil {
		return nil, err
	}
	for _, args := range killed {
		args[0] = filepath.Join(folder, filepath.Base(args[0]))
	}
	return c.run(killed), nil
}

// Checkpoint copies what etcd has stored. back brings the whole cluster back to it, as a backup does that is restored:
// whatever happened since then has never happened, and resource versions are given out again. The programs run as
// after KillServer, until stop is called.
func (c *Cluster) Checkpoint() (back func() (stop func(), err error), err error) {
	pid, args, err := c.process("etcd")
	if err != nil {
		return nil, err
	}
	data, ok := "", false
	for _, a := range args {
		if data, ok = strings.CutPrefix(a, "--data-dir="); ok {
			break
		}
	}
	if !ok {
		return nil, fmt.Errorf("etcd of %s has no --data-dir: %q", c.Dir, args)
	}
	saved := filepath.Join(c.Dir, "checkpoint")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // so that the files are of one moment
		return nil, err
	}
	err = errors.Join(os.CopyFS(saved, os.DirFS(data)), syscall.Kill(pid, syscall.SIGCONT))
	return func() (func(), error) {
		killed, err := c.kill("kwok-controller", "kube-controller-manager", "kube-scheduler", "kube-apiserver", "etcd")
		if err != nil {
			return nil, err
		}
		if err := errors.Join(os.RemoveAll(data), os.Rename(saved, data)); err != nil {
			return nil, err
		}
		return c.run(killed), nil
	}, err
}

// kill kills programs of the cluster, in this order, and returns their arguments.
func (c *Cluster) kill(names ...string) (killed [][]string, err error) {
	for _, name := range names {
		pid, args, err := c.process(name)
		if err != nil {
			return nil, err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, err
		}
		killed = append(killed, args)
	}
	return killed, nil
}

// run starts programs as children of this process, and restarts each one that ends, until stop is called.
func (c *Cluster) run(programs [][]string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var again sync.WaitGroup
	for _, args := range programs {
		again.Go(func() {
			keep(ctx, args, filepath.Join(c.Dir, "clusters", c.Name, "logs", filepath.Base(args[0])+".log"))
		})
	}
	return func() { cancel(); again.Wait() }
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
