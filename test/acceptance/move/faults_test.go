package move_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/faults"
	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

// faultsShare is in how many days every fault is played at every write once. FAULTS=1 plays all of them in one run,
// some two thousand moves.
const faultsShare = 300

// Every kind of fault at every write of a move and of its end, one at a time: the program that is run again as its
// messages say brings the move to its end, and nothing is lost, left, or away more often than promised.
func TestAFaultAtAnyWriteLosesNothing(t *testing.T) {
	t.Parallel()
	for _, m := range modesOf(t.Name()) {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			writes := undisturbed(t, m)
			t.Logf("%d writes", len(writes))
			share, n := shareOf(t, "FAULTS", faultsShare), 0
			for _, kind := range faults.Kinds() {
				for at := range writes {
					n++
					if n%share != day%share {
						continue
					}
					t.Run(fmt.Sprintf("write %d %s", at+1, kind), func(t *testing.T) {
						t.Parallel()
						keepPlayed(t, m, kind, at, len(writes))
						disturbed(t, m, kind, at+1)
					})
				}
			}
		})
	}
}

// keepPlayed keeps what came of a fault at a write, for the page about reliability.
func keepPlayed(t *testing.T, m mode, kind faults.Kind, at, writes int) {
	t.Helper()
	began := time.Now()
	t.Cleanup(func() {
		played := bytes.Repeat([]byte{tally.Left}, writes)
		played[at] = tally.Held
		switch {
		case t.Failed():
			played[at] = tally.Broken
		case t.Skipped():
			played[at] = tally.Left
		}
		tally.Add(tally.Line{Part: "control planes", World: string(m), Case: string(kind), Played: string(played), Seconds: time.Since(began).Seconds()})
	})
}

// undisturbed moves a set through a front without a fault, and returns the writes.
func undisturbed(t *testing.T, m mode) []string {
	t.Helper()
	s := newMigration(t, m, options{replicas: 2})
	f := s.covered()
	s.planned()
	run(t, s.applyArgs()...).expect(t, done)
	run(t, s.args("finalize")...).expect(t, done)
	return f.Writes()
}

// disturbed moves a set while one write goes wrong.
func disturbed(t *testing.T, m mode, kind faults.Kind, at int) {
	t.Helper()
	s := newMigration(t, m, options{replicas: 2})
	f := s.covered()
	before := s.state(s.source)
	w := s.watched()
	s.planned()
	f.Arm(kind, at)
	defer func() {
		if t.Failed() {
			t.Logf("the writes:\n%s", strings.Join(f.Writes(), "\n"))
		}
	}()
	s.comesThrough(f, kind, at, s.applyArgs())
	s.arrived(before)
	s.comesThrough(f, kind, at, s.args("finalize"))
	switch n := len(f.Writes()); {
	case n < at-5: // two budgets are opened and tightened again, with one write of the journal
		t.Fatalf("there were only %d writes", n)
	case n < at: // a busy machine may need to open the budgets between two waves
		t.Skipf("not reached: there were only %d writes, as the budgets stayed tight between the waves", n)
	}
	proper(t, w, 1)
	s.settled(before)
}

// covered puts a front before the clusters of a migration.
func (s *migration) covered() *faults.Front {
	s.t.Helper()
	f, dir := faults.NewFront(), s.t.TempDir()
	for _, on := range []*end{s.source, s.destination} {
		on.front = filepath.Join(dir, on.cluster.Name)
		if on == s.destination && s.mode == rebind {
			continue // the same cluster
		}
		if err := f.Cover(s.t.Context(), on.cluster.Name, on.cluster.Config(), on.front); err != nil {
			s.t.Fatal(err)
		}
	}
	return f
}

// comesThrough runs a command again until it succeeds, as its messages ask for. Only a process that was killed, or
// was told that it may not do something, needs more than one run.
func (s *migration) comesThrough(f *faults.Front, kind faults.Kind, at int, args []string) {
	s.t.Helper()
	var said []string
	for range 4 {
		p := start(s.t, args...)
		f.Aim(p.cmd.Process)
		select {
		case <-f.Asleep:
			s.overtaken(f, at, p, args)
			return
		case <-p.ended:
		}
		r := p.end()
		switch r.code {
		case done:
			return
		case killed:
			s.expire()
		}
		said = append(said, fmt.Sprintf("ended with %d: %s%s", r.code, tail(r.stdout), r.stderr))
	}
	s.t.Fatalf("stsmigrate %s: %s\n%s", strings.Join(args, " "), kind, strings.Join(said, "\n"))
}

// overtaken lets another process do all that the sleeping one was to do. Its write arrives afterwards, is refused by
// the API server, and it ends by itself.
func (s *migration) overtaken(f *faults.Front, at int, sleeper *process, args []string) {
	s.t.Helper()
	s.expire()
	run(s.t, args...).expect(s.t, done)
	late := f.Writes()[at-1]
	status := f.Release()
	// Names have no epoch: whoever keeps them next brings them in order.
	if status < 400 && !strings.Contains(late, "endpointslices") {
		s.t.Errorf("a write of a process that was overtaken has happened (%d): %s", status, late)
	}
	sleeper.signal(syscall.SIGCONT)
	if r := sleeper.end(); !slices.Contains([]int{failed, held, done}, r.code) {
		s.t.Errorf("the process that was overtaken ended with %d: %s", r.code, r.stderr)
	}
}

// tail returns the last lines of an output.
func tail(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-6):], "")
}
