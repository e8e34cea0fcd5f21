package access

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// LookRoles returns the Roles and bindings with which users look at a move before there is a plan: they make the plan and
// run its checks, and write nothing.
func LookRoles(p *plans.Plan, side plans.Side, users, groups []string) []client.Object {
	return rolesOf(grant{nameBefore("look", p, side), subjects(users, groups)}, p, side, nil, ToLook(p, side))
}

// MoveRoles returns those with which they carry it out. What is named after the ID of a plan has no name yet: such a right is
// about all objects of its kind in the namespace. The Roles of the plan itself are narrower (UserRoles).
func MoveRoles(p *plans.Plan, side plans.Side, users, groups, volumes []string) []client.Object {
	rights := userRights(p, side)
	for k, r := range rights {
		if r.Resource == "jobs" || slices.ContainsFunc(r.Names, func(name string) bool { return strings.Contains(name, p.ID) }) {
			rights[k].Names = nil
		}
	}
	return rolesOf(grant{nameBefore("move", p, side), subjects(users, groups)}, p, side, volumes, rights)
}

// nameBefore is the name of Roles before there is a plan. It has the namespace: ClusterRoles for sets of one name would
// collide.
func nameBefore(purpose string, p *plans.Plan, side plans.Side) string {
	return fmt.Sprintf("stsmigrate-%s-%s-%s-%s", purpose, p.On(side).Namespace, p.On(side).Name, side)
}

// ToLook returns the rights to read what a plan is made of, and what its checks look at, each resource once. Secrets are read
// by name, as far as the pods are known to name them.
func ToLook(p *plans.Plan, side plans.Side) []part.Right {
	type place struct {
		group, resource, namespace, names string
		wide                              bool
	}
	var out []part.Right
	at := map[place]int{}
	for _, r := range userRights(p, side) {
		if strings.Contains(r.Resource, "/") || r.Resource == "secrets" && len(r.Names) == 0 {
			continue
		}
		verbs := slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool { return verb != "get" && verb != "list" })
		if len(verbs) == 0 {
			continue
		}
		if slices.Contains(verbs, "list") {
			verbs = append(verbs, "get") // a subject that may list may read each object anyway
		}
		if r.Resource != "secrets" && r.Resource != "namespaces" {
			r.Names = nil
		}
		to := place{r.Group, r.Resource, r.In(p, side), strings.Join(r.Names, " "), r.ClusterWide}
		if to.wide {
			to.namespace = ""
		}
		k, known := at[to]
		if !known {
			k, at[to] = len(out), len(out)
			r.Verbs = nil
			out = append(out, r)
		}
		out[k].Verbs = slices.Compact(slices.Sorted(slices.Values(append(out[k].Verbs, verbs...))))
	}
	return out
}
