package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestUsageIsRead(t *testing.T) {
	u, err := parse([]byte("42 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0"), []byte("Name:\tx\nVmPeak:\t9 kB\nVmHWM:\t    2048 kB\n"))
	if err != nil || u.cpu != 1750*time.Millisecond || u.peak != 2<<20 {
		t.Errorf("%+v, %v", u, err)
	}
	for stat, status := range map[string]string{"42 (x) S": "VmHWM: 1 kB", "42 (x) S 1 2 3 4 5 6 7 8 9 10 150 25": "Name: x", "1 (x) S 1 2 3 4 5 6 7 8 9 10 x 25": "VmHWM: 1 kB"} {
		if _, err := parse([]byte(stat), []byte(status)); err == nil {
			t.Errorf("%q %q: no error", stat, status)
		}
	}
	if u, err := used(os.Getpid()); err != nil || u.peak == 0 {
		t.Errorf("of this process: %+v, %v", u, err)
	}
}

func TestMediansAreOfEachFigure(t *testing.T) {
	rounds := [][]cost{{{}, {took: 3, requests: 1, cpu: 9, peak: 5}}, {{}, {took: 1, requests: 2, cpu: 7, peak: 5}}, {{}, {took: 2, requests: 9, cpu: 8, peak: 1}}}
	if got, want := median(rounds, 1), (cost{took: 2, requests: 2, cpu: 8, peak: 5}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

func TestTableSaysWhichRowsAreWorse(t *testing.T) {
	one := cost{took: time.Second, requests: 100, cpu: time.Second, peak: 10 << 20}
	two := cost{took: 2 * time.Second, requests: 100, cpu: time.Second, peak: 20 << 20}
	limit := aim{1.5, 1, 1, 2, "reasons"}
	if got, missed := costTable([]row{{"create", "slices", 50, one, two, limit}}); len(missed) > 0 || !strings.Contains(got, "slices: reasons\naims: met\n") || !strings.Contains(got, "create                 slices     1.00 s   2.00               1.00 s   10 MiB\n") {
		t.Error(got, missed)
	}
	got, missed := costTable([]row{{"create", "slices", 50, two, one, limit}, {"roll", "native", 50, one, cost{}, limit}})
	if want := `time of "create", slices (2.00), time of "roll", native (+Inf), requests of "roll", native (+Inf), CPU of "roll", native (+Inf), memory of "roll", native (+Inf)`; strings.Join(missed, ", ") != want || !strings.Contains(got, "aims: MISSED\n") {
		t.Error(got, missed)
	}
}
