package sim

import (
	"reflect"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// What a process notes of a wave is the same whether or not others write the journal meanwhile or the
// answers to its own writes are lost, and who reads it between two waves finds none under way.
func TestWhatIsNotedOfAWaveOutlivesOtherWriters(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			first := newWorld(sc)
			want := noted(t, first.fork(0), undisturbed)
			if want.waves < 2 || want.longest == nil || want.downtime.Waves != want.waves {
				t.Fatalf("%+v", want)
			}
			for _, by := range []disturbance{otherWriters, lostAnswers} {
				if got := noted(t, first.fork(0), by); !reflect.DeepEqual(got, want) {
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
	longest  any
	downtime *plans.Downtime
}

// noted moves a set, by a clock that goes on with every write to a guarded object, and gives what the
// journal has of it in the end.
func noted(t *testing.T, w *world, by disturbance) (out notes) {
	t.Helper()
	slots := orchestrator.NewSlots(1)
	rival := slots.Of(w.plan)
	r := w.process()
	e, err := r.takeOver(t.Context(), plans.Move)
	if err != nil {
		t.Fatal(err)
	}
	r.at = func(int) fault {
		if by == lostAnswers && r.now.kind == "ConfigMap" {
			return lostAnswer
		}
		return ""
	}
	e.Slot, e.Now = slots.Of(w.plan), func() time.Time { return time.Unix(1e9+int64(len(w.acts)), 0) }
	home := orchestrator.NewStore(w.on[plans.Destination], green, planName)
	rounds := 0
	for p := (orchestrator.Progress{}); p.Kind != orchestrator.Finished; rounds++ {
		if p, err = e.Advance(t.Context()); err != nil && by == undisturbed || p.Kind == orchestrator.Held || rounds > 5000 {
			t.Fatalf("%+v: %v", p, err)
		}
		w.rest()
		if p.Kind == orchestrator.Advanced && p.Step.Op == plans.Relax {
			out.waves++
			rival.Keep(plans.Source)
		}
		if p.Queued {
			if j := w.journal; j.Tight != nil || !j.Left().IsZero() || j.Done != p.Step.Seq-1 {
				t.Fatalf("waiting before step %d, and the journal says %+v", p.Step.Seq, j)
			}
			rival.Leave()
		}
		if by == otherWriters {
			if err := home.Change(t.Context(), w.plan, func(j *plans.Journal) error { j.Waits += "."; return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l := w.journal.Longest; l != nil {
		out.longest = *l
	}
	out.downtime = w.journal.Downtime
	return out
}

// A pause between two waves does not leave the last one under way.
func TestAPausedPlanHasNoWaveUnderWay(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		w := newWorld(sc)
		r := w.process()
		e, err := r.takeOver(t.Context(), plans.Move)
		if err != nil {
			t.Fatal(err)
		}
		e.Now = func() time.Time { return time.Unix(1e9+int64(len(w.acts)), 0) }
		w.until(t, r, e, plans.Relax)
		home := orchestrator.NewStore(w.on[plans.Destination], green, planName)
		if err := home.Change(t.Context(), w.plan, func(j *plans.Journal) error { j.Paused = true; return nil }); err != nil {
			t.Fatal(err)
		}
		for p := (orchestrator.Progress{}); p.Kind != orchestrator.Paused; w.rest() {
			if p, err = e.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if j := w.journal; j.Tight != nil || !j.Left().IsZero() || j.Downtime == nil || j.Downtime.Waves != 1 {
			t.Errorf("%s: paused, and the journal says %+v", name, j)
		}
	}
}
