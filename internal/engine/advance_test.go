package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// scripted returns an engine of a plan of web[0..2] that holds the epoch 1 and comes to the step of the wave of
// ordinal 2 with this operation. Every look sees its step as the test states.
func scripted(t *testing.T, op plans.Op, look plans.Look, objects ...client.Object) (*Engine, plans.Step) {
	t.Helper()
	p := planstest.Named(t, "abc")
	p.Claims = []plans.ClaimMove{{Template: "data", Mode: plans.Rebind}}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(objects...).Build()
	e := New(p, records.NewStore(api, "mall", p.Name), clusters.Clusters{plans.Source: api, plans.Destination: api})
	j := journal.New(p)
	step, _ := p.Step(j.Leg, 1)
	for step.Op != op {
		step, _ = p.Step(j.Leg, step.Seq+1)
	}
	j.Epoch, j.Done, j.Begun = 1, step.Seq-1, step.Seq-1
	if err := e.store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	e.epoch = 1
	for k := range e.observer.looks {
		e.observer.looks[k] = look
	}
	return e, step
}

// stored returns the journal as it is stored.
func stored(t *testing.T, e *Engine) *journal.Journal {
	t.Helper()
	j, _, err := e.store.Journal(t.Context(), e.plan)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// changed changes the stored journal as another process does.
func changed(t *testing.T, e *Engine, change func(*journal.Journal)) {
	t.Helper()
	err := e.store.Change(t.Context(), e.plan, func(j *journal.Journal) error { change(j); return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func see(s plans.Observation) plans.Look {
	return func(context.Context, plans.StepContext) (plans.Observation, error) { return s, nil }
}

// The intent of a step and the old values that its write destroys are stored before the write is sent (S10).
func TestTheIntentIsStoredBeforeTheWrite(t *testing.T) {
	flight := &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
	for name, begun := range map[string]bool{"the first write of a step": false, "a later write that destroys more": true} {
		var e *Engine
		var step plans.Step
		sent := 0
		e, step = scripted(t, plans.Shrink, func(context.Context, plans.StepContext) (plans.Observation, error) {
			return plans.Write("write", plans.Undo{Flight: flight}, func(context.Context) error {
				sent++
				if j := stored(t, e); j.Begun < step.Seq || j.Flight == nil {
					t.Errorf("%s: sent when the journal has begun step %d of %d, and the flight %+v", name, j.Begun, step.Seq, j.Flight)
				}
				return nil
			}), nil
		})
		if begun {
			changed(t, e, func(j *journal.Journal) { j.Begun = step.Seq })
		}
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != Wrote || sent != 1 {
			t.Errorf("%s: %+v, %v, sent %d times", name, p, err, sent)
		}
	}
}

// The checks of the whole plan, right before its first write, count for its waves as long as those of a wave do.
func TestTheChecksBeforeTheStartCountForTheFirstWaves(t *testing.T) {
	started := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		at     time.Duration
		checks *journal.Checked
		want   int
	}{
		"right after the start":  {time.Second, &journal.Checked{At: metav1.Time{Time: started}}, 0},
		"some time after it":     {time.Minute, &journal.Checked{At: metav1.Time{Time: started}}, 1},
		"nothing was checked":    {time.Second, nil, 1},
		"of the start, not anew": {6 * time.Second, &journal.Checked{At: metav1.Time{Time: started}}, 1},
	} {
		e, _ := scripted(t, plans.Shrink, see(plans.Wait(reasons.PodNotReady, "waits")))
		now := started
		e.Now, e.Checks = func() time.Time { return now }, c.checks
		asked := 0
		e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
			asked++
			return wavecheck.Answer{}, nil
		}
		now = now.Add(c.at)
		for range 2 {
			if _, err := e.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if asked != c.want {
			t.Errorf("%s: checked %d times, expected %d", name, asked, c.want)
		}
	}
}

// What one look puts together may never have been so at one time: a plan is blocked only by what two looks in a row see.
func TestAConflictCountsOnceASecondLookSeesIt(t *testing.T) {
	for name, c := range map[string]struct {
		op     plans.Op
		looks  []plans.Observation
		expect Kind
	}{
		"a step, seen once":         {plans.Release, []plans.Observation{plans.Stop(reasons.BudgetSelection, "first"), plans.Done()}, Advanced},
		"a step, seen twice":        {plans.Release, []plans.Observation{plans.Stop(reasons.BudgetSelection, "first"), plans.Stop(reasons.BudgetSelection, "first")}, Blocked},
		"a step that then has more": {plans.Release, []plans.Observation{plans.Stop(reasons.BudgetSelection, "first"), plans.Wait(reasons.PodLeaving, "waits")}, Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			seen := 0
			e, _ := scripted(t, c.op, func(context.Context, plans.StepContext) (plans.Observation, error) {
				s := c.looks[min(seen, len(c.looks)-1)]
				seen++
				return s, nil
			})
			if p, err := e.Advance(t.Context()); err != nil || p.Kind != c.expect || seen != 2 {
				t.Errorf("%+v, %v after %d looks, expected %s after 2", p, err, seen, c.expect)
			}
			if blocked := stored(t, e).Blocked != ""; blocked != (c.expect == Blocked) {
				t.Errorf("the stored plan is blocked: %v", blocked)
			}
		})
	}
}

// The same for the preparation of a wave that is about to leave.
func TestAPreparationIsInTheWayOnceASecondLookSeesIt(t *testing.T) {
	flight := plans.Undo{Flight: &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}}
	for again, expect := range map[bool]Kind{false: Wrote, true: Blocked} {
		e, _ := scripted(t, plans.Shrink, see(plans.Write("write", flight, func(context.Context) error { return nil })))
		e.plan.Source.Cluster, e.plan.Destination.Cluster = "one", "two"
		e.plan.Claims[0].Mode = plans.Reimport
		seen := 0
		e.preparation.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
			if seen++; seen > 1 && !again {
				return plans.Done(), nil
			}
			return plans.Stop(reasons.ClaimForeign, "in the way"), nil
		}
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != expect || seen != 2 {
			t.Errorf("%+v, %v after %d looks, expected %s after 2", p, err, seen, expect)
		}
	}
}

