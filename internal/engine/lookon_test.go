package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// keptFor returns a look that waits for a claim until some time has passed, and then sees something else.
func keptFor(d time.Duration, then plans.Observation) plans.Look {
	began := time.Now() //nolint:forbidigo // that of the bubble
	return func(context.Context, plans.StepContext) (plans.Observation, error) {
		if time.Since(began) < d {
			return plans.Wait(reasons.ClaimKept, "claim data-web-2 is kept by a snapshot"), nil
		}
		return then, nil
	}
}

// attended carries the plan out as an orchestrator does, by the clock of the bubble.
func attended(ctx context.Context, e *Engine, report func(Progress)) (Progress, error) {
	e.Now = time.Now //nolint:forbidigo // that of the bubble
	e.way.look = func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil }
	return e.Run(ctx, Options{Wake: clusters.NewChangeSignal(), StepTimeout: 10 * time.Minute, LookOn: true, Report: func(p Progress, _ error) { report(p) }})
}

// A plan that is blocked only because a wait with nothing in flight was too long continues by itself when that has ended,
// where a process looks on. What it finds then counts as ever.
func TestAPlanThatWaitedTooLongGoesOnByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() //nolint:forbidigo // that of the bubble
		e, tighten := scripted(t, plans.Tighten, keptFor(time.Hour/2, plans.Stop(reasons.BudgetChanged, "somebody changed the budget")))
		voided, told := 0, []Kind(nil)
		e.Voided = func() { voided++ }
		time.AfterFunc(11*time.Minute, func() {
			if j := stored(t, e); j.BlockedID != reasons.ClaimKept || !j.LooksOn() || j.Idle(e.plan) || j.Begun >= tighten.Seq {
				t.Errorf("after 11 minutes: %+v", j)
			}
		})
		last, err := attended(t.Context(), e, func(p Progress) {
			if p.Kind == Blocked || p.Kind == Continued {
				told = append(told, p.Kind)
			}
		})
		if took, j := time.Since(began), stored(t, e); err != nil || last.ID != reasons.BudgetChanged || j.LooksOn() || took < time.Hour/2 || took > 31*time.Minute {
			t.Errorf("%+v after %s, %v: %+v", last, took, err, j)
		}
		if want := []Kind{Blocked, Continued}; voided == 0 || !slices.Equal(told[:min(2, len(told))], want) {
			t.Errorf("voided %d times, told %q", voided, told)
		}
	})
}

// A command ends, as it always did: a person or a script waits for it.
func TestACommandEndsWhenItHasWaitedTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := scripted(t, plans.Tighten, keptFor(time.Hour, plans.Done()))
		last, _ := runs(t, e, time.Hour)
		if j := stored(t, e); last.Kind != Blocked || last.ID != reasons.ClaimKept || j.LooksOn() || !j.Idle(e.plan) {
			t.Errorf("%+v: %+v", last, j)
		}
	})
}

// Another reason is another wait: the plan goes on, and is blocked again when that has been too long as well.
func TestAReasonThatComesBackBlocksAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now() //nolint:forbidigo // that of the bubble
		e, _ := scripted(t, plans.Tighten, func(context.Context, plans.StepContext) (plans.Observation, error) {
			switch passed := time.Since(began); {
			case passed > time.Hour:
				return plans.Stop(reasons.BudgetChanged, "somebody changed the budget"), nil
			case passed > 20*time.Minute && passed < 25*time.Minute:
				return plans.Wait(reasons.OrdinalDown, "pod web-1 is not Ready"), nil
			}
			return plans.Wait(reasons.ClaimKept, "claim data-web-2 is kept by a snapshot"), nil
		})
		var told []Kind
		if last, err := attended(t.Context(), e, func(p Progress) {
			if p.Kind == Blocked || p.Kind == Continued {
				told = append(told, p.Kind)
			}
		}); err != nil || last.ID != reasons.BudgetChanged || len(told) < 4 || told[1] != Continued || told[2] != Blocked || told[3] != Continued {
			t.Errorf("%+v, %v, told %q", last, err, told)
		}
	})
}

// What only a step sees that has written something cannot be looked for with open budgets: the plan stays blocked.
func TestAWaitThatOnlyTightBudgetsShowStaysBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, shrink := scripted(t, plans.Shrink, keptFor(24*time.Hour, plans.Done()))
		e.observer.looks[plans.Tighten] = see(plans.Done())
		changed(t, e, func(j *journal.Journal) { j.Begun = shrink.Seq - 1 })
		last, err := attended(t.Context(), e, func(Progress) {})
		if j := stored(t, e); err != nil || last.Kind != Blocked || last.ID != reasons.ClaimKept || j.LooksOn() || !j.Idle(e.plan) {
			t.Errorf("%+v, %v: %+v", last, err, j)
		}
	})
}

