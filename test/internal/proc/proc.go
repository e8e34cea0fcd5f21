// Package proc reads what Linux tells of a process.
package proc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Tick is the unit of the times in /proc: USER_HZ is 100 on every architecture that Linux has.
const Tick = 10 * time.Millisecond

// Stat returns the name of a process, and the CPU time that it has used since its start, from its /proc/PID/stat.
func Stat(stat []byte) (name string, cpu time.Duration, err error) {
	// The name of the program, in brackets, may contain blanks and brackets.
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if begin < 0 || end < begin || len(fields) < 13 {
		return "", 0, fmt.Errorf("/proc/PID/stat has %d fields behind the name: %.100q", len(fields), stat)
	}
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return "", 0, err
		}
		cpu += time.Duration(n) * Tick
	}
	return string(stat[begin+1 : end]), cpu, nil
}
