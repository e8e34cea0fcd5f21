package simulation

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A write that is sent beside the engine may arrive when the engine has looked again, or when another process has the plan,
// whatever fails meanwhile.
func TestWritesBesideTheEngineOverlapItsLooks(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(10, 500)
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc.Overlaps = true
			first := newWorld(sc)
			for seed := from; seed <= to; seed++ {
				c := schedule{shape: name + besideLater, options: sc, seed: 2 * seed} // engines with odd seeds have nothing run beside
				if why, _ := c.play(t.Context(), first); why != "" {
					c.report(t)
				}
			}
		})
	}
}

// An engine waits for what it has sent beside itself before it would send it again.
func TestNothingIsSentBesideTheEngineAndOnceMore(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		if sc.Mode != plans.Reimport {
			continue // within one cluster nothing is prepared
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			for seed := range uint64(5) {
				for _, j := range journeys() {
					want := goldenOf(t, first.fork(2*seed), j)
					w := first.fork(2 * seed)
					w.options.Overlaps = true
					for _, direction := range j {
						walk(t, w, direction, nil)
					}
					cleanEnd(t, w, want.end)
					if t.Failed() {
						t.Fatalf("%s with seed %d", j.name(), 2*seed)
					}
				}
			}
		})
	}
}