// A write that was decided before the journal changed is not sent (S9).
func TestNothingIsWrittenOnceTheJournalHasChanged(t *testing.T) {
	for name, begun := range map[string]bool{"the intent is to be stored": false, "the intent is stored": true} {
		var e *Engine
		var step plans.Step
		sent := 0
		e, step = scripted(t, plans.Release, func(context.Context, plans.StepContext) (plans.Observation, error) {
			changed(t, e, func(j *journal.Journal) { j.Epoch = 2 })
			return plans.Write("write", plans.Undo{}, func(context.Context) error { sent++; return nil }), nil
		})
		if begun {
			changed(t, e, func(j *journal.Journal) { j.Begun = step.Seq })
		}
		if _, err := e.Advance(t.Context()); err != nil || sent > 0 {
			t.Errorf("%s: %v, sent %d times", name, err, sent)
		}
		if p, err := e.Advance(t.Context()); err != nil || !p.Overtaken {
			t.Errorf("%s: %+v, %v, expected to be overtaken", name, p, err)
		}
	}
}

// The answer to a write does not decide its outcome: the next look does (S11).
func TestTheOutcomeOfAWriteIsWhatTheNextLookSees(t *testing.T) {
	for name, answer := range map[string]error{"it was accepted": nil, "it was refused": errors.New("no"), "no answer came": context.DeadlineExceeded} {
		var seen []plans.Op
		e, _ := scripted(t, plans.Release, func(_ context.Context, m plans.StepContext) (plans.Observation, error) {
			if seen = append(seen, m.Op); len(seen) > 1 {
				return plans.Done(), nil
			}
			return plans.Write("delete the claim", plans.Undo{}, func(context.Context) error { return answer }), nil
		})
		if _, err := e.Advance(t.Context()); !errors.Is(err, answer) {
			t.Errorf("%s: %v", name, err)
		}
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != Advanced || len(seen) != 2 || seen[1] != plans.Release {
			t.Errorf("%s: %+v, %v, looked at %v", name, p, err, seen)
		}
	}
}