// What the user decides while the plan is blocked comes first, as does another process that has taken the plan over.
func TestAPlanThatLooksOnHearsTheUser(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*journal.Journal)
		want   Kind
		held   bool
	}{
		"a pause":                      {func(j *journal.Journal) { j.Paused = true }, Paused, false},
		"another process":              {func(j *journal.Journal) { j.Epoch++ }, Blocked, true},
		"it is blocked by another one": {func(j *journal.Journal) { j.Block(reasons.NoConsent, "no consent") }, Blocked, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := scripted(t, plans.Tighten, keptFor(time.Hour, plans.Stop(reasons.BudgetChanged, "it went on")))
			time.AfterFunc(20*time.Minute, func() { changed(t, e, c.change) })
			last, err := attended(t.Context(), e, func(Progress) {})
			if j := stored(t, e); err != nil || last.Kind != c.want || (j.Blocked != "") != c.held {
				t.Errorf("%s: %+v, %v: %+v", name, last, err, j)
			}
		})
	}
}

// A process that dies while the plan is blocked is followed by one that looks on. The plan stays blocked meanwhile, and no
// wait begins anew.
func TestTheNextProcessLooksOnToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := scripted(t, plans.Tighten, keptFor(time.Hour, plans.Stop(reasons.BudgetChanged, "it went on")))
		ctx, kill := context.WithTimeout(t.Context(), 20*time.Minute)
		defer kill()
		if _, err := attended(ctx, e, func(Progress) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		before := stored(t, e)
		if err := e.TakeOver(t.Context(), plans.Move); err != nil {
			t.Fatal(err)
		}
		if j := stored(t, e); !before.LooksOn() || !j.LooksOn() || j.Blocked != before.Blocked || j.Epoch == before.Epoch {
			t.Fatalf("%+v, and before %+v", j, before)
		}
		blocks := 0
		if last, err := attended(t.Context(), e, func(p Progress) {
			if p.Kind == Blocked && p.ID == reasons.ClaimKept {
				blocks++
			}
		}); err != nil || last.ID != reasons.BudgetChanged || blocks > 0 {
			t.Errorf("%+v, %v, blocked %d times", last, err, blocks)
		}
	})
}

// An outage meanwhile changes nothing. A refusal that lasts is a reason of its own, and stays until the user acts.
func TestAnOutageWhileThePlanLooksOn(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want reasons.ID
	}{
		"no answer":  {errors.New("connection refused"), reasons.BudgetChanged},
		"no right":   {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right")), reasons.RequestRefusedByAPI},
		"no machine": {apierrors.NewServiceUnavailable("restarting"), reasons.BudgetChanged},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, look := time.Now(), keptFor(3*time.Hour, plans.Stop(reasons.BudgetChanged, "it went on")) //nolint:forbidigo // that of the bubble
			e, _ := scripted(t, plans.Tighten, func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
				if passed := time.Since(began); passed > 20*time.Minute && passed < 2*time.Hour {
					return plans.Observation{}, c.err
				}
				return look(ctx, m)
			})
			last, err := attended(t.Context(), e, func(Progress) {})
			if err != nil || last.ID != c.want {
				t.Errorf("%s: %+v, %v", name, last, err)
			}
		})
	}
}

// Whoever looks at a plan that is blocked, and continues by itself, learns both. It is not at rest.
func TestTheStatusSaysThatABlockedPlanContinuesByItself(t *testing.T) {
	command := func(verb string) string { return "`" + verb + " web`" }
	p := planstest.Named(t, "abc")
	for name, c := range map[string]struct {
		change func(*journal.Journal)
		asked  requests.Requested
		looks  bool
		rests  bool
		want   string
	}{
		"it looks on":              {func(*journal.Journal) {}, requests.Requested{Work: true}, true, false, "it continues by itself when what it waits for has ended; otherwise: `resume web` or `abort web`"},
		"there is a request":       {func(*journal.Journal) {}, requests.Requested{Work: true, Command: plans.Command{Observed: &plans.Observed{}}}, false, false, ""},
		"it is blocked for a user": {func(j *journal.Journal) { j.Block(reasons.BudgetChanged, "it was changed") }, requests.Requested{}, false, true, "`resume web` or `abort web`"},
	} {
		j := journal.New(p)
		j.Detached, j.Epoch = true, 2
		j.Block(reasons.ClaimKept, "claim a is kept (waited 10m)")
		j.Awaits = "claim a is kept"
		c.change(j)
		v := &View{Holder: "me"}
		v.describe(p, j, c.asked, command)
		if v.State != "Blocked" || v.LooksOn() != c.looks || v.Rests() != c.rests || c.want != "" && v.Next != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
