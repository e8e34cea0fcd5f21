package runner

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/plans/preview"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Whatever a plan contains, reading it ends, and takes no more resources than a plan may.
func FuzzPlan(f *testing.F) {
	whole, err := json.Marshal(planstest.Eventful(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, raw []byte) {
		believed(t, raw)
	})
}

// A fuzz test seldom changes two values of a document that belong together. Here each value of a plan is replaced by
// each lie, and many two by two.
func TestNoLieOfAPlanDoesHarm(t *testing.T) {
	whole, err := json.Marshal(planstest.Eventful(t))
	if err != nil {
		t.Fatal(err)
	}
	if n := planstest.Lie(t, whole, 300, func(_ string, raw []byte) bool { return believed(t, raw) }); n < 300 {
		t.Errorf("only %d were read", n)
	}
}

// believed reports whether a plan can be read once its hash fits, and does with it what is done before the first
// request to a cluster.
func believed(t *testing.T, raw []byte) bool {
	t.Helper()
	_, _ = plans.DecodePlan(raw) // its hash almost never fits
	var p plans.Plan
	if json.Unmarshal(raw, &p) != nil {
		return false
	}
	p.Hash = ""
	hash, err := plans.Fingerprinted(p)
	if err != nil {
		t.Fatal(err)
	}
	p.Hash = hash
	if raw, err = json.Marshal(&p); err != nil {
		t.Fatal(err)
	}
	read, err := plans.DecodePlan(raw)
	if err != nil {
		return false
	}
	handled(t, read)
	return true
}

// agreedTo checks that the consent generated for each namespace is accepted.
func agreedTo(t *testing.T, p *plans.Plan) {
	t.Helper()
	for _, n := range access.Parties(p) {
		if _, why := n.Agrees(p, n.Agree(p, planstest.Noon().Add(time.Hour), nil), planstest.Noon()); why != "" {
			t.Errorf("consent of namespace %s on the %s: %s", n.Namespace, n.Side, why)
		}
	}
}

// handled does with a plan what is done before the first request to a cluster.
func handled(t *testing.T, p *plans.Plan) {
	t.Helper()
	if d, err := build.DestinationSet(planstest.Varied(), p); err == nil {
		if raw, err := json.Marshal(d); err != nil || len(raw) > 1<<20 {
			t.Errorf("the destination's set takes %d bytes, %v", len(raw), err)
		}
		if _, err := build.Changes(planstest.Varied(), d); err != nil {
			t.Error(err)
		}
		build.Dependencies(d)
	}
	for _, side := range plans.Sides() {
		for _, r := range access.Rights(p, side) {
			if len(r.Names) > 500_000 {
				t.Errorf("%d names of %s", len(r.Names), r.Resource)
			}
		}
		access.Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, []string{"pv"})
	}
	agreedTo(t, p)
	for _, s := range p.Shared {
		storage.Canonical(s.Handle)
	}
	preview.Render(p, journal.New(p).Leg)
	first := journal.New(p)
	step, _, _ := first.Next(p)
	for _, g := range p.Gates {
		if name := p.JobName(g, step, p.Start); len(name) > 63 {
			t.Errorf("Job %s", name)
		}
	}
	records.State(p, first, "")
	engine.OneSideOpen(p, first)
	store := records.NewStore(fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), "stsmigrate", p.Name)
	if err := store.Create(t.Context(), p, first); err != nil {
		t.Fatalf("it is read and cannot be stored: %v", err)
	}
	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	lost := map[plans.Side]error{plans.Source: errors.New("away"), plans.Destination: errors.New("away")}
	v, err := engine.Status(t.Context(), p, store, clusters.Clusters{}, lost, clock, func(verb string) string { return verb })
	if err != nil || slices.ContainsFunc(v.Ordinals, func(o engine.OrdinalView) bool { return !p.Ordinals().Has(o.Ordinal) }) {
		t.Errorf("%+v, %v", v, err)
	}
}