// What looks foreign because another process has gone on does not block the plan.
func TestNothingIsBlockedOnceTheJournalHasChanged(t *testing.T) {
	var e *Engine
	e, _ = scripted(t, plans.Release, func(context.Context, plans.StepContext) (plans.Observation, error) {
		changed(t, e, func(j *journal.Journal) { j.Epoch = 2 })
		return plans.Stop(reasons.OrdinalsChanged, "it looks foreign"), nil
	})
	if p, err := e.Advance(t.Context()); err != nil || p.Kind == Blocked {
		t.Errorf("%+v, %v", p, err)
	}
	if j := stored(t, e); j.Blocked != "" {
		t.Errorf("blocked %q", j.Blocked)
	}
}

// Every look reads anew.
func TestALookDecidesOnWhatIsThereNow(t *testing.T) {
	var e *Engine
	found := 0
	e, _ = scripted(t, plans.Vacate, func(ctx context.Context, _ plans.StepContext) (plans.Observation, error) {
		if set, err := e.observer.world.Set(ctx, plans.Source); err != nil || set != nil {
			found++
		}
		return plans.Wait(reasons.PodNotReady, "a set"), nil
	})
	for range 2 {
		if _, err := e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.on[plans.Source].Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Errorf("found %d times, expected at the second look", found)
	}
}

// A pause takes effect only where no ordinal is in flight.
func TestAPauseWaitsForTheOrdinalInFlight(t *testing.T) {
	for op, want := range map[plans.Op]Kind{plans.Tighten: Paused, plans.Vacate: Waiting, plans.Grow: Waiting} {
		e, _ := scripted(t, op, see(plans.Wait(reasons.PodNotReady, "something")))
		changed(t, e, func(j *journal.Journal) { j.Paused = true })
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != want {
			t.Errorf("%s: %+v, %v; expected %s", op, p, err, want)
		}
	}
}

// What a check finds before a wave blocks the plan before the ordinal leaves.
func TestAFindingBeforeAWaveBlocksThePlan(t *testing.T) {
	e, _ := scripted(t, plans.Shrink, see(plans.Write("scale down", plans.Undo{}, func(context.Context) error {
		t.Error("the ordinal leaves")
		return nil
	})))
	e.CheckWave = func(context.Context, *journal.Journal, plans.Slice) (wavecheck.Answer, error) {
		return wavecheck.Answer{Why: "consent was withdrawn"}, nil
	}
	p, err := e.Advance(t.Context())
	if err != nil || p.Kind != Blocked || stored(t, e).Blocked != "consent was withdrawn" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A Move does not end while a range is not as it has to be (S12).
func TestAMoveDoesNotEndOutOfPlace(t *testing.T) {
	none, all := int32(0), int32(3)
	source := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &none}}
	destination := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: &all}}
	for name, c := range map[string]struct {
		source int32
		once   bool
		want   Kind
	}{"it is in place": {0, false, Finished}, "the source has an ordinal again": {1, false, Blocked}, "it looks so once": {0, true, Finished}} {
		again := source.DeepCopy()
		again.Spec.Replicas = &c.source
		e, _ := scripted(t, plans.Relax, see(plans.Done()), again, destination.DeepCopy())
		api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(again, destination.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, on client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if c.once && key.Namespace == "mall" {
					c.once = false
					return apierrors.NewNotFound(appsv1.Resource("statefulsets"), key.Name)
				}
				return on.Get(ctx, key, o, opts...)
			},
		}).Build()
		e.observer.world.On = clusters.Clusters{plans.Source: api, plans.Destination: api}
		changed(t, e, func(j *journal.Journal) {
			for _, more := e.plan.Step(j.Leg, j.Done+1); more; _, more = e.plan.Step(j.Leg, j.Done+1) {
				j.Done++
			}
			j.Begun = j.Done
		})
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != c.want {
			t.Errorf("%s: %+v, %v; expected %s", name, p, err, c.want)
		}
	}
}

