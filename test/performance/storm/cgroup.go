package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cage is a memory cgroup of one process, with the limit of the container in the chart. A process that needs more is killed
// by the kernel, as it would be in its pod.
type cage struct {
	dir                       string
	limit, swap, events, peak string // files, of the version of cgroups that this machine has
}

// newCage makes a cage. An error says why this machine gives none.
func newCage(name string, limit int64) (*cage, error) {
	const root = "/sys/fs/cgroup"
	c := &cage{dir: filepath.Join(root, "memory", name), limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", events: "memory.oom_control", peak: "memory.max_usage_in_bytes"}
	most := limit
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		c = &cage{dir: filepath.Join(root, name), limit: "memory.max", swap: "memory.swap.max", events: "memory.events", peak: "memory.peak"}
		most = 0 // of swap alone
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.write(c.limit, limit); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	_ = c.write(c.swap, most) // a machine without swap may have no such file
	return c, nil
}

func (c *cage) write(file string, n int64) error {
	return os.WriteFile(filepath.Join(c.dir, file), []byte(strconv.FormatInt(n, 10)), 0o600)
}

// hold puts a process into the cage. What it has used before counts for nobody, so it is held at its start.
func (c *cage) hold(pid int) error {
	if c == nil {
		return nil
	}
	return c.write("cgroup.procs", int64(pid))
}

// killed returns how many processes the kernel has killed because the cage was full.
func (c *cage) killed() (n int) {
	if c == nil {
		return 0
	}
	raw, _ := os.ReadFile(filepath.Join(c.dir, c.events))
	for line := range strings.Lines(string(raw)) {
		if field, count, _ := strings.Cut(strings.TrimSpace(line), " "); field == "oom_kill" {
			n, _ = strconv.Atoi(count)
		}
	}
	return n
}

// most returns the most that was used in the cage, with files in memory; 0 if that is not known.
func (c *cage) most() (n int64) {
	if c == nil {
		return 0
	}
	raw, _ := os.ReadFile(filepath.Join(c.dir, c.peak))
	_, _ = fmt.Sscan(string(raw), &n)
	return n
}

func (c *cage) remove() error {
	if c == nil {
		return nil
	}
	return os.Remove(c.dir)
}
