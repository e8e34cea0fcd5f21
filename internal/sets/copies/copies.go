// Package copies knows what the copy of a dependency is, and how a copy and its original may come to differ: while a plan
// is under way both are the user's to change. It never writes, and it never shows a value of a Secret or a ConfigMap.
package copies

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Replica returns the object for the destination: what a user wrote, and nothing of what the
// source's control plane added.
func Replica(p *plans.Plan, o client.Object) client.Object {
	meta := metav1.ObjectMeta{Namespace: p.Destination.Namespace, Name: o.GetName(), Labels: o.GetLabels(), Annotations: map[string]string{}}
	for k, v := range o.GetAnnotations() {
		// The last-applied annotation would carry a Secret's values in the clear.
		if k != "kubectl.kubernetes.io/last-applied-configuration" && k != plans.StampAnnotation {
			meta.Annotations[k] = v
		}
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: meta, Data: o.Data, BinaryData: o.BinaryData, Immutable: o.Immutable}
	case *corev1.Secret:
		return &corev1.Secret{ObjectMeta: meta, Data: o.Data, Type: o.Type, Immutable: o.Immutable}
	case *corev1.ServiceAccount:
		return &corev1.ServiceAccount{ObjectMeta: meta, ImagePullSecrets: o.ImagePullSecrets, AutomountServiceAccountToken: o.AutomountServiceAccountToken}
	case *corev1.Service:
		next := &corev1.Service{ObjectMeta: meta, Spec: service(p, o.Spec)}
		if isTwin(p, o.Name) {
			next.Annotations, next.Spec = map[string]string{}, twin(p, o.Spec)
		}
		if policy := o.Spec.IPFamilyPolicy; !p.OneCluster() && policy != nil && *policy != corev1.IPFamilyPolicySingleStack {
			both := corev1.IPFamilyPolicyPreferDualStack // a cluster with one family would refuse RequireDualStack
			next.Spec.IPFamilyPolicy = &both
		}
		return next
	}
	return nil
}

// service keeps what a user decides about a Service. Addresses and node ports belong to the
// cluster that assigned them. So do the IP families, which another cluster may not have. Within one cluster they stay:
// the API server would choose the first family of the cluster, and pods would find one another by another one.
func service(p *plans.Plan, s corev1.ServiceSpec) corev1.ServiceSpec {
	out := *s.DeepCopy()
	if out.ClusterIP != corev1.ClusterIPNone {
		out.ClusterIP = ""
	}
	out.ClusterIPs = nil
	if !p.OneCluster() {
		out.IPFamilies, out.IPFamilyPolicy = nil, nil
	}
	out.LoadBalancerIP, out.HealthCheckNodePort = "", 0
	for i := range out.Ports {
		out.Ports[i].NodePort = 0
	}
	return out
}

// Same reports whether two dependencies of a plan are equivalent for a pod.
func Same(p *plans.Plan, a, b client.Object) bool {
	switch a := a.(type) {
	case *corev1.ConfigMap:
		b, ok := b.(*corev1.ConfigMap)
		return ok && equality.Semantic.DeepEqual(a.Data, b.Data) && equality.Semantic.DeepEqual(a.BinaryData, b.BinaryData)
	case *corev1.Secret:
		b, ok := b.(*corev1.Secret)
		return ok && a.Type == b.Type && equality.Semantic.DeepEqual(a.Data, b.Data)
	case *corev1.ServiceAccount:
		b, ok := b.(*corev1.ServiceAccount)
		return ok && equality.Semantic.DeepEqual(pullSecrets(a), pullSecrets(b)) &&
			equality.Semantic.DeepEqual(a.AutomountServiceAccountToken, b.AutomountServiceAccountToken)
	case *corev1.Service:
		b, ok := b.(*corev1.Service)
		return ok && equality.Semantic.DeepEqual(service(p, a.Spec), service(p, b.Spec))
	}
	return false
}

// pullSecrets returns the pull secrets of an account that a user has named. OpenShift adds one of its own to each account,
// with another name on each side.
func pullSecrets(account *corev1.ServiceAccount) []corev1.LocalObjectReference {
	return slices.DeleteFunc(slices.Clone(account.ImagePullSecrets), func(r corev1.LocalObjectReference) bool {
		return strings.HasPrefix(r.Name, account.Name+"-dockercfg-")
	})
}