// The journal is back before Tighten when the first budget is opened, so that no process scales an ordinal down
// under open budgets (S3).
func TestTheJournalGoesBackBeforeABudgetIsOpened(t *testing.T) {
	e, shrink := scripted(t, plans.Shrink, see(plans.Done()))
	changed(t, e, func(j *journal.Journal) { j.Begun = shrink.Seq - 1 })
	opened := 0
	e.way.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
		if opened > 0 {
			return plans.Done(), nil
		}
		return plans.Write("open", plans.Undo{}, func(context.Context) error {
			opened++
			if next, _, _ := stored(t, e).Next(e.plan); next.Op != plans.Tighten {
				t.Errorf("the next step is %s", next.ID())
			}
			return nil
		}), nil
	}
	if err := e.Ease(t.Context()); err != nil || opened != 1 {
		t.Errorf("%v, opened %d times", err, opened)
	}
}

// runs carries the plan out by the clock of the test for this long, or until it ends. It returns how it ended,
// and how often the budgets were opened.
func runs(t *testing.T, e *Engine, limit time.Duration) (last Progress, opened int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	e.Now = time.Now //nolint:forbidigo // that of the bubble
	e.way.look = func(context.Context, plans.StepContext) (plans.Observation, error) {
		opened++
		return plans.Done(), nil
	}
	last, err := e.Run(ctx, Options{Wake: clusters.NewChangeSignal(), StepTimeout: 10 * time.Minute, Report: func(Progress, error) {}})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	return last, opened
}

// The budgets are open while a plan is blocked before an ordinal leaves (L5).
func TestABlockedPlanHasOpenBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, shrink := scripted(t, plans.Shrink, see(plans.Stop(reasons.OrdinalsChanged, "the source was deleted")))
		changed(t, e, func(j *journal.Journal) { j.Begun = shrink.Seq - 1 })
		if last, opened := runs(t, e, time.Minute); last.Kind != Blocked || opened == 0 || last.ID != reasons.OrdinalsChanged {
			t.Errorf("%+v, opened %d times", last, opened)
		}
		j, _, err := e.store.Journal(t.Context(), e.plan)
		if id, why := j.Why(); err != nil || id != reasons.OrdinalsChanged || why != "the source was deleted" {
			t.Errorf("the journal has %s %q (%v)", id, why, err)
		}
	})
}

// A wait before an ordinal leaves blocks the plan after --step-timeout, and one for an ordinal in flight does
// not.
func TestALongWaitBlocksAPlanWithNothingInFlight(t *testing.T) {
	for op, want := range map[plans.Op]bool{plans.Freeze: true, plans.Tighten: true, plans.Relax: true, plans.Vacate: false, plans.Grow: false} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := scripted(t, op, see(plans.Wait(reasons.PodNotReady, "something")))
			last, _ := runs(t, e, time.Hour)
			j := stored(t, e)
			if (last.Kind == Blocked) != want || strings.Contains(j.Blocked, "--step-timeout") != want || (j.Overdue == "") != want {
				t.Errorf("%s: %+v; blocked %q, overdue %q", op, last, j.Blocked, j.Overdue)
			}
		})
	}
}

// A write that never has an effect blocks the plan (L3).
func TestAWriteWithoutEffectBlocksThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := scripted(t, plans.Release, see(plans.Write("delete the claim", plans.Undo{}, func(context.Context) error { return nil })))
		if last, _ := runs(t, e, time.Hour); last.Kind != Blocked || !strings.Contains(last.Reason, "without effect") {
			t.Errorf("%+v", last)
		}
	})
}

// takenOver returns the engine of another process before it takes the plan over, with ordinal 2 in flight. Its
// objects have the stamps of the first process.
func takenOver(t *testing.T, stamp string) (*Engine, []client.Object) {
	t.Helper()
	marks := map[string]string{plans.StampAnnotation: stamp}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-2", Annotations: marks}}
	objects := []client.Object{
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Annotations: marks}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-stsmigrate", Annotations: marks}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "data-web-2", Annotations: marks}},
		pv,
	}
	e, _ := scripted(t, plans.Release, see(plans.Done()), objects...)
	changed(t, e, func(j *journal.Journal) {
		j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source, Volumes: []plans.Volume{{Ordinal: 2, Template: "data", Name: "pv-2", Claim: "c", Handle: "disk.example.com^vol-2"}}}
	})
	return New(e.plan, e.store, e.on), objects
}

