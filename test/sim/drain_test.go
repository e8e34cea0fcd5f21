package sim

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// The eviction API believes the budgets; if these are right at every instant, no
// drain takes an ordinal down while another is in flight (S2, S3).
func TestNodesMayBeDrainedDuringAMove(t *testing.T) {
	t.Parallel()
	seeds := uint64(4)
	if long() {
		seeds = 200
	}
	for name, sc := range variants() {
		if sc.Budget == nil {
			continue // without a budget of the user's anything may be evicted
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			for seed := uint64(1); seed <= seeds; seed++ {
				w := first.fork(seed)
				w.evictions = 4
				walk(t, w, plans.Move, nil)
				w.evictions += 4
				walk(t, w, plans.Return, nil)
				w.evictions = 0
				cleanEnd(t, w, w.start)
			}
		})
	}
}
