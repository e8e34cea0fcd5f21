package engine

import (
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A wave that cannot be eased yet is looked at again when something has changed. To hurry would write the journal all the
// time. One that is eased is looked at again at once.
func TestAWaveThatCannotBeEasedYetIsNotHurried(t *testing.T) {
	for name, c := range map[string]struct {
		eases plans.Observation
		again time.Duration
	}{
		"a pod is still leaving": {plans.Wait(reasons.PodLeaving, "a pod is leaving"), 5 * time.Second},
		"it is eased":            {plans.Done(), time.Millisecond},
	} {
		waits := plans.Wait(reasons.TemplateDiffers, "the templates differ")
		waits.Eases, waits.Again = true, 5*time.Second
		e, step := scripted(t, plans.Tighten, see(waits))
		changed(t, e, func(j *journal.Journal) { j.Begun = step.Seq })
		e.way.look = see(c.eases)
		p, err := e.Advance(t.Context())
		if err != nil || p.Kind != Waiting || p.ID != waits.ID || p.Again != c.again {
			t.Errorf("%s: %+v (%v), expected to look again after %s", name, p, err, c.again)
		}
	}
}
