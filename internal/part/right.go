package part

import (
	"strings"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Right is a set of verbs on one resource or subresource (such as pods/exec): everywhere if ClusterWide,
// otherwise in Namespace, or in the namespace of the side if that is empty.
type Right struct {
	Group, Resource string
	Verbs           []string
	Namespace       string
	ClusterWide     bool
	// Names are the objects that the right is about, as far as their names are known: a verb that RBAC can
	// limit to names is needed for no other object.
	Names []string
}

// Watched returns the verbs of who reads objects and waits for their changes.
func Watched() []string { return []string{"get", "list", "watch"} }

// Changed returns the verbs of who also makes, changes and deletes them.
func Changed() []string { return append(Watched(), "create", "patch", "delete") }

// In returns the namespace of the right on a side.
func (r Right) In(p *plans.Plan, side plans.Side) string {
	if r.Namespace != "" {
		return r.Namespace
	}
	return p.On(side).Namespace
}

// Where says what the right is about on a side, and where.
func (r Right) Where(p *plans.Plan, side plans.Side) string {
	name := r.Resource
	if r.Group != "" {
		name += "." + r.Group
	}
	if r.ClusterWide {
		return name + " (cluster-wide)"
	}
	return name + " in namespace " + r.In(p, side)
}

// Nameless reports whether RBAC cannot limit a verb to names. list and watch are about all objects. An object
// to create has no name yet when the right is checked, except for a subresource of an existing object
// (pods/exec).
func (r Right) Nameless(verb string) bool {
	return verb == "list" || verb == "watch" || verb == "create" && !strings.Contains(r.Resource, "/")
}
