package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// apart is an engine of a plan between two clusters, at an operation of its first wave. The looks at what it prepares
// are see.
func apart(t *testing.T, op plans.Op, step, see func(context.Context, plans.StepContext) (plans.Observation, error)) (*Engine, plans.Step) {
	t.Helper()
	e, at := scripted(t, op, step)
	e.plan.Source.Cluster, e.plan.Destination.Cluster = "uid-0", "uid-1"
	e.plan.Claims[0].Mode = plans.Reimport
	e.preparation.look, e.ahead.meanwhile = see, see
	return e, at
}

// due is a look that finds a write, until it has been sent.
func due(sent *int, err error) func(context.Context, plans.StepContext) (plans.Observation, error) {
	return func(context.Context, plans.StepContext) (plans.Observation, error) {
		if *sent > 0 {
			return plans.Done(), nil
		}
		return plans.Write("create volume pv", plans.Undo{}, func(context.Context) error { *sent++; return err }), nil
	}
}

func TestWhichWaveIsPrepared(t *testing.T) {
	nothing := func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil }
	for name, c := range map[string]struct {
		op     plans.Op
		change func(*Engine)
		want   string
	}{
		"its own, before it leaves":    {plans.Tighten, nil, "2/Reserve"},
		"its own, when it would leave": {plans.Shrink, nil, "2/Reserve"},
		"the next, when it comes up":   {plans.Grow, nil, "1/Reserve"},
		"none while it is down":        {plans.Vacate, nil, ""},
		"none in one cluster":          {plans.Grow, func(e *Engine) { e.plan.Claims[0].Mode = plans.Rebind }, ""},
		"none without volumes":         {plans.Grow, func(e *Engine) { e.plan.Claims = nil }, ""},
		"none before a pause":          {plans.Grow, func(e *Engine) { e.journal.Paused = true }, ""},
		"none behind a pause":          {plans.Grow, func(e *Engine) { e.journal.PauseAt = 2 }, ""},
		"none behind the last": {plans.Grow, func(e *Engine) {
			e.journal.Leg.Lowest = 2
		}, ""},
		"none that may not have left": {plans.Tighten, func(e *Engine) { e.journal.StartLeg(e.plan, plans.Abort) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, step := apart(t, c.op, nothing, nothing)
			if err := e.recall(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(e)
			}
			if e.journal.Leg.Direction == plans.Abort {
				e.journal.Leg.Lowest = 2
				step, _ = e.plan.Step(e.journal.Leg, e.journal.Leg.First)
			}
			next, may := e.preparation.following(step)
			got := ""
			if may {
				got = next.ID()
			}
			if got != c.want {
				t.Errorf("%q is prepared, expected %q", got, c.want)
			}
		})
	}
}

// The wave is in the journal before anything of it is made (S10).
func TestWhatIsPreparedIsInTheJournalFirst(t *testing.T) {
	waits := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Wait(reasons.PodNotReady, "it comes up"), nil
	}
	sent := 0
	e, step := apart(t, plans.Grow, waits, due(&sent, nil))
	if err := e.recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, did := e.ahead.turn(t.Context(), step); did || sent > 0 {
		t.Error("a wave is prepared that is not in the journal")
	}
	e.journal.Prepared = &plans.Slice{Start: 1, Replicas: 1}
	if err := e.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, did := e.ahead.turn(t.Context(), step)
	if !did || sent != 1 || p.Step.ID() != "1/Reserve" {
		t.Errorf("%+v, %t, sent %d times", p, did, sent)
	}
	if _, did := e.ahead.turn(t.Context(), step); did {
		t.Error("it is prepared twice")
	}
}

