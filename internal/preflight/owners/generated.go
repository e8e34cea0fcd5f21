package owners

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GeneratedBy names the generator of a Secret or a ConfigMap, in words that continue "made by", or returns ""
// for an object that a user made. A copy of a generated object would be overwritten or, worse, never renewed:
// the generator must run on the destination too.
func GeneratedBy(o client.Object) string {
	switch o := o.(type) {
	case *corev1.Secret:
		if o.Type == "helm.sh/release.v1" {
			return "Helm, as the record of a release"
		}
	case *corev1.ConfigMap:
	default:
		return "" // a Service or ServiceAccount that an operator makes is of use as it is
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

// generators returns the kinds whose controllers make a Secret or a ConfigMap, and the product of each. Not
// all of them set themselves as the controller.
func generators() map[string]string {
	return map[string]string{
		"Certificate":    "cert-manager",
		"ExternalSecret": "External Secrets",
		"SealedSecret":   "Sealed Secrets",
		"Bundle":         "trust-manager",
	}
}

// ownershipMarker is a label or an annotation that a generator puts on what it makes.
type ownershipMarker struct {
	of   string   // the product that sets it
	kind string   // the kind that generates the object; its name is the value, or that of the object
	keys []string // any of them is enough
	// named reports whether the value is the name of the generator; otherwise the generator usually has the
	// object's name.
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

// on reports whether the object has the marker, and returns the name of the generator.
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
