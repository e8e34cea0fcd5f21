package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/recovery"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// lose deletes the record of the plan: the journal, or all of it.
func (w *world) lose(all bool) {
	w.app.again = true // what the gates have answered is lost with it: those of the last wave are asked again
	home := w.on[plans.Destination]
	home.remove(key{"ConfigMap", green, records.RecordName(planName) + "-journal"})
	if all {
		home.remove(key{"ConfigMap", green, records.RecordName(planName)})
	}
}

// recovers rebuilds the journal as the command does. It requires that the new journal claims no more than was
// done.
func (w *world) recovers(t *testing.T, said recovery.Said) {
	t.Helper()
	on := clusters.Clusters{}
	before := w.version()
	for side, s := range w.on {
		on[side] = s
	}
	said.Who = "sim"
	got, err := recovery.Recovery{Plan: w.plan, On: on, Said: said}.Look(t.Context())
	if err != nil && len(w.options.Templates) == 0 && w.journal.Flight != nil { // no volume tells on which node its pods ran
		for o := range w.journal.Flight.Ordinals.All() {
			said.Ended = append(said.Ended, w.plan.Pod(plans.Source, o))
		}
		got, err = recovery.Recovery{Plan: w.plan, On: on, Said: said}.Look(t.Context())
	}
	if err != nil {
		t.Fatalf("nothing is recovered: %v; the journal was %+v", err, w.journal)
	}
	if now := w.version(); now != before {
		t.Errorf("the look has written something")
	}
	if err := records.NewStore(w.on[plans.Destination], green, planName).Restore(t.Context(), w.plan, got.Journal); err != nil {
		t.Fatal(err)
	}
	if lost := w.journal; got.Journal.Epoch <= lost.Epoch || got.Journal.Leg.First <= lost.Begun || got.Journal.Blocked == "" {
		t.Errorf("S9: the journal %+v was lost, and %+v was recovered", lost, got.Journal)
	}
	w.journal = *got.Journal
}

// Whenever a process dies and the record of its plan is lost, the record is rebuilt from the marks. Both
// directions, onward and back, then lead to a correct end.
func TestALostJournalIsRebuiltAtAnyWrite(t *testing.T) {
	t.Parallel()
	for name, sc := range recovered() {
		for _, j := range []journey{{plans.Move}, {plans.Move, plans.Abort}, {plans.Move, plans.Finalize}} {
			t.Run(fmt.Sprintf("%s %s", name, j.name()), func(t *testing.T) {
				t.Parallel()
				first := newWorld(sc)
				done := goldenOf(t, newWorld(sc), journey{plans.Move, plans.Finalize}).end
				direction := j[len(j)-1]
				for _, c := range j[:len(j)-1] {
					walk(t, first, c, nil)
				}
				last := first.fork(0)
				walk(t, last, direction, nil)
				for n := first.writes; n < last.writes; n++ {
					w := first.fork(uint64(n))
					r := w.process()
					r.at = once(n, crashAfter)
					if _, err := r.run(t.Context(), direction, nil); !errors.Is(err, errDead) {
						continue
					}
					w.loses(t, direction, n, done)
					if t.Failed() {
						t.Fatalf("that was: after write %d of %d", n, last.writes)
					}
				}
			})
		}
	}
}

// fences reports whether the latest process has marked a set.
func (w *world) fences() bool {
	for _, side := range plans.Sides() {
		if set, ok := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName); ok {
			if s, marked := plans.Stamped(set); marked && s.Epoch == w.journal.Epoch {
				return true
			}
		}
	}
	return false
}