// A wave that could leave is prepared first, and stays up if it cannot be (S17).
func TestAWaveLeavesOnlyWhenItIsPrepared(t *testing.T) {
	left := 0
	leaves := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Write("scale down", plans.Undo{Flight: &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}}, func(context.Context) error { left++; return nil }), nil
	}
	refused, sent := errors.New("the other cluster refuses it"), 0
	e, _ := apart(t, plans.Shrink, leaves, due(&sent, refused))
	if _, err := e.Advance(t.Context()); !errors.Is(err, refused) || left > 0 {
		t.Errorf("%v, and %d have left", err, left)
	}
	if j := stored(t, e); j.Prepared == nil || j.Prepared.Start != 2 || j.Begun >= j.Done+2 {
		t.Errorf("the journal: %+v", j)
	}
	e, _ = apart(t, plans.Shrink, leaves, func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil })
	if p, err := e.Advance(t.Context()); err != nil || p.Kind != Wrote || left != 1 {
		t.Errorf("%+v, %v, and %d have left", p, err, left)
	}
}

// The claims of a wave are made when it has left, and are tried before: what refuses them keeps it up (S17).
func TestAWaveLeavesOnlyWhenItsClaimsWouldBeAdmitted(t *testing.T) {
	for name, refused := range map[string]error{"they would be": nil, "they would not": errors.New("exceeded quota")} {
		left, tried := 0, 0
		leaves := func(context.Context, plans.StepContext) (plans.Observation, error) {
			return plans.Write("scale down", plans.Undo{Flight: &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}}, func(context.Context) error { left++; return nil }), nil
		}
		e, _ := apart(t, plans.Shrink, leaves, func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil })
		claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		claim.Namespace, claim.Name, claim.Spec.VolumeName = e.plan.Source.Namespace, e.plan.ClaimName(plans.Source, "data", 2), "pv"
		pv.Name, pv.Annotations = "pv", map[string]string{plans.ClaimAnnotation: `{"metadata":{"name":"` + claim.Name + `"}}`}
		e.observer.world.On = clusters.Clusters{
			plans.Source: fake.NewClientBuilder().WithObjects(claim).Build(),
			plans.Destination: fake.NewClientBuilder().WithObjects(pv).WithInterceptorFuncs(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				tried++
				return refused
			}}).Build(),
		}
		if _, err := e.Advance(t.Context()); !errors.Is(err, refused) || tried != 1 || (left == 1) != (refused == nil) {
			t.Errorf("%s: %v; tried %d times, and %d have left", name, err, tried, left)
		}
	}
}

// What keeps a wave from being prepared has nothing in flight.
func TestAWaveThatCannotBePreparedStaysUp(t *testing.T) {
	leaves := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Write("scale down", plans.Undo{Flight: &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}}, func(context.Context) error {
			t.Error("it has left")
			return nil
		}), nil
	}
	for kind, observed := range map[Kind]plans.Observation{Waiting: plans.Wait(reasons.PodNotReady, "is Pending"), Blocked: plans.Stop(reasons.OrdinalsChanged, "is in the way")} {
		e, _ := apart(t, plans.Shrink, leaves, func(context.Context, plans.StepContext) (plans.Observation, error) { return observed, nil })
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != kind || p.Reason != observed.Reason {
			t.Errorf("%+v, %v", p, err)
		}
		if j := stored(t, e); j.Down(e.plan) {
			t.Errorf("ordinals are in flight: %+v", j)
		}
	}
}

