package sim

import (
	"testing"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAPauseTakesEffectWithNoOrdinalInFlight(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		first := newWorld(sc)
		want := goldenOf(t, first.fork(0), journey{plans.Move})
		for n := range want.writes {
			w := first.fork(uint64(n))
			dieAt(t, w, n, crashAfter)
			wish := func(paused bool) {
				home := orchestrator.NewStore(w.on[plans.Destination], green, planName)
				if err := home.Change(t.Context(), w.plan, func(j *plans.Journal) error { j.Paused = paused; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			wish(true)
			got, err := w.process().run(t.Context(), plans.Move, nil)
			if err != nil || got.kind != orchestrator.Paused && got.kind != orchestrator.Finished {
				t.Fatalf("%s, write %d: ended with %q (%v), want a pause", name, n, got, err)
			}
			if a, b := w.slice(plans.Source), w.slice(plans.Destination); a.Start+a.Replicas != b.Start {
				t.Errorf("%s, write %d: paused with %s and %s", name, n, a, b)
			}
			wish(false)
			walk(t, w, plans.Move, nil)
			w.rest()
			unbroken(t, w)
		}
	}
}
