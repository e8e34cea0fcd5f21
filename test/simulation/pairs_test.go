package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// strokes returns the faults of several writes, each counted over all processes.
func strokes(at map[int]fault) func(int) fault { return func(n int) fault { return at[n] } }

// Two faults at two writes of one course are survived like one. The second one often hits what a process does about
// the first: the takeover of its successor, or the same write once more.
func TestTwoFaultsAreSurvivedWithTheSameEnd(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(4, 1000)
	for name, sc := range shapes() {
		for _, j := range journeys() {
			t.Run(fmt.Sprintf("%s %s", name, j.name()), func(t *testing.T) {
				t.Parallel()
				drawn(t, "pairs", from, to, 1000)
				first := newWorld(sc)
				want := goldenOf(t, first.fork(0), j)
				for seed := from; seed <= to; seed++ {
					rng := rand.New(rand.NewPCG(seed, 5))
					kinds := faults()
					one := rng.IntN(want.writes)
					two := one + 1 + rng.IntN(want.writes-one)
					if rng.IntN(2) == 0 { // soon after the first
						two = one + 1 + rng.IntN(12)
					}
					pair := map[int]fault{one: kinds[rng.IntN(len(kinds))], two: kinds[rng.IntN(len(kinds))]}
					w := first.fork(seed)
					for _, direction := range j {
						walk(t, w, direction, strokes(pair))
					}
					end := want.end
					if j[len(j)-1] == plans.Abort {
						end = w.start
					}
					cleanEnd(t, w, end)
					if t.Failed() {
						t.Fatalf("that was seed %d: %v of %d writes", seed, pair, want.writes)
					}
				}
			})
		}
	}
}

// A write that is refused several times in a row is survived like one that is refused once: by the same process if
// the API server may let it through later.
func TestARefusalThatIsRepeatedIsSurvived(t *testing.T) {
	t.Parallel()
	kinds := []fault{refused409, refused429, refused500, refused503, lostAnswer}
	for _, mode := range modes() {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			first := newWorld(threeOrdinals(mode))
			j := journey{plans.Move, plans.Finalize}
			want := goldenOf(t, first.fork(0), j)
			for n := range want.writes {
				for k, f := range kinds {
					if !twentieth.playsFault(n, k, len(kinds)) {
						continue
					}
					w := first.fork(uint64(n))
					for _, direction := range j {
						walk(t, w, direction, strokes(map[int]fault{n: f, n + 1: f, n + 2: f}))
					}
					cleanEnd(t, w, want.end)
					if t.Failed() {
						t.Fatalf("that was: write %d of %d, three times %s", n, want.writes, f)
					}
				}
			}
		})
	}
}
