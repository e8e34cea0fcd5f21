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

// row is an act and its cost to slicecontroller, in one of its modes, and to the built-in controller.
type row struct {
	name, who    string
	pods         int32
	ours, theirs cost
	aim          aim
}

// aim is how many times of what it takes the built-in controller an act may take at most, and why that
// is more than once.
type aim struct {
	time, requests, cpu, memory float64
	why                         string
}

// costTable shows both, the ratios, and which of them miss their aim.
func costTable(rows []row) (table string, missed []string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "COST OF A CONTROLLER\t\tTIME\tREQUESTS PER POD\tCPU\tPEAK MEMORY")
	var whys []string
	for _, r := range rows {
		for _, c := range []struct {
			who string
			cost
		}{{r.who, r.ours}, {"built-in", r.theirs}} {
			fmt.Fprintf(w, "%s\t%s\t%.2f s\t%.2f\t%.2f s\t%d MiB\n", r.name, c.who, c.took.Seconds(), float64(c.requests)/float64(r.pods), c.cpu.Seconds(), c.peak>>20)
		}
		ratios := []float64{
			r.ours.took.Seconds() / r.theirs.took.Seconds(), float64(r.ours.requests) / float64(r.theirs.requests),
			r.ours.cpu.Seconds() / r.theirs.cpu.Seconds(), float64(r.ours.peak) / float64(r.theirs.peak),
		}
		aims := []float64{r.aim.time, r.aim.requests, r.aim.cpu, r.aim.memory}
		fmt.Fprintf(w, "\tratio\t%.2f\t%.2f\t%.2f\t%.2f\n", ratios[0], ratios[1], ratios[2], ratios[3])
		fmt.Fprintf(w, "\taim\t%.2f\t%.2f\t%.2f\t%.2f\n", aims[0], aims[1], aims[2], aims[3])
		if why := r.who + ": " + r.aim.why; !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
		for k, what := range []string{"time", "requests", "CPU", "memory"} {
			if !(ratios[k] <= aims[k]) { // nor is it met by what is no number
				missed = append(missed, fmt.Sprintf("%s of %q, %s (%.2f)", what, r.name, r.who, ratios[k]))
			}
		}
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "\n%s\naims: %s\n", strings.Join(whys, "\n"), map[bool]string{true: "met", false: "MISSED"}[len(missed) == 0])
	return b.String(), missed
}

// aimOf is the aim of a contestant.
func aimOf(who contestant) aim {
	const even = 1.05 // a ratio that two runs of the same controller have now and then
	const swing = 1.2 // time is mostly that of the API server, and swings by a fifth from run to run
	if !who.slices {
		return aim{swing, even, even, even, "time swings by a fifth from run to run, and the rest by a twentieth"}
	}
	return aim{1.5, 1.25, 1.3, even, "conditions are written whenever another pod is waited for, each new template is filled in by a dry run, and a custom resource goes as JSON where a StatefulSet goes as protobuf"}
}

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
