package owners

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GeneratedBy says what makes a Secret or a ConfigMap, in words that go on after "made by", or ""
// for one that a person made. A copy of what is made would be overwritten or, worse, never
// renewed: the maker has to be at work on the destination too.
func GeneratedBy(o client.Object) string {
	switch o := o.(type) {
	case *corev1.Secret:
		if o.Type == "helm.sh/release.v1" {
			return "Helm, as the record of a release"
		}
	case *corev1.ConfigMap:
	default:
		return "" // an operator's Service or account is of use as it is
	}
	for _, r := range o.GetOwnerReferences() {
		if of, known := generators()[r.Kind]; known {
			return fmt.Sprintf("%s %s of %s", r.Kind, r.Name, of)
		}
	}
	for _, m := range ownershipMarkers() {
		if value, ok := m.on(o); ok {
			return m.maker(value)
		}
	}
	if r := metav1.GetControllerOf(o); r != nil {
		return fmt.Sprintf("%s %s, which controls it", r.Kind, r.Name)
	}
	return ""
}

// generators are the kinds whose objects end up as a Secret or a ConfigMap, and whose
// they are. Not all of them put themselves down as the controller.
func generators() map[string]string {
	return map[string]string{
		"Certificate":    "cert-manager",
		"ExternalSecret": "External Secrets",
		"SealedSecret":   "Sealed Secrets",
		"Bundle":         "trust-manager",
	}
}

// ownershipMarker is a label or an annotation that a maker puts on what it makes.
type ownershipMarker struct {
	of   string   // whose trace it is
	kind string   // the kind that makes an object; named by the value, or as the object is
	keys []string // any of them will do
	// named says that the trace's value is the maker's name; else it has the object's name as a rule.
	named bool
}

func ownershipMarkers() []ownershipMarker {
	return []ownershipMarker{
		{of: "cert-manager", kind: "Certificate", keys: []string{"cert-manager.io/certificate-name"}, named: true},
		{of: "External Secrets", kind: "ExternalSecret", keys: []string{
			"reconcile.external-secrets.io/managed", "reconcile.external-secrets.io/created-by", "reconcile.external-secrets.io/data-hash",
		}},
		{of: "Sealed Secrets", kind: "SealedSecret", keys: []string{"sealedsecrets.bitnami.com/managed", "sealedsecrets.bitnami.com/patch"}},
		{of: "trust-manager", kind: "Bundle", keys: []string{"trust.cert-manager.io/bundle"}, named: true},
		{of: "trust-manager", kind: "Bundle", keys: []string{"trust.cert-manager.io/hash"}},
	}
}

// on finds the trace, with the name of the maker that it gives.
func (m ownershipMarker) on(o client.Object) (value string, ok bool) {
	for _, notes := range []map[string]string{o.GetAnnotations(), o.GetLabels()} {
		for k, v := range notes {
			if slices.Contains(m.keys, k) && v != "false" {
				if !m.named || v == "" {
					v = o.GetName()
				}
				return v, true
			}
		}
	}
	return "", false
}

func (m ownershipMarker) maker(name string) string {
	return fmt.Sprintf("%s %s of %s", m.kind, name, m.of)
}
