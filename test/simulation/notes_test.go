package simulation

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// The journal's record of a wave is the same if other writers change the journal meanwhile, or if responses
// to the process's own writes are lost. Between two waves the journal shows none under way.
func TestWhatIsNotedOfAWaveOutlivesOtherWriters(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			first := newWorld(apart(sc))
			want := noted(t, first.fork(0), undisturbed)
			if want.waves < 2 || want.longest == nil || want.downtime.Waves != want.waves || len(want.arrived) != want.waves {
				t.Fatalf("%+v", want)
			}
			for _, by := range []disturbance{otherWriters, lostAnswers} {
				got := noted(t, first.fork(0), by)
				for k := range got.arrived { // what is refused, or seems to be, is sent again
					if k < len(want.arrived) && got.arrived[k].Writes >= want.arrived[k].Writes {
						got.arrived[k].Writes = want.arrived[k].Writes
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %+v, expected %+v", by, got, want)
				}
			}
		})
	}
}

type disturbance string

const (
	undisturbed  disturbance = ""
	otherWriters disturbance = "others write the journal"
	lostAnswers  disturbance = "answers are lost"
)

type notes struct {
	waves    int
	longest  *metav1.Duration
	downtime *journal.Downtime
	arrived  []journal.Wave
}

// clock advances by a second with every write to a set or a budget. When the claims and volumes of a wave are written
// depends on what else goes on.
func (w *world) clock() time.Time {
	seconds := int64(1e9)
	for _, a := range w.acts {
		if a.kind == "StatefulSet" || a.kind == "PodDisruptionBudget" {
			seconds++
		}
	}
	return time.Unix(seconds, 0)
}

// noted moves a set by that clock, and returns what the journal records of it at the end.
func noted(t *testing.T, w *world, by disturbance) (out notes) {
	t.Helper()
	slots := wavelimit.New(1)
	overlapping := slots.Of(w.plan)
	r, e := w.begin(t, plans.Move)
	r.at = func(int) fault {
		if by == lostAnswers && r.now.kind == "ConfigMap" {
			return lostAnswer
		}
		return ""
	}
	e.Permit, e.Now = slots.Of(w.plan), w.clock
	rounds := 0
	for p := (engine.Progress{}); p.Kind != engine.Finished; rounds++ {
		var err error
		if p, err = e.Advance(t.Context()); err != nil && by == undisturbed || p.Kind == engine.Blocked || rounds > 500 {
			t.Fatalf("%+v: %v", p, err)
		}
		w.rest()
		if p.Kind == engine.Advanced && p.Step.Op == plans.Relax {
			out.waves++
			overlapping.Retain(plans.Source)
		}
		if p.Queued {
			between(t, w)
			overlapping.Release()
		}
		if by == otherWriters {
			w.change(t, func(j *journal.Journal) error { j.Waiting += "."; return nil })
		}
	}
	out.longest, out.downtime = w.journal.LongestTight, w.journal.Downtime
	out.arrived = slices.Clone(w.journal.Timeline.Waves)
	for k := range out.arrived {
		out.arrived[k].Nodes = nil // the scheduler picks them
	}
	return out
}

// between requires a journal without a wave under way.
func between(t *testing.T, w *world) {
	t.Helper()
	step, began, _ := w.journal.Next(w.plan)
	if j := w.journal; j.TightSince != nil || !j.Left().IsZero() || step.Op != plans.Tighten || began {
		t.Fatalf("between two waves the journal says %+v", j)
	}
}

// A pause between two waves does not leave the last wave under way.
func TestAPausedPlanHasNoWaveUnderWay(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		w := newWorld(apart(sc))
		r, e := w.begin(t, plans.Move)
		e.Now = w.clock
		w.until(t, r, e, plans.Relax)
		w.pause(t, true)
		for p := (engine.Progress{}); p.Kind != engine.Paused; w.rest() {
			var err error
			if p, err = e.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		between(t, w)
		if d := w.journal.Downtime; d == nil || d.Waves != 1 {
			t.Errorf("%s: paused after a wave, with a downtime of %+v", name, d)
		}
	}
}