// A takeover raises the epoch, and stamps everything that the last process may be about to write (S9).
func TestATakeoverStampsWhatTheLastProcessMayWrite(t *testing.T) {
	e, objects := takenOver(t, "web-abc/1/7")
	if err := e.TakeOver(t.Context(), plans.Move); err != nil {
		t.Fatal(err)
	}
	if j := stored(t, e); j.Epoch != 2 || e.epoch != 2 {
		t.Errorf("the journal has the epoch %d, and the engine %d", j.Epoch, e.epoch)
	}
	for _, o := range objects {
		if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if s, ok := plans.Stamped(o); !ok || s.Epoch != 2 {
			t.Errorf("%T %s has the stamp %s", o, o.GetName(), s)
		}
	}
}

// An object of another plan, or of a process that the journal does not know, is not stamped, and the takeover fails.
func TestATakeoverHeedsTheStampsOfOthers(t *testing.T) {
	for stamp, want := range map[string]string{"xyz/1/7": "belongs to plan xyz", "web-abc/3/1": "the journal of plan web is older than what has been done"} {
		e, objects := takenOver(t, stamp)
		if err := e.TakeOver(t.Context(), plans.Move); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", stamp, err, want)
		}
		if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(objects[0]), objects[0]); err != nil {
			t.Fatal(err)
		}
		if s, _ := plans.Stamped(objects[0]); s.String() != stamp {
			t.Errorf("%s: the set now has the stamp %s", stamp, s)
		}
	}
}

// An object that is not the plan's is not made the plan's by a takeover (S12).
func TestATakeoverStampsNothingOfOthers(t *testing.T) {
	strange := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "another"}}
	e, _ := scripted(t, plans.Release, see(plans.Done()), strange)
	if err := e.TakeOver(t.Context(), plans.Move); err != nil {
		t.Fatal(err)
	}
	if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(strange), strange); err != nil {
		t.Fatal(err)
	}
	if s, ok := plans.Stamped(strange); ok {
		t.Errorf("it has the stamp %s", s)
	}
}

// The ordinals whose steps may be under way stay in the journal until they are fenced, also if the process that
// takes over dies.
func TestATakeoverRecordsWhatItMustFence(t *testing.T) {
	e, _ := scripted(t, plans.Protect, see(plans.Done()))
	changed(t, e, func(j *journal.Journal) { j.Begun, j.Touched = j.Done+2, []int32{2} })
	if err := e.TakeOver(t.Context(), plans.Move); err != nil {
		t.Fatal(err)
	}
	if j := stored(t, e); len(j.Touched) != 3 {
		t.Errorf("recorded %v, expected 2 and the two ordinals of the steps that were begun", j.Touched)
	}
}

// A request that no longer applies when the plan is taken over changes nothing.
func TestARequestThatNoLongerAppliesTakesNothingOver(t *testing.T) {
	e, objects := takenOver(t, "web-abc/1/7")
	late := errors.New("the plan was paused meanwhile")
	still := func(context.Context, *journal.Journal) error { return late }
	if err := e.Accept(t.Context(), plans.Command{Direction: plans.Abort}, still); !errors.Is(err, late) {
		t.Error(err)
	}
	if j := stored(t, e); j.Epoch != 1 || j.Leg.Direction != plans.Move {
		t.Errorf("epoch %d, direction %s", j.Epoch, j.Leg.Direction)
	}
	if err := e.on[plans.Source].Get(t.Context(), client.ObjectKeyFromObject(objects[0]), objects[0]); err != nil {
		t.Fatal(err)
	}
	if s, _ := plans.Stamped(objects[0]); s.Epoch != 1 {
		t.Errorf("the set has the stamp %s", s)
	}
}

