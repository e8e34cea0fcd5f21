package simulation

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ahead returns the options with API servers that are newer than this program.
func ahead() map[string]options {
	out := map[string]options{}
	for _, mode := range modes() {
		sc := withGates(threeOrdinals(mode))
		sc.Templates, sc.Newer = []string{"data", "log"}, true
		out[string(mode)] = sc
		shared := threeOrdinals(mode)
		shared.Shared, shared.Newer = true, true
		out["a shared volume, "+string(mode)] = shared
	}
	return out
}

func TestFieldsThatAreNotKnownAreNeverLost(t *testing.T) {
	t.Parallel()
	for name, sc := range ahead() {
		for _, j := range journeys() {
			t.Run(name+", "+j.name(), func(t *testing.T) {
				t.Parallel()
				w := newWorld(sc)
				for _, c := range j {
					walk(t, w, c, nil)
				}
				w.rest()
				unbroken(t, w)
				if side := outcomeSide(j); len(w.belongings(side).Claims) == 0 {
					t.Errorf("the %s has nothing", side)
				}
			})
		}
	}
}

func outcomeSide(j journey) plans.Side {
	if j[len(j)-1] == plans.Abort {
		return plans.Source
	}
	return plans.Destination
}
