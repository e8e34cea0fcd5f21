package clusters

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Holder names this process in a Lease.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// Dead reports whether the holder of a Lease is certainly gone: it ran on this machine, and the process
// no longer exists.
func Dead(holder string) bool {
	host, err := os.Hostname()
	if err != nil {
		return false
	}
	var pid int
	if _, err := fmt.Sscanf(holder, host+"/%d", &pid); err != nil || pid <= 0 {
		return false
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	return errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
