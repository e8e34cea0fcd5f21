package sim

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// change writes into the journal as a person's command does.
func (w *world) change(t *testing.T, what func(*plans.Journal) error) {
	t.Helper()
	home := orchestrator.NewStore(w.on[plans.Destination], green, planName)
	if err := home.Change(t.Context(), w.plan, what); err != nil {
		t.Fatal(err)
	}
}

// pause asks for a pause, or for an end of it.
func (w *world) pause(t *testing.T, yes bool) {
	t.Helper()
	w.change(t, func(j *plans.Journal) error { j.Paused = yes; return nil })
}

func TestAPauseTakesEffectWithNoOrdinalInFlight(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		first := newWorld(sc)
		want := goldenOf(t, first.fork(0), journey{plans.Move})
		for n := range want.writes {
			w := first.fork(uint64(n))
			dieAt(t, w, n, crashAfter)
			w.pause(t, true)
			got, err := w.process().run(t.Context(), plans.Move, nil)
			if err != nil || got.kind != orchestrator.Paused && got.kind != orchestrator.Finished {
				t.Fatalf("%s, write %d: ended with %q (%v), want a pause", name, n, got, err)
			}
			if a, b := w.slice(plans.Source), w.slice(plans.Destination); a.Start+a.Replicas != b.Start {
				t.Errorf("%s, write %d: paused with %s and %s", name, n, a, b)
			}
			w.pause(t, false)
			walk(t, w, plans.Move, nil)
			w.rest()
			unbroken(t, w)
		}
	}
}
