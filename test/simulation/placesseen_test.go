package simulation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// status is what `status` reads.
func (w *world) status(t *testing.T) *engine.View {
	t.Helper()
	on := clusters.Clusters{}
	for side, s := range w.on {
		on[side] = s
	}
	home := records.NewStore(w.on[plans.Destination], green, planName)
	v, err := engine.Status(t.Context(), w.plan, home, on, nil, func() time.Time { return time.Unix(0, 0) }, func(verb string) string { return verb })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// toTheEnd carries the plan out with a clock, so that the timeline has its waves.
func (w *world) toTheEnd(t *testing.T, direction plans.Direction) {
	t.Helper()
	e, err := w.process().takeOver(t.Context(), direction)
	if err != nil {
		t.Fatal(err)
	}
	e.Now = w.clock
	for range 10_000 {
		p, err := e.Advance(t.Context())
		switch {
		case p.Kind == engine.Finished:
			return
		case err != nil || p.Kind == engine.Blocked:
			t.Fatalf("%+v: %v", p, err)
		}
		w.rest()
	}
	t.Fatal("it never ends")
}

// While a wave waits for its place, the status says since when, and that everything is up. The timeline has the node of each
// place for good, beside the node of the pod.
func TestThePlacesAreShownAndRecorded(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		w := readyFor(t, placed(inWaves(plans.Reimport), plans.Warm), direction)
		w.checked = false
		from := w.origin(direction)
		cordon := func(is bool) {
			for _, n := range all[*corev1.Node](w.on[from.Other()]) {
				next := clone(n)
				next.Spec.Unschedulable = is
				w.on[from.Other()].put(next)
			}
			w.rest()
		}
		cordon(true)
		e, err := w.process().takeOver(t.Context(), direction)
		if err != nil {
			t.Fatal(err)
		}
		waitsFor(t, w, e)
		says := w.status(t).Places
		if says == nil || !strings.Contains(says.Message, " waits since ") || !strings.Contains(says.Message, "with every ordinal up and nothing in flight") || len(says.Taken) == 0 || says.Taken[0].Waits == "" {
			t.Errorf("%s: while it waits, the status says %+v", direction, says)
		}
		cordon(false)
		w.toTheEnd(t, direction)
		unbroken(t, w)
		moved := placesRecorded(t, w, from.Other())
		if moved != int(w.plan.Count) || len(w.journal.Timeline.Placed) > 0 {
			t.Errorf("%s: %d of %d ordinals are recorded; %v is left", direction, moved, w.plan.Count, w.journal.Timeline.Placed)
		}
		if says := w.status(t).Places; says != nil && len(says.Taken) > 0 {
			t.Errorf("%s: at the end the status says %+v", direction, says)
		}
	}
}

// placesRecorded counts the ordinals that have come to a side by the timeline, and requires the place of each.
func placesRecorded(t *testing.T, w *world, to plans.Side) (moved int) {
	t.Helper()
	for _, wave := range w.journal.Timeline.Waves {
		if wave.To != to {
			continue
		}
		for k := range wave.Nodes {
			if moved++; k >= len(wave.Places) || wave.Places[k] == "" {
				t.Errorf("the places of %s to the %s are not recorded: %+v", wave.Ordinals, to, wave)
			}
		}
	}
	return moved
}

// A word lets an ordinal leave without the proof of its place, and no other one in a move. Nothing of its placeholder is left.
func TestAWordLetsAnOrdinalLeaveWithoutItsPlace(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		w := readyFor(t, placed(threeOrdinals(plans.Reimport), plans.Warm), direction)
		w.options.Placeless = true
		from := w.origin(direction)
		waits := func(word plans.Assurance, serve int32) {
			t.Helper()
			r := w.process()
			r.word = word
			e, err := r.takeOver(t.Context(), direction)
			if err != nil {
				t.Fatal(err)
			}
			if got := waitsFor(t, w, e); w.up(from) != serve || !strings.Contains(got.Reason, "does not have its place yet") {
				t.Fatalf("%s: %d of %d serve where they were, and it waits for: %s", direction, w.up(from), serve, got.Reason)
			}
			unbroken(t, w)
		}
		waits(plans.Assurance{}, 3)
		if direction == plans.Move {
			waits(plans.Assurance{SkipPlaces: true}, 2)
			waits(plans.Assurance{}, 2)
			waits(plans.Assurance{SkipPlaces: true}, 1)
			continue
		}
		r := w.process()
		r.word = plans.Assurance{SkipPlaces: true}
		if got, err := r.run(t.Context(), direction, nil); err != nil || got.kind != engine.Finished {
			t.Errorf("%s ends with %v (%v)", direction, got, err)
		}
		w.rest()
		if left := len(w.placeholders(plans.Source)) + len(w.placeholders(plans.Destination)); left > 0 {
			t.Errorf("%d placeholders are left", left)
		}
	}
}
