package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/proc"
)

// others is the name for all processes but those of the clusters and of the storm, and idle for no process.
const others, idle = "other processes", "idle"

// cpu is a look at the CPU time that processes have used.
type cpu struct {
	at time.Time
	of map[int]used // by process
	// busy is the time of all processes, those that have ended included.
	busy time.Duration
}

type used struct {
	name string
	time time.Duration
}

// lookAtCPU reads /proc.
func lookAtCPU() (*cpu, error) {
	out := &cpu{at: time.Now(), of: map[int]used{}}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, u, err := usedBy(string(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out.of[pid] = u
	}
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, err
	}
	all, _, _ := strings.Cut(string(raw), "\n")
	for k, field := range strings.Fields(all)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/stat: %w", err)
		}
		if k != 3 && k != 4 && k < 8 { // idle, waiting for a disk; what guests use is part of the rest
			out.busy += time.Duration(n) * proc.Tick
		}
	}
	return out, nil
}

// usedBy reads a line of /proc/PID/stat.
func usedBy(line string) (pid int, u used, err error) {
	if u.name, u.time, err = proc.Stat([]byte(line)); err != nil {
		return 0, used{}, err
	}
	before, _, _ := strings.Cut(line, " ")
	pid, err = strconv.Atoi(before)
	return pid, u, err
}

// named returns the CPU time of the processes of that name.
func (c *cpu) named(name string) (all time.Duration) {
	for _, u := range c.of {
		if strings.HasPrefix(u.name, name) {
			all += u.time
		}
	}
	return all
}

// since returns a sentence about whose the CPU time of this machine was since an earlier look.
func (c *cpu) since(was *cpu) string {
	all := c.at.Sub(was.at) * time.Duration(runtime.NumCPU())
	by := map[string]time.Duration{}
	named := time.Duration(0)
	for pid, u := range c.of {
		spent := u.time
		if before := was.of[pid]; before.name == u.name {
			spent -= before.time
		}
		for _, name := range []string{"kube-apiserver", "etcd", "kube-controller", "kube-scheduler", "kwok", "orchestrator", "storm"} {
			if strings.HasPrefix(u.name, name) {
				by[name] += spent
				named += spent
			}
		}
	}
	by[others] = max(c.busy-was.busy-named, 0)
	by[idle] = max(all-named-by[others], 0)
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%s %.0f%%", name, 100*by[name].Seconds()/max(all.Seconds(), 1)))
	}
	return strings.Join(out, ", ")
}
