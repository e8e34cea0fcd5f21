package simulation

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/plans"
)

// once returns a fault for one write, counted over all processes.
func once(n int, f fault) func(int) fault {
	return func(i int) fault {
		if i == n {
			return f
		}
		return ""
	}
}

// 3335-28: the world is checked after every write, and no ordinal is on both sides.
func TestADeathAtAnyWriteIsSurvivedWithTheSameEnd(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		for _, j := range journeys() {
			t.Run(fmt.Sprintf("%s %s", name, j.name()), func(t *testing.T) {
				t.Parallel()
				first := newWorld(sc)
				if j[1] == plans.Abort { // the other journey covers the crashes of the move
					walk(t, first, j[0], nil)
					j = j[1:]
				}
				kinds := faults()
				if !whole(name) && !long() {
					kinds = []fault{crashBefore, crashAfter}
				}
				everyWrite(t, first, j, true, kinds, shareOf(name), "a fault")
			})
		}
	}
}

// everyWrite runs the journey once for every write of it and every fault, or for a share of these. It requires the same end as the run
// without a fault (S15). A course with a name is kept for the page about reliability. If counted, it also requires the same counts (S11). The counts can differ if the
// world was left with a pod in transit, which may or may not arrive.
func everyWrite(t *testing.T, first *world, j journey, counted bool, faults []fault, of share, course string) {
	t.Helper()
	want := goldenOf(t, first.fork(0), j)
	kept := &series{}
	if course != "" {
		kept = newSeries(t, course, first.writes, want.writes, faults)
	}
	for n := first.writes; n < want.writes; n++ {
		for k, f := range faults {
			if !of.playsFault(n, k, len(faults)) {
				continue
			}
			if course != "" {
				kept.plays(f, n)
			}
			w := first.fork(uint64(n))
			for _, c := range j {
				walk(t, w, c, once(n, f))
			}
			cleanEnd(t, w, want.end)
			if diff := cmp.Diff(want.counts, w.counts()); diff != "" && counted {
				t.Errorf("S11: what was made and what went differs (-golden +got):\n%s", diff)
			}
			if t.Failed() {
				t.Fatalf("that was: %s, write %d of %d", f, n, want.writes)
			}
		}
	}
}
