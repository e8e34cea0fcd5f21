package records

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// bare deletes the journal of a plan.
func bare(t *testing.T, c client.Client, s *Store) *Store {
	t.Helper()
	if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: s.meta(s.journalMap())}); err != nil {
		t.Fatal(err)
	}
	return s
}

// approved creates the object that approves a plan.
func approved(t *testing.T, c client.Client, s *Store, status map[string]any) *Store {
	t.Helper()
	p, err := s.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := NewDeclared(s.name.Namespace, s.name.Name)
	o.Object["spec"], o.Object["status"] = map[string]any{"approvedHash": p.Hash, "source": map[string]any{"namespace": p.Source.Namespace, "name": p.Source.Name}}, status
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return s
}

// A plan is listed in the namespace that stores it, which for a detached plan is not its destination. A
// plan that cannot be read is listed beside the others, with the reason. A plan that an orchestrator has not begun
// has no journal yet, and one that it has begun has lost it.
func TestEveryPlanIsListedWhereItIsKept(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	keep := func(namespace, name string) *Store {
		t.Helper()
		p := planstest.Named(t, "id-"+name)
		p.Name, p.ID, p.Hash = name, name+"-abc", ""
		var err error
		if p.Hash, err = plans.Fingerprinted(p); err != nil {
			t.Fatal(err)
		}
		s := NewStore(c, namespace, name)
		if err := s.Create(t.Context(), p, journal.New(p)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	edit := func(of client.ObjectKey, change func(*corev1.ConfigMap)) {
		t.Helper()
		var cm corev1.ConfigMap
		if err := c.Get(t.Context(), of, &cm); err != nil {
			t.Fatal(err)
		}
		change(&cm)
		if err := c.Update(t.Context(), &cm); err != nil {
			t.Fatal(err)
		}
	}
	keep("mall", "local")
	keep("stsmigrate", "detached")
	newer := func(key string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) {
			cm.Data[key] = strings.ReplaceAll(cm.Data[key], plans.APIVersion, "stsmigrate.dev/v99")
		}
	}
	edit(keep("stsmigrate", "newer").planMap(), newer(planKey))
	edit(keep("stsmigrate", "begun-by-a-newer").journalMap(), newer(journalKey))
	edit(keep("stsmigrate", "broken").planMap(), func(cm *corev1.ConfigMap) { cm.Data[planKey] = "{" })
	edit(keep("mall", "emptied").planMap(), func(cm *corev1.ConfigMap) { cm.Data = nil })
	bare(t, c, keep("mall", "bare"))
	approved(t, c, bare(t, c, keep("stsmigrate", "to-be-approved")), nil)
	approved(t, c, bare(t, c, keep("stsmigrate", "finalized")), map[string]any{"state": string(plans.Finalized)})
	edit(approved(t, c, bare(t, c, keep("stsmigrate", "lost")), nil).planMap(), func(cm *corev1.ConfigMap) { cm.Finalizers = []string{UnderWay} })
	noon := func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }
	want := map[string]string{ // the state, and a part of the reason
		"mall/local": "Planned", "stsmigrate/detached": "Planned",
		"stsmigrate/newer": `Unreadable "stsmigrate.dev/v99"`, "stsmigrate/begun-by-a-newer": `Unreadable "stsmigrate.dev/v99"`,
		"stsmigrate/broken": "Unreadable malformed YAML", "mall/emptied": `Unreadable kind is ""`, "mall/bare": "Unreadable mall/stsmigrate-bare-journal, does not exist",
		"stsmigrate/to-be-approved": "Planned", "stsmigrate/lost": "Unreadable stsmigrate-lost-journal, does not exist", "stsmigrate/finalized": "Unreadable stsmigrate-finalized-journal, does not exist",
	}
	for _, namespace := range []string{"", "stsmigrate", "mall"} {
		list, err := List(t.Context(), c, namespace, noon)
		if err != nil {
			t.Fatal(err)
		}
		left := maps.Clone(want)
		maps.DeleteFunc(left, func(name, _ string) bool { return namespace != "" && !strings.HasPrefix(name, namespace+"/") })
		for _, one := range list {
			name := one.Namespace + "/" + one.Name
			state, reason, _ := strings.Cut(left[name], " ")
			if string(one.State) != state || !strings.Contains(one.Reason, reason) || reason == "" && one.Reason != "" {
				t.Errorf("in %q, %s is %s because %q; expected %s", namespace, name, one.State, one.Reason, left[name])
			}
			delete(left, name)
		}
		for name := range left {
			t.Errorf("in %q, %s is not listed", namespace, name)
		}
	}
}
