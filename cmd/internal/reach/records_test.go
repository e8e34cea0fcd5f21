package reach

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A crash between the plan and its journal leaves a plan to begin. A journal that is missing is lost where a set has the
// mark of the plan, and the plan does not begin again.
func TestAPlanWithALostJournalDoesNotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		by   string // the plan that has marked the set
		lost bool
	}{
		"no set has a mark":          {"", false},
		"the set of the plan has it": {planstest.Named(t, "abc").ID, true},
		"another plan's mark":        {"web-other", false},
	} {
		p := planstest.Named(t, "abc")
		set := planstest.Set(0, 3)
		set.Namespace, set.Name = p.Source.Namespace, p.Source.Name
		if c.by != "" {
			plans.Stamp{Plan: c.by, Epoch: 1, Seq: 2}.Put(set)
		}
		on := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set).Build()
		home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
		at := &Target{Plan: p, Store: records.NewStore(home, "mall", p.Name), On: clusters.Clusters{plans.Source: on}}
		if err := at.Store.Create(t.Context(), p, journal.New(p)); err != nil {
			t.Fatal(err)
		}
		if err := home.DeleteAllOf(t.Context(), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		if err := at.Store.CreatePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		j, err := at.ToBegin(t.Context(), false)
		if lost := errors.As(err, new(records.ErrNoJournal)); lost != c.lost || !lost && (err != nil || j.Epoch != 0) {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
}

// A rebuilt journal leaves the plan to the orchestrator that had it. What its object declares is not asked for again.
func TestARebuiltJournalIsOfWhomThePlanWas(t *testing.T) {
	p := planstest.Named(t, "abc")
	for name, c := range map[string]struct {
		approved string // "" for no object
		said     bool
		want     bool
	}{
		"a plan of commands":          {"", false, false},
		"the user says so":            {"", true, true},
		"an object approves the plan": {p.Hash, false, true},
		"an object of another plan":   {"5e0d", false, false},
	} {
		home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
		if c.approved != "" {
			o := records.NewDeclared("stsmigrate", p.Name)
			o.Object["spec"] = map[string]any{"source": map[string]any{"namespace": "shop", "name": "web"}, "approvedHash": c.approved, "paused": true, "direction": "Abort"}
			if err := home.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		at, j := &Target{Plan: p, Home: &End{Client: home, Namespace: "stsmigrate"}}, journal.New(p)
		if err := at.HandBack(t.Context(), j, c.said); err != nil {
			t.Fatal(err)
		}
		if observed := j.Observed.Paused && j.Observed.Direction == plans.Abort; j.Detached != c.want || observed != (c.want && c.approved != "") {
			t.Errorf("%s: detached %t, observed %+v", name, j.Detached, j.Observed)
		}
	}
}

// A plan that was handed over and never begun has nothing to abort: the command that takes it back is named.
func TestAPlanThatWasNeverBegunIsTakenBack(t *testing.T) {
	p := planstest.Named(t, "abc")
	at := &Target{Plan: p, Home: &End{Namespace: "stsmigrate", Flags: " --context west"}, Flags: " -n stsmigrate --context west"}
	for name, c := range map[string]struct {
		change func(*journal.Journal)
		want   string
	}{
		"never begun":      {func(j *journal.Journal) { j.Detached = true }, "kubectl --context west -n stsmigrate delete --ignore-not-found statefulsetmigration/web configmap/stsmigrate-web`"},
		"under way":        {func(j *journal.Journal) { j.Detached, j.Epoch = true, 1 }, "first run `stsmigrate finalize web -n stsmigrate --context west` or `stsmigrate abort web"},
		"that of commands": {func(*journal.Journal) {}, "first run `stsmigrate finalize web"},
	} {
		j := journal.New(p)
		c.change(j)
		if err := at.NotEnded(j); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}