// What is sent beside the engine is not sent twice meanwhile, and a wave whose write has failed is left to Shrink.
func TestAPreparationBesideTheEngine(t *testing.T) {
	for name, refused := range map[string]error{"it is made": nil, "it is refused": errors.New("refused")} {
		waits := func(context.Context, plans.StepContext) (plans.Observation, error) {
			return plans.Wait(reasons.PodNotReady, "it comes up"), nil
		}
		sent := 0
		e, step := apart(t, plans.Grow, waits, due(&sent, refused))
		var later func()
		e.Beside = func(write func()) func() { later = write; return func() {} }
		if err := e.recall(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.journal.Prepared = &plans.Slice{Start: 1, Replicas: 1}
		if err := e.save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, did := e.ahead.turn(t.Context(), step); !did || sent != 0 {
			t.Errorf("%s: %t, sent %d times before it is its turn", name, did, sent)
		}
		if _, did := e.ahead.turn(t.Context(), step); did {
			t.Errorf("%s: it is sent twice", name)
		}
		later()
		if sent != 1 {
			t.Errorf("%s: sent %d times", name, sent)
		}
		sent = 0 // it would be due again
		if _, did := e.ahead.turn(t.Context(), step); did != (refused == nil) {
			t.Errorf("%s: sent again %t", name, did)
		}
	}
}

// A place that must wait for the wave before is taken while that wave comes up, once its pods have their nodes.
func TestAPlaceIsTakenWhenTheWaveBeforeHasItsNodes(t *testing.T) {
	waits := func(context.Context, plans.StepContext) (plans.Observation, error) {
		return plans.Wait(reasons.PodNotReady, "it comes up"), nil
	}
	seated, sent := false, 0
	made := due(&sent, nil)
	e, step := apart(t, plans.Grow, waits, func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		if !seated {
			return plans.Wait(reasons.PlaceNotReady, "it has no node"), nil
		}
		return made(ctx, m)
	})
	e.plan.Placeholder.Proof = plans.Warm
	if err := e.recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.journal.Prepared = &plans.Slice{Start: 1, Replicas: 1}
	if err := e.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, did := e.ahead.turn(t.Context(), step); did {
			t.Fatal("it is taken at once")
		}
	}
	seated = true
	if _, did := e.ahead.turn(t.Context(), step); !did || sent != 1 {
		t.Errorf("it is taken %t, sent %d times", did, sent)
	}
}

// What was foreseen of the next wave is sent together with Grow, if all of it was seen, and a moment ago.
func TestTheNextWaveIsPreparedWithGrow(t *testing.T) {
	now := time.Unix(1000, 0)
	made := plans.Write("create volume pv", plans.Undo{}, nil)
	for name, c := range map[string]struct {
		change func(*Engine)
		want   string
	}{
		"it is":                         {func(*Engine) {}, "1/Reserve"},
		"it was foreseen some time ago": {func(e *Engine) { e.ahead.seen.since = now.Add(-time.Second) }, ""},
		"a look has not ended":          {func(e *Engine) { e.ahead.seen.parts = nil }, ""},
		"nothing has to be made":        {func(e *Engine) { e.ahead.seen.parts = []plans.Observation{plans.Done()} }, ""},
		"it is in the way": {func(e *Engine) {
			e.ahead.seen.parts = append(e.ahead.seen.parts, plans.Stop(reasons.ClaimForeign, ""))
		}, ""},
		"another wave was foreseen": {func(e *Engine) { e.ahead.seen.reserve.Seq++ }, ""},
		"a pause is asked for":      {func(e *Engine) { changed(t, e, func(j *journal.Journal) { j.PauseAt = 2 }) }, ""},
	} {
		sent := 0
		var e *Engine
		grows := func(context.Context, plans.StepContext) (plans.Observation, error) {
			return plans.Write("scale up", plans.Undo{}, func(context.Context) error { return nil }), nil
		}
		e, step := apart(t, plans.Grow, grows, nil)
		e.Now = func() time.Time { return now }
		part := made
		part.Write = func(context.Context) error {
			if j := stored(t, e); j.Prepared == nil || j.Prepared.Start != 1 {
				t.Errorf("%s: made before the journal names the wave: %+v", name, j.Prepared)
			}
			sent++
			return nil
		}
		next, _ := e.plan.Step(stored(t, e).Leg, step.Seq+1)
		for next.Op != plans.Reserve {
			next, _ = e.plan.Step(stored(t, e).Leg, next.Seq+1)
		}
		e.ahead.seen = &foreseen{reserve: next, since: now, parts: []plans.Observation{part}}
		c.change(e)
		if p, err := e.Advance(t.Context()); err != nil || p.Kind != Wrote || p.Step != step {
			t.Fatalf("%s: %+v, %v", name, p, err)
		}
		got := ""
		if sent > 0 {
			p, err := e.Advance(t.Context())
			if err != nil || p.Kind != Wrote || p.Reason != made.Reason {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
			got = p.Step.ID()
		}
		if got != c.want {
			t.Errorf("%s: %q is prepared, expected %q", name, got, c.want)
		}
	}
}
