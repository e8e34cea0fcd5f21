package copies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A twin is a Service of clients, made for the cluster alone. What another one has given to its original stays with that:
// addresses and node ports, which belong to one Service, and whatever tells a controller to make something of it. So an
// address of a load balancer, which costs money and may be open to the world, is never made by a move.

// isTwin reports whether a plan makes this Service for clients.
func isTwin(p *plans.Plan, name string) bool {
	return slices.ContainsFunc(p.Dependencies, func(d plans.Dependency) bool { return d.Kind == "Service" && d.Name == name && d.Twin != nil })
}

// twin returns the spec of the twin of a Service.
func twin(p *plans.Plan, s corev1.ServiceSpec) corev1.ServiceSpec {
	out := service(p, s)
	if out.Type != corev1.ServiceTypeClusterIP {
		out.Type, out.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, ""
	}
	out.ExternalIPs, out.LoadBalancerSourceRanges, out.LoadBalancerClass, out.AllocateLoadBalancerNodePorts = nil, nil, nil, nil
	if len(s.ExternalIPs) > 0 {
		out.ExternalTrafficPolicy = ""
	}
	return out
}

// LeftOut lists what the twin of a Service does not have of it: the field, and what the original has there. Of annotations
// it has the names alone.
func LeftOut(p *plans.Plan, s *corev1.Service) (out []string) {
	say := func(field, has string) {
		if has != "" && has != "0" && has != corev1.ClusterIPNone {
			out = append(out, field+" "+has)
		}
	}
	if s.Spec.Type != corev1.ServiceTypeClusterIP {
		say("spec.type", string(s.Spec.Type))
	}
	say("spec.clusterIP", s.Spec.ClusterIP)
	if service(p, s.Spec).IPFamilies == nil {
		for _, family := range s.Spec.IPFamilies {
			say("spec.ipFamilies", string(family))
		}
	}
	for _, port := range s.Spec.Ports {
		say(fmt.Sprintf("spec.ports[%s].nodePort", cmp.Or(port.Name, fmt.Sprint(port.Port))), fmt.Sprint(port.NodePort))
	}
	say("spec.externalIPs", strings.Join(s.Spec.ExternalIPs, ", "))
	if s.Spec.Type != corev1.ServiceTypeClusterIP || len(s.Spec.ExternalIPs) > 0 {
		say("spec.externalTrafficPolicy", string(s.Spec.ExternalTrafficPolicy))
	}
	say("spec.healthCheckNodePort", fmt.Sprint(s.Spec.HealthCheckNodePort))
	say("spec.loadBalancerIP", s.Spec.LoadBalancerIP)
	say("spec.loadBalancerSourceRanges", strings.Join(s.Spec.LoadBalancerSourceRanges, ", "))
	if class := s.Spec.LoadBalancerClass; class != nil {
		say("spec.loadBalancerClass", *class)
	}
	if allocate := s.Spec.AllocateLoadBalancerNodePorts; allocate != nil {
		say("spec.allocateLoadBalancerNodePorts", fmt.Sprint(*allocate))
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		say("the address", cmp.Or(in.IP, in.Hostname))
	}
	for _, key := range told(s) {
		say("the annotation", key)
	}
	return out
}

// told returns the annotations of a Service which tell a controller something, sorted.
func told(s *corev1.Service) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Annotations)), func(key string) bool {
		return key == corev1.LastAppliedConfigAnnotation || key == plans.StampAnnotation
	})
}

// Outward reports whether a Service is found from outside of its cluster, or tells a controller something, which its twin
// does not.
func Outward(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeClusterIP && s.Spec.Type != "" || len(s.Spec.ExternalIPs) > 0 || len(told(s)) > 0
}

// Touched returns who has changed a copy since it was made, or "". A user may give a twin another type, or an annotation,
// and it is theirs from then on. What admission made of it in the write that made it counts as the plan's. Where an object
// does not tell who has written it, its content decides.
func Touched(p *plans.Plan, from, have client.Object) string {
	for _, e := range have.GetManagedFields() {
		if e.Subresource == "" && !ours(e.Manager) {
			return e.Manager
		}
	}
	a, isOne := from.(*corev1.Service)
	b, isOther := have.(*corev1.Service)
	if len(have.GetManagedFields()) == 0 && isOne && isOther && !equality.Semantic.DeepEqual(twin(p, a.Spec), twin(p, b.Spec)) {
		return "an unknown client"
	}
	return ""
}