// The end of a step that has just written is not proven: the recovered journal starts at or before that step.
func TestARecoveredJournalSaysNoMoreThanTheMarksProve(t *testing.T) {
	t.Parallel()
	for direction, steps := range map[plans.Direction]map[plans.Op][2]string{ // in one cluster, in two
		plans.Move: {
			plans.Freeze: {"Freeze", "Freeze"}, plans.Protect: {"Freeze", "Freeze"}, plans.Tighten: {"Freeze", "Freeze"}, plans.Shrink: {"2/Shrink", "2/Shrink"}, plans.Release: {"2/Shrink", "2/Shrink"},
			plans.Reserve: {"2/Reserve", "Freeze"}, plans.Claim: {"2/Claim", "2/Shrink"}, plans.Grow: {"2/Grow", "2/Grow"}, plans.Relax: {"2/Grow", "2/Grow"},
		},
		plans.Abort: {
			plans.Tighten: {"0/Tighten", "0/Tighten"}, plans.Shrink: {"0/Shrink", "0/Shrink"}, plans.Release: {"0/Shrink", "0/Shrink"},
			plans.Reserve: {"0/Shrink", "0/Shrink"}, plans.Claim: {"0/Shrink", "0/Shrink"}, plans.Grow: {"0/Grow", "0/Grow"}, plans.Relax: {"0/Grow", "0/Grow"},
			plans.Retire: {"Retire", "Retire"}, plans.Settle: {"Retire", "Retire"}, plans.Thaw: {"Retire", "Retire"},
		},
		plans.Finalize: {plans.Retire: {"Retire", "Retire"}, plans.Settle: {"Retire", "Retire"}, plans.Thaw: {"Retire", "Retire"}},
	} {
		for op, want := range steps {
			for i, mode := range modes() {
				w := newWorld(apart(threeOrdinals(mode)))
				if direction != plans.Move {
					walk(t, w, plans.Move, nil)
				}
				_, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool { return p.Kind == engine.Wrote && p.Step.Op == op })
				if err != nil {
					t.Fatal(err)
				}
				w.lose(true)
				w.recovers(t, recovery.Said{})
				if next, _, _ := w.journal.Next(w.plan); next.ID() != want[i] || w.journal.Leg.Direction != direction {
					t.Errorf("%s, %s, after a write of %s: the next step of the %s is %s, expected %s", mode, direction, op, w.journal.Leg.Direction, next.ID(), want[i])
				}
			}
		}
	}
}

// A process that does not know that the journal was lost writes nothing after another journal was recovered
// (S9).
func TestAProcessOfTheLostJournalWritesNothingMore(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, op := range []plans.Op{plans.Tighten, plans.Shrink, plans.Vacate, plans.Reserve, plans.Claim} {
			w := newWorld(threeOrdinals(mode))
			r, e := w.begin(t, plans.Move)
			w.until(t, r, e, op)
			w.lose(true)
			w.recovers(t, recovery.Said{})
			before := len(w.acts)
			p, err := e.Advance(t.Context())
			for n := 0; err == nil && !p.Overtaken && n < 100; n++ {
				w.others(r, p.Kind)
				p, err = e.Advance(t.Context())
			}
			if err != nil || !p.Overtaken || len(w.acts) != before {
				t.Errorf("%s, after %s: it answers %+v (%v), and writes %d times", mode, op, p, err, len(w.acts)-before)
			}
			w.leads(t, plans.Abort, plans.Assurance{}, nil)
		}
	}
}

func recovered() map[string]options {
	out := map[string]options{}
	all := variants()
	if long() {
		maps.Copy(all, shapes())
		for k, name := range slices.Sorted(maps.Keys(all)) {
			if everyCase.plays(k) {
				out[name] = all[name]
			}
		}
	}
	for _, mode := range modes() {
		out[string(mode)] = threeOrdinals(mode)
		bare := "no claim templates, " + string(mode)
		out[bare] = all[bare]
	}
	return out
}

// loses loses the record of the plan, and tries every direction that is possible afterwards.
func (w *world) loses(t *testing.T, direction plans.Direction, n int, done map[string]any) {
	t.Helper()
	if w.journal.Ended() || len(w.marked()) == 0 {
		return
	}
	ways := []plans.Direction{direction}
	if direction == plans.Move {
		ways = append(ways, plans.Abort)
	}
	for _, way := range ways {
		out := w.fork(uint64(n))
		if n%2 == 0 {
			out.rest() // otherwise the activity of the cluster is not finished
		}
		out.lose(n%3 != 0)
		out.recovers(t, recovery.Said{})
		goes := out.journal.Leg.Direction
		if goes != w.journal.Leg.Direction && w.fences() {
			t.Errorf("the plan was on its %s, and is recovered on its %s", w.journal.Leg.Direction, goes)
		}
		if way == plans.Finalize { // the request may be lost, if nothing was done for it
			way = goes
		}
		out.leads(t, way, plans.Assurance{}, done)
		if t.Failed() {
			raw, _ := json.Marshal(w.journal)
			again, _ := json.Marshal(out.journal)
			t.Logf("%s\nlost: %s\nin the end: %s", way, raw, again)
			return
		}
	}
}
