package engine

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// The budgets stay tight between two waves only while nothing is in the way of the next one, and nobody needs them open.
func TestAWaveFollowsOnlyWhenItCanGoAtOnce(t *testing.T) {
	cordoned := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	for name, c := range map[string]struct {
		tighten plans.Observation
		objects []client.Object
		before  func(*testing.T, *Engine)
		want    plans.Op // the step that is looked at last
	}{
		"it can go":                      {tighten: plans.Done(), want: plans.Tighten},
		"its budgets have to be written": {tighten: plans.Write("tighten", plans.Undo{}, func(context.Context) error { return nil }), want: plans.Tighten},
		"it has to wait":                 {tighten: plans.Wait(reasons.OrdinalDown, "pod web-1"), want: plans.Relax},
		"it cannot go":                   {tighten: plans.Stop(reasons.BudgetChanged, "edited"), want: plans.Relax},
		"a node is drained":              {tighten: plans.Done(), objects: []client.Object{cordoned}, want: plans.Relax},
		"budgets are to be open between": {tighten: plans.Done(), before: func(_ *testing.T, e *Engine) { e.Without(SkipRelax) }, want: plans.Relax},
		"the plan is about to pause": {tighten: plans.Done(), before: func(t *testing.T, e *Engine) {
			t.Helper()
			changed(t, e, func(j *journal.Journal) { j.PauseAt = e.plan.End() - 1 })
		}, want: plans.Relax},
		"a plan that began earlier waits for its turn": {tighten: plans.Done(), before: func(_ *testing.T, e *Engine) {
			limit := wavelimit.New(1)
			earlier := limit.Of(e.plan)
			e.Permit = limit.Of(e.plan)
			e.Permit.Acquire()
			earlier.Acquire()
		}, want: plans.Relax},
		"a plan that began later waits for its turn": {tighten: plans.Done(), before: func(_ *testing.T, e *Engine) {
			limit := wavelimit.New(1)
			e.Permit = limit.Of(e.plan)
			e.Permit.Acquire()
			limit.Of(e.plan).Acquire()
		}, want: plans.Tighten},
	} {
		t.Run(name, func(t *testing.T) {
			e, relax := scripted(t, plans.Relax, see(plans.Done()), c.objects...)
			changed(t, e, func(j *journal.Journal) { j.Begun = relax.Seq })
			last := plans.Op("")
			for op := range e.observer.looks {
				e.observer.looks[op] = func(_ context.Context, m plans.StepContext) (plans.Observation, error) {
					if last = op; op != plans.Tighten {
						return plans.Done(), nil
					}
					if !m.Follows {
						t.Errorf("it is not said to follow: %+v", m)
					}
					return c.tighten, nil
				}
			}
			if c.before != nil {
				c.before(t, e)
			}
			p, err := e.Advance(t.Context())
			if err != nil || last != c.want || p.Step.Op != c.want {
				t.Fatalf("%+v, %v; looked at %s last, expected %s", p, err, last, c.want)
			}
			if c.want == plans.Relax {
				return
			}
			if j := stored(t, e); p.Kind == Wrote && (j.Begun != relax.Seq+1 || j.Done != relax.Seq) || p.Kind != Wrote && j.Begun != relax.Seq {
				t.Errorf("%s, and the journal has begun %d and done %d", p.Kind, j.Begun, j.Done)
			}
		})
	}
}

// A pause that arrives just as the next wave follows finds the budgets tight: their Relax was left out, and the intent of
// the next wave could not be stored. They are opened before the plan rests (L5), and so where the run ends otherwise.
func TestTheBudgetsOfAWaveThatDidNotFollowAreOpened(t *testing.T) {
	for name, end := range map[string]func(*Engine) error{
		"paused":  func(e *Engine) error { _, err := e.Advance(t.Context()); return err },
		"stopped": func(e *Engine) error { return e.Ease(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			e, relax := scripted(t, plans.Relax, see(plans.Done()))
			changed(t, e, func(j *journal.Journal) { j.Begun = relax.Seq })
			e.observer.looks[plans.Tighten] = func(context.Context, plans.StepContext) (plans.Observation, error) {
				changed(t, e, func(j *journal.Journal) { j.Paused = true })
				return plans.Write("tighten", plans.Undo{}, func(context.Context) error {
					t.Error("tightened, though the plan is to pause")
					return nil
				}), nil
			}
			opened := 0
			e.way.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
				if j := stored(t, e); j.Done != relax.Seq || j.Begun != relax.Seq+1 {
					t.Errorf("opened with done %d and begun %d, expected %d and %d", j.Done, j.Begun, relax.Seq, relax.Seq+1)
				}
				if opened > 0 {
					return plans.Done(), nil
				}
				return plans.Write("open", plans.Undo{}, func(context.Context) error { opened++; return nil }), nil
			}
			if p, err := e.Advance(t.Context()); err != nil || p.Kind == Paused {
				t.Fatalf("%+v, %v", p, err)
			}
			if err := end(e); err != nil || opened != 1 {
				t.Errorf("%v, opened %d times", err, opened)
			}
		})
	}
}
