package engine

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// counting counts the reads of one claim, and fails with every write.
type counting struct {
	client.Client

	t     *testing.T
	claim string
	reads int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if key.Name == c.claim {
		c.reads++
	}
	return c.Client.Get(ctx, key, o, opts...)
}

func (c *counting) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	c.t.Errorf("it creates %s", o.GetName())
	return nil
}

func (c *counting) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	c.t.Errorf("it patches %s", o.GetName())
	return nil
}

// The next wave is read ahead while one is handed over, unless there is none, or the plan is about to pause.
func TestTheNextWaveIsReadAhead(t *testing.T) {
	release := plans.Write("release", plans.Undo{}, func(context.Context) error { return nil })
	for name, c := range map[string]struct {
		before func(*Engine)
		want   int
	}{
		"it is":                      {func(*Engine) {}, 1},
		"nothing runs beside":        {func(e *Engine) { e.Beside = nil }, 0},
		"the plan is about to pause": {func(e *Engine) { changed(t, e, func(j *journal.Journal) { j.Paused = true }) }, 0},
		"it is the last wave": {func(e *Engine) {
			changed(t, e, func(j *journal.Journal) {
				for s, _ := e.plan.Step(j.Leg, j.Done+1); s.Op != plans.Release || s.Ordinals.Start > e.plan.Start; s, _ = e.plan.Step(j.Leg, j.Done+1) {
					j.Done++
				}
				j.Begun = j.Done
			})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, step := scripted(t, plans.Release, see(release))
			on := &counting{Client: e.on[plans.Source], t: t, claim: e.plan.ClaimName(plans.Source, "data", step.Ordinals.Start-1)}
			e.ahead.on = clusters.Clusters{plans.Source: on, plans.Destination: on}
			e.Recent.Keep(func() time.Time { return time.Unix(1000, 0) }, nil)
			e.Beside = func(read func()) func() { read(); return func() {} }
			c.before(e)
			if _, err := e.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			if on.reads != c.want {
				t.Errorf("the claim of the next wave was read %d times, expected %d", on.reads, c.want)
			}
		})
	}
}
