package simulation

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/engine"
)

// subsets returns every subset of what an engine can do without.
func subsets() [][]engine.Acceleration {
	all := engine.Accelerations()
	out := make([][]engine.Acceleration, 1<<len(all))
	for k := range out {
		for i, one := range all {
			if k&(1<<i) != 0 {
				out[k] = append(out[k], one)
			}
		}
	}
	return out
}

// A move ends in the same clusters whatever its engines do without, while pods are evicted, and with a process that dies
// in the middle and has other accelerations than the next one.
func TestAMoveEndsTheSameWithoutAnyAcceleration(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		for _, j := range journeys() {
			t.Run(fmt.Sprintf("%s %s", name, j.name()), func(t *testing.T) {
				t.Parallel()
				sc.Seed = 2 // its processes read through what is kept, and have reads and writes made beside them
				first := newWorld(sc)
				want := goldenOf(t, first.fork(sc.Seed), j)
				all := subsets()
				for k, without := range all {
					if !whole(name) && k > 0 && k < len(all)-1 {
						continue
					}
					w := first.fork(sc.Seed + 2*uint64(k))
					w.evictions = 4
					var strikes map[int]fault
					dies := bits.OnesCount(uint(k))%2 == 1
					if dies {
						strikes = map[int]fault{want.writes / 2: crashAfter}
					}
					for leg, direction := range j {
						w.options.Without = without
						if leg > 0 { // as a process without --careful goes on with the plan of one with it
							w.options.Without = all[len(all)-1-k]
						}
						walk(t, w, direction, strokes(strikes))
					}
					w.evictions = 0
					cleanEnd(t, w, want.end)
					if t.Failed() {
						t.Fatalf("without %q, and a process dies: %t", without, dies)
					}
				}
			})
		}
	}
}