// A plan takes only a direction that has a way from where it is (S14).
func TestDirectionsFromWhereAPlanIs(t *testing.T) {
	p := planstest.Named(t, "abc")
	for _, c := range []struct {
		name   string
		change func(*journal.Journal)
		to     plans.Direction
		want   string // the reason to refuse it, or ""
	}{
		{"a Move is aborted", func(*journal.Journal) {}, plans.Abort, ""},
		{"what has moved is finalized", func(j *journal.Journal) { j.Outcome = plans.Moved }, plans.Finalize, ""},
		{"what has moved is aborted", func(j *journal.Journal) { j.Outcome = plans.Moved }, plans.Abort, ""},
		{"a Move is finalized half-way", func(*journal.Journal) {}, plans.Finalize, "is not complete"},
		{"a split is finalized", func(j *journal.Journal) { j.Outcome = plans.Split }, plans.Finalize, "is not complete"},
		{"an abort is finalized", func(j *journal.Journal) { j.StartLeg(p, plans.Abort) }, plans.Finalize, "is being aborted"},
		{"what is being finalized is aborted", func(j *journal.Journal) { j.Outcome = plans.Moved; j.StartLeg(p, plans.Finalize) }, plans.Abort, ""},
		{"what is being finalized is aborted after the source was deleted", func(j *journal.Journal) {
			j.Outcome = plans.Moved
			j.StartLeg(p, plans.Finalize)
			retire, _, _ := j.Next(p)
			j.Begin(p, retire, plans.Undo{Saved: plans.Saved{Retired: "u"}})
		}, plans.Abort, "the deletion of StatefulSet"},
		{"what has ended is aborted", func(j *journal.Journal) { j.Outcome = plans.Finalized }, plans.Abort, "has ended"},
	} {
		j := journal.New(p)
		c.change(j)
		err := requests.Redirect(p, j, c.to)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && j.Leg.Direction != c.to {
			t.Errorf("%s: %v, on direction %s; expected %q", c.name, err, j.Leg.Direction, c.want)
		}
	}
}

// What is declared counts only if it approves this very plan.
func TestOnlyThisVeryPlanIsApproved(t *testing.T) {
	p := planstest.Named(t, "abc")
	for hash, want := range map[string]bool{p.Hash: true, "another": false, "": false} {
		j, d := journal.New(p), p.Declared()
		j.Detached, d.ApprovedHash, d.Direction = true, hash, plans.Move
		if got := requests.Read(p, j, &d); got.Work != want {
			t.Errorf("approved %q: %+v, expected work: %t", hash, got, want)
		}
	}
}

// Only a user who names the cluster that is gone vouches for its end.
func TestTheEndOfAClusterIsVouchedForByItsName(t *testing.T) {
	p := planstest.Named(t, "abc")
	p.Destination.Cluster = "two"
	for cluster, want := range map[string]bool{"one": true, "another": false} {
		j, d := journal.New(p), p.Declared()
		j.Detached, j.Epoch, j.Outcome, j.Observed.Direction = true, 3, plans.Moved, plans.Move
		d.Direction, d.Request = plans.Finalize, &plans.Request{ID: "1", SourceGone: p.Source.Cluster}
		if cluster != "one" {
			d.Request.SourceGone = "another"
		}
		if got := requests.Read(p, j, &d); got.Work != want {
			t.Errorf("%s: %+v, expected work: %t", cluster, got, want)
		}
	}
}

