package simulation

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// The checks before a wave run again if the wave has waited since: for a pod, under tightened budgets, or for
// its turn. Consent may be withdrawn while a pod is repaired.
func TestAWaveThatHasWaitedIsCheckedAgain(t *testing.T) {
	for name, waits := range map[string]func(*testing.T, *world, *process, *engine.Engine, *wavelimit.Permit) (end func()){
		"for a pod, before Tighten": func(_ *testing.T, w *world, _ *process, _ *engine.Engine, _ *wavelimit.Permit) func() {
			return w.sick(plans.Source, 0)
		},
		"for a pod, before Shrink": func(t *testing.T, w *world, r *process, e *engine.Engine, _ *wavelimit.Permit) func() {
			t.Helper()
			w.until(t, r, e, plans.Tighten)
			return w.sick(plans.Source, 0)
		},
		"for its turn": func(_ *testing.T, _ *world, _ *process, _ *engine.Engine, other *wavelimit.Permit) func() {
			other.Acquire()
			return other.Release
		},
		"for nothing": func(*testing.T, *world, *process, *engine.Engine, *wavelimit.Permit) func() { return func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(apart(threeOrdinals(plans.Rebind)))
				w.foreign = true
				r, e := w.begin(t, plans.Move)
				asked, bad := 0, ""
				e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
					asked++
					return wavecheck.Answer{Why: bad}, nil
				}
				e.Now = time.Now
				slots := wavelimit.New(1)
				e.Permit = slots.Of(w.plan)
				w.until(t, r, e, plans.Relax)
				w.rest()
				asked = 0
				end := waits(t, w, r, e, slots.Of(w.plan))
				for range 20 {
					if _, err := e.Advance(t.Context()); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					w.rest()
					if name == "for nothing" {
						break
					}
					<-time.After(10 * time.Second)
				}
				if name != "for nothing" {
					bad = "it was withdrawn"
				}
				end()
				w.rest()
				p := w.leaves(t, e)
				if bad != "" && (p.Kind != engine.Blocked || !strings.Contains(p.Reason, bad)) || bad == "" && (p.Kind != engine.Wrote || asked > 1) {
					t.Errorf("it goes on: %+v; asked %d times", p, asked)
				}
			})
		})
	}
}

// leaves advances until an ordinal is taken down or the plan is blocked.
func (w *world) leaves(t *testing.T, e *engine.Engine) (p engine.Progress) {
	t.Helper()
	for p.Kind != engine.Blocked && (p.Kind != engine.Wrote || p.Step.Op != plans.Shrink) {
		var err error
		if p, err = e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.rest()
	}
	return p
}
