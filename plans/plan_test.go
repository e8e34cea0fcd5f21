package plans_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

func TestKindsOfSets(t *testing.T) {
	if kind := v1alpha1.Kind().Kind; kind != plans.SliceKind {
		t.Errorf("the kind is %s, and %s here", kind, plans.SliceKind)
	}
	for word, want := range map[string]string{"": "", "sts": "", "StatefulSet": "", "statefulsets": "", "stss": plans.SliceKind, "StatefulSetSlice": plans.SliceKind, "statefulsetslices": plans.SliceKind} {
		if got, err := plans.KindOf(word); err != nil || got != want {
			t.Errorf("%q: %q, %v", word, got, err)
		}
	}
	if _, err := plans.KindOf("deploy"); err == nil || !strings.Contains(err.Error(), "expected StatefulSet (sts) or StatefulSetSlice (stss)") {
		t.Errorf("%v", err)
	}
	for field, text := range map[string]string{
		"spec.source.kind": "source: {name: web, kind: Deployment}", "spec.destination.kind": "source: {name: web}\n  destination: {kind: Deployment}",
	} {
		if _, err := plans.DecodeMigration([]byte("apiVersion: stsmigrate.dev/v1alpha1\nkind: Migration\nspec:\n  " + text + "\n")); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The names of a plan's ConfigMaps derive from its own name, so some plan names collide with other objects.
func TestNamesThatOthersNeedAreRefused(t *testing.T) {
	for name, bad := range map[string]bool{
		"db": false, "journal": false, "adopt": false, "my-consent": false,
		"db-journal": true, "consent": true, "adopt-web": true, "Web": true, "": true,
	} {
		if err := plans.RefuseName(name); (err != nil) != bad || bad && !strings.Contains(err.Error(), "--name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Every set that Kubernetes allows can be planned without a name for the plan.
func TestEverySetGivesItsPlanAName(t *testing.T) {
	long := "payments-ledger-replicated-postgresql-primary-shard"
	seen := map[string]string{}
	for _, set := range []string{"web", strings.Repeat("a", 40), strings.Repeat("a", 41), strings.Repeat("a", 63), long + "0", long + "1", "a-" + strings.Repeat("b", 28) + "-ccccccccc-dddd", "consent", "web-journal", "web-timeline", "adopt-web", "web.v2"} {
		name := plans.NameFor(set)
		if err := plans.RefuseName(name); err != nil || plans.RefuseName(set) == nil && name != set || strings.Contains(name, "--") {
			t.Errorf("the plan of set %s is called %q: %v", set, name, err)
		}
		if other := seen[name]; other != "" {
			t.Errorf("the plans of %s and %s are both called %s", other, set, name)
		}
		seen[name] = set
	}
}

// The objects of a side have the name of the set of that side, and no other side's.
func TestAnObjectHasTheNameOfTheSetOfItsSide(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Name: "web"}, Destination: plans.Ref{Name: "site"}, Claims: []plans.ClaimMove{{Template: "data"}}, Names: plans.Names{Service: "peers"}}
	for side, name := range map[plans.Side]string{plans.Source: "web", plans.Destination: "site"} {
		if got, want := p.Pod(side, 4), name+"-4"; got != want {
			t.Errorf("the pod of the %s is %s, expected %s", side, got, want)
		}
		if got, want := p.ClaimName(side, "data", 4), "data-"+name+"-4"; got != want {
			t.Errorf("the claim of the %s is %s, expected %s", side, got, want)
		}
		if got, want := p.Host(side, 4, "shop"), name+"-4.peers.shop.svc"; got != want {
			t.Errorf("a pod of the %s is found as %s, expected %s", side, got, want)
		}
		if !p.HasPod(side, name+"-4") || p.HasPod(side.Other(), name+"-4") || p.HasPod(side, name+"-x") {
			t.Errorf("the pods of the %s are not those of its set alone", side)
		}
		if claim := "data-" + name + "-4"; !p.HasClaim(side, claim) || p.HasClaim(side.Other(), claim) || p.HasClaim(side, name+"-4") {
			t.Errorf("the claims of the %s are not those of its set alone", side)
		}
	}
}

// A UID of kube-system and one of another namespace always differ: a plan that compared them would take one cluster for two.
func TestSidesAreKnownInOneWay(t *testing.T) {
	for name, c := range map[string]struct {
		there, s, d, refused string
	}{
		"by kube-system":                     {there: "uid-b"},
		"by a namespace each":                {there: "uid-b", s: "shop", d: "mall"},
		"one cluster by one namespace":       {there: "uid-a", s: "mall", d: "mall"},
		"one cluster by two":                 {there: "uid-a", s: "shop", d: "mall", refused: "do not tell whether they are one cluster"},
		"by kube-system and a namespace":     {there: "uid-b", d: "mall", refused: "do not tell whether they are one cluster"},
		"by a namespace and kube-system":     {there: "uid-b", s: "shop", refused: "do not tell whether they are one cluster"},
		"by what is no namespace":            {there: "uid-b", s: "Shop!", d: "mall", refused: "knownBy"},
		"by kube-system in two ways at once": {there: "uid-b", s: "kube-system", d: "kube-system", refused: "knownBy"},
	} {
		p := planstest.Three()
		p.Source.Cluster, p.Destination.Cluster = "uid-a", types.UID(c.there)
		p.Source.Namespace, p.Destination.Namespace = "shop", "mall"
		p.Source.KnownBy, p.Destination.KnownBy = c.s, c.d
		err := p.Validate()
		said := fmt.Sprint(err) // the rest of the plan is for one cluster
		if c.refused != "" && !strings.Contains(said, c.refused) || c.refused == "" && strings.Contains(said, "known") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