// A refusal that may pass by itself is waited for as long as anything else, and then blocks the plan with nothing in
// flight. With an ordinal in flight it never does. What an API server has decided does so at once (L3).
func TestARefusalBlocksThePlanWhenItCannotPassAnyMore(t *testing.T) {
	resource := schema.GroupResource{Resource: "persistentvolumeclaims"}
	said := func(words string) error { return apierrors.NewForbidden(resource, "data-web-2", errors.New(words)) }
	forbidden, invalid, full := said(`User "mover" cannot get resource "persistentvolumeclaims"`), apierrors.NewBadRequest("no such field"), said("exceeded quota: all")
	for name, c := range map[string]struct {
		op          plans.Op
		err         error
		until       time.Duration // the refusal passes then; 0 for never
		after, most time.Duration
		blocked     bool
	}{
		"it is allowed after nine minutes":          {plans.Relax, forbidden, 9 * time.Minute, 9 * time.Minute, 10 * time.Minute, false},
		"it is never allowed":                       {plans.Relax, forbidden, 0, 10 * time.Minute, 11 * time.Minute, true},
		"it is allowed to a wave after an hour":     {plans.Reserve, forbidden, time.Hour, time.Hour, time.Hour + time.Minute, false},
		"it is wrong":                               {plans.Reserve, invalid, 0, 0, 10 * time.Second, true},
		"there is no room for longer than a minute": {plans.Reserve, full, 0, time.Minute, 2 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now() //nolint:forbidigo // that of the bubble
				e, _ := scripted(t, c.op, func(context.Context, plans.StepContext) (plans.Observation, error) {
					if c.until == 0 || time.Since(began) < c.until {
						return plans.Observation{}, fmt.Errorf("reading claim data-web-2: %w", c.err)
					}
					return plans.Stop(reasons.OrdinalsChanged, "it was allowed"), nil
				})
				overdue := 0
				e.Now = time.Now //nolint:forbidigo // that of the bubble
				e.way.look = see(plans.Done())
				last, err := e.Run(t.Context(), Options{Wake: clusters.NewChangeSignal(), StepTimeout: 10 * time.Minute, Report: func(p Progress, _ error) {
					if p.Overdue && p.ID == reasons.RequestRefusedByAPI {
						overdue++
					}
				}})
				took := time.Since(began)
				if want := map[bool]reasons.ID{true: reasons.RequestRefusedByAPI, false: reasons.OrdinalsChanged}[c.blocked]; err != nil || last.Kind != Blocked || last.ID != want || took < c.after || took > c.most {
					t.Errorf("after %s: %+v, expected %s", took, last, want)
				}
				if want := map[bool]int{true: 1}[c.until == time.Hour]; overdue != want {
					t.Errorf("reported as overdue %d times, expected %d", overdue, want)
				}
			})
		})
	}
}

// A login that is not accepted any more is told in the journal after the first refusal, and forgotten when it is accepted.
func TestALoginThatIsNotAcceptedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var accepted atomic.Bool
		asked := 0
		e, _ := scripted(t, plans.Relax, func(context.Context, plans.StepContext) (plans.Observation, error) {
			if asked++; !accepted.Load() {
				return plans.Observation{}, apierrors.NewUnauthorized("the login of context west is not accepted")
			}
			return plans.Stop(reasons.OrdinalsChanged, "it was accepted"), nil
		})
		e.Now = time.Now //nolint:forbidigo // that of the bubble
		e.way.look = see(plans.Done())
		go func() {
			<-time.After(time.Second)
			if id, why := stored(t, e).Shown("me"); id != reasons.CredentialsExpired || !strings.Contains(why, "context west") {
				t.Errorf("%s: %q", id, why)
			}
			<-time.After(time.Hour) // it is in flight, or credentials are renewed
			accepted.Store(true)
		}()
		last, err := e.Run(t.Context(), Options{Wake: clusters.NewChangeSignal(), StepTimeout: 10 * time.Minute, Renewed: true, Report: func(Progress, error) {}})
		if err != nil || last.ID != reasons.OrdinalsChanged || asked < 100 || stored(t, e).Waiting != "" {
			t.Errorf("%+v, %v, asked %d times: %q", last, err, asked, stored(t, e).Waiting)
		}
	})
}

// Users read the name of a step: the pods and the operation, or the operation alone if it is one of the whole plan.
func TestAStepIsNamedByItsPods(t *testing.T) {
	e, grow := scripted(t, plans.Grow, see(plans.Done()))
	if got := e.StepOf(grow); got != "web-2 Grow" {
		t.Errorf("%q", got)
	}
	freeze, _ := e.plan.Step(e.plan.FirstLeg(), 1)
	if got := e.StepOf(freeze); got != "Freeze" {
		t.Errorf("%q", got)
	}
}
