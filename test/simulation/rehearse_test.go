package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// dryStore answers dry runs as an API server does, and stores nothing. Any other write is a failure.
type dryStore struct {
	*store
	t *testing.T
}

func (s dryStore) try(ctx context.Context, o client.Object, dry []string, write func(*store) error) error {
	s.t.Helper()
	if len(dry) == 0 {
		s.t.Errorf("%s would have been written", keyOf(o))
	}
	old, there := s.objects[keyOf(o)]
	err := write(s.trial())
	if o.SetResourceVersion(""); there {
		o.SetResourceVersion(old.GetResourceVersion())
	}
	return errors.Join(err, ctx.Err())
}

func (s dryStore) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	var options client.CreateOptions
	options.ApplyOptions(opts)
	return s.try(ctx, o, options.DryRun, func(to *store) error { return to.Create(ctx, o, opts...) })
}

func (s dryStore) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	var options client.UpdateOptions
	options.ApplyOptions(opts)
	return s.try(ctx, o, options.DryRun, func(to *store) error { return to.Update(ctx, o, opts...) })
}

func (s dryStore) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	return s.try(ctx, o, options.DryRun, func(to *store) error { return to.Patch(ctx, o, patch, opts...) })
}

func (s dryStore) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	s.t.Error("something would have been deleted")
	return nil
}

// rehearsed tries what a process would write that takes the plan over now, and returns how much that was.
func (w *world) rehearsed(t *testing.T, direction plans.Direction) (trials int) {
	t.Helper()
	r, on := clusters.NewRehearsal(), clusters.Clusters{}
	for side, s := range w.on {
		on[side] = dryStore{s, t}
	}
	on = r.Clients(w.plan, on)
	e := engine.New(w.plan, records.NewStore(on[plans.Destination], green, planName), on)
	left, err := e.Rehearse(t.Context(), &plans.Command{Direction: direction})
	if err != nil {
		t.Errorf("%s: %v", direction, err)
	}
	for _, trial := range r.Trials {
		if trial.Refused != nil {
			t.Errorf("%s: %s %v is refused: %v", direction, trial.Verb, trial.ObjectKey, trial.Refused)
		}
	}
	for _, l := range left {
		if strings.HasPrefix(l.Why, "the plan would be blocked") {
			t.Errorf("%s: %s: %s, although nobody has interfered", direction, l.Step.ID(), l.Why)
		}
	}
	if len(left) > 1 {
		t.Errorf("%s: steps are tried after one that waits: %v", direction, left)
	}
	return len(r.Trials)
}

// Wherever a process has stopped, the next one can be tried in every direction that the plan can take: no API server
// refuses one of its writes, and none of them is stored.
func TestAStoredPlanIsTriedWithoutAWrite(t *testing.T) {
	t.Parallel()
	eachVariant(t, func(t *testing.T, w *world, j journey) { //nolint:thelper // it is the test itself
		tried := 0
		look := func(p engine.Progress) bool {
			for _, direction := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
				trial := w.journal
				if !mayTake(w.plan, &trial, direction) {
					continue
				}
				before := fmt.Sprint(w.contents())
				tried += w.rehearsed(t, direction)
				if before != fmt.Sprint(w.contents()) {
					t.Errorf("%s has written", direction)
				}
				if t.Failed() {
					t.Logf("after %s %s: %s; journal %+v", p.Kind, p.Step.ID(), p.Reason, w.journal)
					return true
				}
			}
			return false
		}
		for _, direction := range j {
			if _, err := w.process().run(t.Context(), direction, look); err != nil {
				t.Error(err)
			}
		}
		if tried == 0 {
			t.Error("nothing was tried")
		}
	})
}

// mayTake reports whether a plan that rests or is under way can take a direction and has something left to do in it.
func mayTake(p *plans.Plan, j *journal.Journal, direction plans.Direction) bool {
	if direction == plans.Move {
		direction = j.Leg.Direction
	}
	return !j.Ended() && j.Outcome != direction.Outcome() && requests.Redirect(p, j, direction) == nil
}

// contents returns the versions of all objects.
func (w *world) contents() map[string]string {
	out := map[string]string{}
	for _, s := range w.stores {
		for k, o := range s.objects {
			out[s.name+" "+k.String()] = string(o.GetUID()) + " " + o.GetResourceVersion()
		}
	}
	return out
}
