package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

// rights are the rules of an account with exactly the Roles that `rbac` prints, in one cluster. The key is
// the namespace, "" for all.
type rights map[string][]rbacv1.PolicyRule

// grant gives the account of the engines the Roles of the plan as `rbac` prints them now, and the Role for
// its records. These replace the former ones.
func (w *world) grant() {
	on := clusters.Clusters{}
	for side, s := range w.on {
		on[side] = s
	}
	disks, err := access.Disks(context.TODO(), w.plan, on, nil)
	must(err)
	var volumes []string
	for _, d := range disks {
		volumes = append(volumes, d.Name)
	}
	w.agree(on, volumes)
	if now := (printed{w.plan, strings.Join(volumes, " ")}); w.printed != now {
		w.printed, w.rights = now, w.roles(volumes)
	}
}

// printed is what the Roles depend on. Forks of a world share what it has not changed.
type printed struct {
	plan    *plans.Plan
	volumes string
}

// roles returns the rights that the Roles of the plan give, by cluster.
func (w *world) roles(volumes []string) map[string]rights {
	out := map[string]rights{}
	for side, s := range w.on {
		have := out[s.name]
		if have == nil {
			have = rights{}
			out[s.name] = have
		}
		for _, o := range access.Roles(w.plan, side, types.NamespacedName{Namespace: "stsmigrate", Name: "orchestrator"}, volumes) {
			switch o := o.(type) {
			case *rbacv1.ClusterRole:
				have[""] = append(have[""], o.Rules...)
			case *rbacv1.Role:
				have[o.Namespace] = append(have[o.Namespace], o.Rules...)
			}
		}
		if side == plans.Destination {
			for _, r := range access.ForRecords() {
				have[green] = append(have[green], rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs})
			}
		}
	}
	return out
}

// may returns an error for a request that no Role allows. A right that the plan needs and that is not printed
// breaks L1: no user could grant it.
func (c *conn) may(verb string, k key) error {
	err := c.refused(verb, k)
	if err != nil {
		c.r.w.fail("L1", "no printed Role allows to %s %s of cluster %s", verb, k, c.name)
	}
	return err
}

// refused returns an error for a request that no Role allows.
func (c *conn) refused(verb string, k key) error {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: k.kind})
	resource := plural.Resource
	if c.allowed(verb, resource, k.namespace, k.name) {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, k.name, fmt.Errorf("RBAC: no rule allows to %s it", verb))
}

func (c *conn) allowed(verb, resource, namespace, name string) bool {
	have := c.r.w.rights[c.name]
	if resource == "namespaces" {
		namespace = name // a Role in a namespace gives the right to read it
	}
	for _, rule := range slices.Concat(have[""], have[namespace]) {
		named := len(rule.ResourceNames) > 0 && verb != "create"
		if slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) && (!named || slices.Contains(rule.ResourceNames, name)) {
			return true
		}
	}
	return false
}

// agree lets each cluster consent to the volumes of the plan, as `consent --cluster` prints them now.
func (w *world) agree(on clusters.Clusters, names []string) {
	agreed := map[string]*unstructured.Unstructured{} // a new map: forks of a world share the old one
	maps.Copy(agreed, w.agreed)
	for side, s := range w.on {
		volumes, err := access.NewVolumes(context.TODO(), w.plan, on, side, names)
		must(err)
		if len(volumes) > 0 || agreed[s.name] == nil {
			agreed[s.name], err = access.AgreeVolumes(w.plan, volumes, agreed[s.name])
			must(err)
		}
	}
	w.agreed = agreed
}
