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

// A process takes over where the last steps are recorded as finished and had nothing to write, so that nothing says they had
// begun. Its stamps have the number of the last of them. When it eases, and the plan goes back, the journal is not behind
// them: the next process would say that it was restored from a backup, and take no step.
func TestAnEasedJournalIsNotBehindItsStamps(t *testing.T) {
	e, quiesce := scripted(t, plans.Shrink, see(plans.Done()))
	e.plan.Gates = []plans.Gate{{Name: "drain", When: plans.BeforeShrink}}
	quiesce, _ = e.plan.Step(journal.New(e.plan).Leg, quiesce.Seq)
	if quiesce.Op != plans.Quiesce {
		t.Fatalf("step %d is %s", quiesce.Seq, quiesce.ID())
	}
	changed(t, e, func(j *journal.Journal) { j.Done, j.Begun = quiesce.Seq, quiesce.Seq-1 })
	e.way.look = see(plans.Done())
	if err := e.Ease(t.Context()); err != nil {
		t.Fatal(err)
	}
	j := stored(t, e)
	if why := j.Behind(plans.Stamp{Plan: e.plan.ID, Epoch: e.epoch, Seq: quiesce.Seq}); why != "" || j.Done >= quiesce.Seq-1 {
		t.Errorf("done %d, begun %d: %s", j.Done, j.Begun, why)
	}
}
