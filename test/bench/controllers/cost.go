package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// cost is what an act took of a controller.
type cost struct {
	took     time.Duration
	requests int
	cpu      time.Duration
	peak     int64 // bytes in memory at most
}

// median takes each figure of an act by itself.
func median(rounds [][]cost, act int) cost {
	middle := func(figure func(cost) int64) int64 {
		var all []int64
		for _, r := range rounds {
			all = append(all, figure(r[act]))
		}
		slices.Sort(all)
		n := len(all)
		return (all[(n-1)/2] + all[n/2]) / 2
	}
	return cost{
		took:     time.Duration(middle(func(c cost) int64 { return int64(c.took) })),
		requests: int(middle(func(c cost) int64 { return int64(c.requests) })),
		cpu:      time.Duration(middle(func(c cost) int64 { return int64(c.cpu) })),
		peak:     middle(func(c cost) int64 { return c.peak }),
	}
}

// row is an act and its cost to slicecontroller and to the built-in controller.
type row struct {
	name         string
	pods         int32
	ours, theirs cost
}

// costTable shows both, and the ratios.
func costTable(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "COST OF A CONTROLLER\t\tTIME\tREQUESTS PER POD\tCPU\tPEAK MEMORY")
	var worse []string
	for _, r := range rows {
		for _, c := range []struct {
			who string
			cost
		}{{"slicecontroller", r.ours}, {"built-in", r.theirs}} {
			fmt.Fprintf(w, "%s\t%s\t%.2f s\t%.2f\t%.2f s\t%d MiB\n", r.name, c.who, c.took.Seconds(), float64(c.requests)/float64(r.pods), c.cpu.Seconds(), c.peak>>20)
		}
		ratios := []float64{
			r.ours.took.Seconds() / r.theirs.took.Seconds(), float64(r.ours.requests) / float64(r.theirs.requests),
			r.ours.cpu.Seconds() / r.theirs.cpu.Seconds(), float64(r.ours.peak) / float64(r.theirs.peak),
		}
		fmt.Fprintf(w, "\tratio\t%.2f\t%.2f\t%.2f\t%.2f\n", ratios[0], ratios[1], ratios[2], ratios[3])
		for k, what := range []string{"time", "requests", "CPU", "memory"} {
			if ratios[k] > even {
				worse = append(worse, fmt.Sprintf("%s of %q (%.2f)", what, r.name, ratios[k]))
			}
		}
	}
	_ = w.Flush() // into memory
	verdict := "met"
	if len(worse) > 0 {
		verdict = "MISSED: " + strings.Join(worse, ", ")
	}
	fmt.Fprintf(&b, "\naim: no worse than the built-in controller in any row, within %.0f %%: %s\n", 100*(even-1), verdict)
	return b.String()
}

// even is a ratio that two runs of the same controller have now and then.
const even = 1.05

// usage is what a process has used since its start, and the most memory since the last
// look.
type usage struct {
	cpu  time.Duration
	peak int64
}

// used reads it, and lets the peak begin anew.
func used(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	u, err := parse(stat, status)
	if err != nil {
		return u, err
	}
	const peak = "5" // see proc_pid_clear_refs(5)
	return u, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peak), 0)
}

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

func parse(stat, status []byte) (usage, error) {
	// The name of the program, in brackets, may have blanks in it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("/proc/PID/stat has %d fields", len(fields))
	}
	var u usage
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(n) * tick
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			u.peak = n << 10
			return u, err
		}
	}
	return u, fmt.Errorf("/proc/PID/status has no VmHWM")
}
