package orchestrator

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestANamespaceAgreesToWhatItsLinesSay(t *testing.T) {
	ref := plans.Ref{Cluster: "uid-1", Namespace: "mall", Name: "web"}
	for lines, want := range map[string]bool{
		"":                               false,
		"uid-1/mall/web":                 true,
		"  uid-1/mall/web  \n":           true,
		"uid-2/mall/web\nuid-1/mall/web": true,
		"uid-1/mall/*":                   true,
		"*/*/*":                          true,
		"*":                              false,
		"uid-1/mall":                     false,
		"uid-1/mall/we":                  false,
		"uid-1/mall/web/more":            false,
		"uid-2/mall/web":                 false,
		"uid-1/shop/web\nuid-1/mall/db":  false,
		"uid-1/ma*/web":                  false,
	} {
		if got := agrees(lines, ref); got != want {
			t.Errorf("%q: %t, expected %t", lines, got, want)
		}
	}
	p := &plans.Plan{Source: plans.Ref{Cluster: "uid-0", Namespace: "shop", Name: "web"}, Destination: ref}
	for _, side := range plans.Sides() {
		c := Consent(p, side)
		if c.Namespace != p.On(side).Namespace || !agrees(c.Data[consentKey(side)], p.On(side.Other())) || agrees(c.Data[consentKey(side)], p.On(side)) {
			t.Errorf("%s: %+v", side, c)
		}
	}
	have := &corev1.ConfigMap{Data: map[string]string{"moves-to": "uid-9/there/db\n", "moves-from": "a/b/c\n"}}
	next := Agree(have, p, plans.Source)
	if next.Data["moves-to"] != "uid-9/there/db\nuid-1/mall/web\n" || next.Data["moves-from"] != "a/b/c\n" {
		t.Errorf("what was agreed to before is %v now", next.Data)
	}
}

// The Roles of a plan name what can be named, and have no wildcards and no right to pods but to
// look.
func TestRolesNameWhatTheyAreAbout(t *testing.T) {
	p := &plans.Plan{
		Name: "web", Start: 0, Count: 2, Claims: []plans.ClaimMove{{Template: "data", Mode: plans.Reimport}},
		Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web"},
		Budget:       plans.Budget{Source: "web-pdb", Destination: "web-pdb"},
		Dependencies: []plans.Dependency{{Kind: "Secret", Name: "password"}},
	}
	for _, side := range plans.Sides() {
		names := map[string][]string{}
		tells := false
		for _, o := range Roles(p, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, []string{"pv-1", "pv-2"}) {
			for _, r := range rulesOf(o) {
				harmless(t, r)
				tells = tells || o.GetNamespace() == p.On(side).Namespace && r.Resources[0] == "events" && slices.Equal(r.Verbs, []string{"create"})
				if slices.Contains(r.Verbs, "patch") || slices.Contains(r.Verbs, "delete") {
					names[r.Resources[0]] = r.ResourceNames
				}
			}
			if _, ok := o.(*rbacv1.Role); ok && o.GetNamespace() != p.On(side).Namespace {
				t.Errorf("%s: a Role in namespace %s", side, o.GetNamespace())
			}
		}
		if !tells {
			t.Errorf("%s: no Events may be written", side)
		}
		if slices.ContainsFunc(Rights(p, side), func(r Right) bool { return r.Resource == "events" }) {
			t.Errorf("%s: a plan is refused where Events cannot be written", side)
		}
		for resource, want := range map[string][]string{
			"statefulsets": {"web"}, "poddisruptionbudgets": {"web-pdb"}, "persistentvolumeclaims": {"data-web-0", "data-web-1"}, "persistentvolumes": {"pv-1", "pv-2"},
		} {
			if !slices.Equal(names[resource], want) {
				t.Errorf("%s: %s may be changed: %v, expected %v", side, resource, names[resource], want)
			}
		}
	}
}

func rulesOf(o client.Object) []rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	}
	return nil
}

// harmless wants a rule without wildcards, that changes no pods, and reads no Secrets but those
// that it names.
func harmless(t *testing.T, r rbacv1.PolicyRule) {
	t.Helper()
	verbs := strings.Join(r.Verbs, " ")
	wildcard := strings.Contains(strings.Join(slices.Concat(r.APIGroups, r.Resources, r.Verbs), " "), "*")
	pods := r.Resources[0] == "pods" && verbs != "get list watch"
	secrets := r.Resources[0] == "secrets" && len(r.ResourceNames) == 0 && verbs != "create"
	if wildcard || pods || secrets {
		t.Errorf("%+v", r)
	}
}
