package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/proc"
)

// cost is what a controller used for one act.
type cost struct {
	took     time.Duration
	requests int
	cpu      time.Duration
	peak     int64 // peak memory, in bytes
}

// median returns the median of each figure of an act, computed separately.
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

// row is an act, its cost for slicecontroller in one of its modes, and its cost for the built-in
// controller.
type row struct {
	name, who    string
	pods         int32
	ours, theirs cost
	aim          aim
}

// aim is the highest allowed ratio of an act's cost to its cost for the built-in controller, and
// the reason why it is above 1.
type aim struct {
	time, requests, cpu, memory float64
	why                         string
}

// costTable returns a table of both costs and their ratios, and the list of the ratios that miss
// their aim.
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
			if !(ratios[k] <= aims[k]) { // NaN misses the aim too
				missed = append(missed, fmt.Sprintf("%s of %q, %s (%.2f)", what, r.name, r.who, ratios[k]))
			}
		}
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "\n%s\naims: %s\n", strings.Join(whys, "\n"), map[bool]string{true: "met", false: "MISSED"}[len(missed) == 0])
	return b.String(), missed
}

// aimOf returns the aim of a contestant.
func aimOf(who contestant) aim {
	const even = 1.05 // a ratio that two runs of the same controller sometimes have
	const swing = 1.2 // the time is mostly the API server's, and varies by a fifth from run to run
	if !who.slices {
		return aim{swing, even, even, even, "time varies by a fifth from run to run, and the other figures by a twentieth"}
	}
	return aim{1.35, 1.15, 1.2, even, "a condition is written whenever the awaited pod changes, the defaults of each new template come from a dry run, and a custom resource is sent as JSON where a StatefulSet is sent as protobuf"}
}

// usage is the CPU time of a process since its start, and its peak memory in bytes since the
// previous reading.
type usage struct {
	cpu  time.Duration
	peak int64
}

// used reads the usage of a process and resets its peak memory.
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

func parse(stat, status []byte) (usage, error) {
	_, cpu, err := proc.Stat(stat)
	if err != nil {
		return usage{}, err
	}
	u := usage{cpu: cpu}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			u.peak = n << 10
			return u, err
		}
	}
	return u, fmt.Errorf("/proc/PID/status has no VmHWM")
}
