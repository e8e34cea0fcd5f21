package simulation

import (
	"errors"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// dieAt begins a move with a process that dies at the given write. It reports whether the process reached
// that write. It may not: a proof made while a wave waits is journaled, and not every wave has to wait.
func dieAt(t *testing.T, w *world, n int, f fault) bool {
	t.Helper()
	r := w.process()
	r.at = once(n, f)
	_, err := r.run(t.Context(), plans.Move, nil)
	if !errors.Is(err, errDead) && (err != nil || w.journal.Outcome != plans.Moved || n < w.writes) {
		t.Fatalf("the process did not die at write %d of %d: %v", n, w.writes, err)
	}
	return r.dead
}

// 3335-29
func TestAnAbortAtAnyWriteBringsEverythingBack(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			want := goldenOf(t, first.fork(0), journey{plans.Move})
			kinds := []fault{crashBefore, crashAfter}
			kept := newSeries(t, "an abort after a death", 0, want.writes, kinds)
			for n := range want.writes {
				for k, f := range kinds {
					if !shareOf(name).playsFault(n, k, 2) {
						continue
					}
					kept.plays(f, n)
					w := first.fork(uint64(n))
					if !dieAt(t, w, n, f) {
						continue
					}
					walk(t, w, plans.Abort, nil)
					cleanEnd(t, w, w.start)
					if t.Failed() {
						t.Fatalf("that was: aborted after %s, write %d of %d", f, n, want.writes)
					}
				}
			}
		})
	}
}

func TestAnAbortHalfWayBringsEverythingBack(t *testing.T) {
	t.Parallel()
	for name, sc := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			want := goldenOf(t, first.fork(0), journey{plans.Move})
			for n := want.writes / 3; n < want.writes; n += 7 {
				w := first.fork(uint64(n))
				if !dieAt(t, w, n, crashAfter) {
					continue
				}
				walk(t, w, plans.Abort, nil)
				cleanEnd(t, w, w.start)
				if t.Failed() {
					t.Fatalf("that was: aborted at write %d of %d", n, want.writes)
				}
			}
		})
	}
}

func TestADeathAtAnyWriteOfAnAbortIsSurvived(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			golden := first.fork(0)
			goldenOf(t, golden, journey{plans.Move})
			for i, a := range golden.acts {
				if long() && !everyCase.plays(i) || !long() && (!a.wave.Has(1) || !whole(name) && i%6 != 0) {
					continue
				}
				w := first.fork(uint64(a.write))
				if !dieAt(t, w, a.write, crashAfter) {
					continue
				}
				kinds := []fault{crashAfter}
				if long() {
					kinds = faults()
				}
				everyWrite(t, w, journey{plans.Abort}, false, kinds, fifth, "")
			}
		})
	}
}
