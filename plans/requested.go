package plans

import (
	"fmt"
	"strings"
)

// A plan that was requested in another namespace than that of its orchestrator is named NAMESPACE.NAME, after the object
// that requests it. No other plan has a dot in its name, and no namespace has one: so each plan has one object, and the
// name of a plan of a namespace cannot be taken outside of that namespace.

// maxNamespacedName is how long such a name may be: with the end of its ID, it is the value of a label.
const maxNamespacedName = 56

// NameIn returns the name of the plan that an object of such a namespace requests.
func NameIn(namespace, object string) string { return namespace + "." + object }

// RequestedIn returns the namespace and the name of the object that requests a plan. The namespace is "" for a plan that
// is requested where its orchestrator is: the name of that object is the plan's.
func RequestedIn(plan string) (namespace, object string) {
	if namespace, object, found := strings.Cut(plan, "."); found {
		return namespace, object
	}
	return "", plan
}

// RefuseStoredName returns the reason why no stored plan can have a name: it is none that a user may choose
// (RefuseName), nor that of a plan that was requested in another namespace.
func RefuseStoredName(plan string) error {
	namespace, object := RequestedIn(plan)
	switch {
	case namespace == "":
		return RefuseName(plan)
	case !label(namespace), strings.HasPrefix(namespace, "adopt-"): // stsmigrate-adopt-SET is that of an adoption
		return fmt.Errorf("plan name %.130q: no plan can be named after namespace %s", plan, namespace)
	case len(plan) > maxNamespacedName:
		return fmt.Errorf("plan name %.130q: it has %d characters, expected at most %d; give the object a name of at most %d", plan, len(plan), maxNamespacedName, max(maxNamespacedName-len(namespace)-1, 0))
	}
	return RefuseName(object)
}
