package dns

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// slim returns the fields of an object from which slices and Services of names are made. A slim object
// stays the same. It returns false for an object of a kind that is not watched.
func slim(o any) (metav1.Object, bool) {
	switch o := o.(type) {
	case *corev1.Pod:
		return slimPod(o), true
	case *corev1.Service:
		out := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		out.Spec.PublishNotReadyAddresses, out.Spec.Ports, out.Spec.IPFamilies = o.Spec.PublishNotReadyAddresses, o.Spec.Ports, o.Spec.IPFamilies
		out.Spec.Selector, out.Spec.Type, out.Spec.ClusterIP = o.Spec.Selector, o.Spec.Type, o.Spec.ClusterIP
		return out, true
	case *discoveryv1.EndpointSlice:
		if !ofPlan(o) {
			return slimOther(o), true
		}
		out := *o               // it is written whole
		out.ManagedFields = nil // a write without them leaves them as they are
		return &out, true
	}
	return nil, false
}

// slimOther keeps which hostnames a slice of another writer lists at which addresses. It drops the resource version, so
// that a slice in which a pod merely became ready stays equal.
func slimOther(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	out := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}, AddressType: s.AddressType}
	out.Labels = map[string]string{discoveryv1.LabelServiceName: s.Labels[discoveryv1.LabelServiceName]}
	for _, e := range s.Endpoints {
		if e.Hostname != nil {
			out.Endpoints = append(out.Endpoints, discoveryv1.Endpoint{Addresses: e.Addresses, Hostname: e.Hostname})
		}
	}
	return out
}

// slimPod drops the resource version, so that a pod whose probes merely ran again stays equal.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, DeletionTimestamp: pod.DeletionTimestamp}}
	out.Spec.NodeName = pod.Spec.NodeName
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		yes := true
		out.OwnerReferences = []metav1.OwnerReference{{Name: owner.Name, Controller: &yes}}
	}
	for _, c := range lasting(pod) {
		for _, port := range c.Ports {
			if port.Name != "" { // a Service may refer to it
				out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{Name: port.Name, Protocol: port.Protocol, ContainerPort: port.ContainerPort}}})
			}
		}
	}
	if clusters.IsReady(pod) {
		out.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	out.Status.Phase, out.Status.PodIPs = pod.Status.Phase, pod.Status.PodIPs
	return out
}
