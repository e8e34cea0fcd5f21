package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// KillServer kills the API server of the cluster, as a power cut would. start starts it again
// in the same way, as a child of this process, which stop ends.
func (c *Cluster) KillServer() (start func() (stop func(), err error), err error) {
	pid, args, err := c.server()
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return nil, err
	}
	return func() (func(), error) {
		again := exec.Command(args[0], args[1:]...) //nolint:noctx // it is ended by stop
		again.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := again.Start(); err != nil {
			return nil, err
		}
		return func() { _ = again.Process.Kill(); _ = again.Wait() }, nil
	}, nil
}

// server gives the process of the API server, and how it was started.
func (c *Cluster) server() (pid int, args []string, err error) {
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
		if filepath.Base(args[0]) == "kube-apiserver" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid, args, err
		}
	}
	return 0, nil, errors.Join(fmt.Errorf("no API server of %s is running", c.Dir), err)
}
