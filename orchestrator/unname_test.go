package orchestrator

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// The orchestrator removes the kept names, for the request that started the run. Then nothing keeps the
// object from being deleted. The status names a cluster that cannot be reached.
func TestNamesGoByTheOrchestrator(t *testing.T) {
	away := errors.New("the source does not answer")
	for name, c := range map[string]struct {
		answers error
		asks    string // the request when the removal is about to begin
		goes    bool
	}{
		"it is asked to":            {nil, "1", true},
		"it is asked again":         {nil, "2", false},
		"a cluster does not answer": {away, "1", false},
	} {
		h, p := fixture(t)
		ask := func(id string) {
			declare(t, h.Live, p, func(d *plans.Declaration) {
				d.Direction, d.Request = plans.Finalize, &plans.Request{ID: id, RemoveNames: true}
			})
		}
		store := records.NewStore(h.Live, h.Namespace, p.Name)
		if err := h.guard(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		err := store.Change(t.Context(), p, func(j *journal.Journal) error {
			j.StartLeg(p, plans.Finalize)
			j.Epoch, j.Outcome, j.KeepNames, j.Observed.Direction = 3, plans.Finalized, true, plans.Finalize
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ask("1")
		j, _, err := store.Journal(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
		if err != nil {
			t.Fatal(err)
		}
		_, asked := actionFor(p, j, h.said(j, d))
		r := &run{orchestrator: h, plan: p, what: unname, command: asked.Command}
		ask(c.asks)
		named := *p
		named.Names = plans.Names{Mode: plans.Bridge, Service: "web"}
		err = r.unname(t.Context(), runner.Runner{
			Plan: &named, Store: store, On: answering(c.answers), Holder: h.Holder, Dead: h.Dead, Now: h.Now, Still: r.still,
		})
		j, _, read := store.Journal(t.Context(), p)
		ends := c.answers
		if c.asks != "1" {
			ends = errOvertaken // it is reconciled again
		}
		if !errors.Is(err, ends) || read != nil || j.KeepNames == c.goes || (j.Observed.Request == "1") != c.goes || (j.Waiting != "") != (c.answers != nil) {
			t.Errorf("%s: %v; %+v (%v)", name, err, j, read)
		}
		h.ending = true // runs are not part of this test
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if guarded, err := h.guarded(t.Context(), p); err != nil || guarded == c.goes {
			t.Errorf("%s: the object is kept: %t (%v)", name, guarded, err)
		}
	}
}

// answering returns two empty clusters. Lists fail with err if it is not nil.
func answering(err error) clusters.Clusters {
	on := clusters.Clusters{}
	for _, side := range plans.Sides() {
		on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				if err != nil {
					return err
				}
				return c.List(ctx, l, opts...)
			},
		}).Build()
	}
	return on
}
