package dns

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ManagedBy marks our EndpointSlices. The control plane's own controllers ignore slices of another manager.
const ManagedBy = "names.stsmigrate.dev"

// PlanLabel carries the ID of the plan that a slice or a Service was created for.
const PlanLabel = "stsmigrate.dev/plan-id"

// ofPlan reports whether a slice is one of ours. It is known by its plan and name: another writer may have changed who
// manages it, and the control plane puts the labels of a Service on its own slices.
func ofPlan(s *discoveryv1.EndpointSlice) bool {
	plan := s.Labels[PlanLabel]
	return plan != "" && strings.HasPrefix(s.Name, slicePrefix(plan))
}

// slicePrefix is the beginning of the names of the slices of a plan.
func slicePrefix(plan string) string { return "stsmigrate-" + plan + "-" }

// maxEndpointsPerSlice is the maximum number of ordinals in one slice, the same as in the control plane's
// own.
const maxEndpointsPerSlice = 100

// marks returns the labels of the slices of a Service. kube-proxy ignores those with the mark of a headless one.
func marks(p *plans.Plan, d plans.Directory, service *corev1.Service) map[string]string {
	out := map[string]string{
		discoveryv1.LabelServiceName: p.Names.ServiceOf(d),
		discoveryv1.LabelManagedBy:   ManagedBy,
		PlanLabel:                    p.ID,
	}
	if d.Client == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		out[corev1.IsHeadlessService] = ""
	}
	return out
}

// sliceName returns the name of the slice of a directory that lists an ordinal.
func sliceName(p *plans.Plan, d plans.Directory, t discoveryv1.AddressType, ordinal int32) string {
	prefix := slicePrefix(p.ID)
	if d.Client != "" {
		prefix += d.Client + "-"
	}
	return fmt.Sprintf("%s%s-%d", prefix, strings.ToLower(string(t)), (ordinal-p.Start)/maxEndpointsPerSlice)
}

// SliceNames lists the names of all slices that a plan may need in a directory.
func SliceNames(p *plans.Plan, d plans.Directory) []string {
	var out []string
	for _, t := range addressTypes() {
		for o := p.Start; o < p.End(); o += maxEndpointsPerSlice {
			out = append(out, sliceName(p, d, t, o))
		}
	}
	return out
}

// Want returns, by name, the slices that a directory needs beside the control plane's own. They list the pods
// of the sides that the directory itself does not list, each under its hostname, as far as they may be
// resolved now. pods are the pods of the set, by side. others are the slices of the Service that others write.
//
// A name never gets a second address: one of the two would be that of a pod which is gone, or by now that of another
// pod. Watches and the control plane's own slices may be behind by as long as an outage lasts. So a pod is left out
// while the directory has another one of its name.
func Want(p *plans.Plan, d plans.Directory, service *corev1.Service, pods map[plans.Side][]*corev1.Pod, others []*discoveryv1.EndpointSlice) map[string]*discoveryv1.EndpointSlice {
	if d.Client != "" {
		return ofClients(p, d, service, pods[d.Lists.Other()])
	}
	out := sliceSet{}
	byName := map[plans.Side]map[string]*corev1.Pod{}
	for _, side := range plans.Sides() {
		byName[side] = map[string]*corev1.Pod{}
		for _, pod := range pods[side] {
			byName[side][pod.Name] = pod
		}
	}
	for _, side := range plans.Sides() {
		if d.Lists == side {
			continue
		}
		for o := p.Start; o < p.End(); o++ {
			pod := byName[side][p.Pod(side, o)]
			if pod == nil || isSecond(pod, byName[side.Other()][pod.Name], d.Lists != "") {
				continue
			}
			for _, t := range answers(service, pod) {
				address := addressOf(pod, t)
				if address == "" || !findable(pod, service) || listsElse(others, t, pod.Name, address) != "" {
					continue
				}
				s := out.of(p, d, service, t, o)
				s.Endpoints = append(s.Endpoints, endpoint(pod, address))
				s.Ports = withPorts(s.Ports, service, pod)
			}
		}
	}
	return out
}

// sliceSet is the slices that a directory needs, by name.
type sliceSet map[string]*discoveryv1.EndpointSlice

// of returns the slice for an ordinal, which it adds first if there is none yet.
func (s sliceSet) of(p *plans.Plan, d plans.Directory, service *corev1.Service, t discoveryv1.AddressType, ordinal int32) *discoveryv1.EndpointSlice {
	name := sliceName(p, d, t, ordinal)
	if s[name] == nil {
		s[name] = &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: d.Namespace, Name: name, Labels: marks(p, d, service)},
			AddressType: t, Ports: []discoveryv1.EndpointPort{},
		}
	}
	return s[name]
}

// isSecond reports whether a pod must not be listed because of the pod of its name on the other side, which may be nil.
// One of the two is gone, or is about to go. own reports that the directory lists the other one by itself. Without
// that, the one that is not being deleted is listed, or neither.
func isSecond(pod, other *corev1.Pod, own bool) bool {
	return other != nil && (own || pod.DeletionTimestamp != nil || other.DeletionTimestamp == nil)
}

// listsElse returns the name of a slice that lists a hostname at another address of that type, or "".
func listsElse(all []*discoveryv1.EndpointSlice, t discoveryv1.AddressType, hostname, address string) string {
	for _, s := range all {
		for _, e := range s.Endpoints {
			if s.AddressType == t && e.Hostname != nil && *e.Hostname == hostname && !slices.Contains(e.Addresses, address) {
				return s.Name
			}
		}
	}
	return ""
}

func addressTypes() []discoveryv1.AddressType {
	return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}
}

// answers returns the types of the addresses with which a Service answers for a pod. They are the families of the
// Service, as in the control plane's own slices. A pod without an address of these is better found by those that it has
// than not at all.
func answers(service *corev1.Service, pod *corev1.Pod) []discoveryv1.AddressType {
	has := slices.DeleteFunc(addressTypes(), func(t discoveryv1.AddressType) bool { return addressOf(pod, t) == "" })
	of := slices.DeleteFunc(slices.Clone(has), func(t discoveryv1.AddressType) bool {
		return !slices.Contains(service.Spec.IPFamilies, corev1.IPFamily(t))
	})
	switch {
	case len(of) > 0:
		return of
	case len(has) > 0:
		return has
	}
	return addressTypes()
}

// addressOf returns the address of a pod, or "". A pod that has ended has none. An address that no EndpointSlice may
// have counts as none: the API server would refuse the whole slice, with the addresses of all other pods.
func addressOf(pod *corev1.Pod, t discoveryv1.AddressType) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return ""
	}
	for _, ip := range pod.Status.PodIPs {
		a, err := netip.ParseAddr(ip.IP)
		barred := err != nil || a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.Is4In6() || a.Zone() != ""
		if !barred && a.Is6() == (t == discoveryv1.AddressTypeIPv6) {
			return ip.IP
		}
	}
	return ""
}

// findable reports whether a DNS server would return the pod. The control plane also lists other pods, as not
// ready; for the name, both have the same effect.
func findable(pod *corev1.Pod, service *corev1.Service) bool {
	return service.Spec.PublishNotReadyAddresses || clusters.IsReady(pod) && pod.DeletionTimestamp == nil
}

// endpoint sets the conditions that the control plane would set for the pod.
func endpoint(pod *corev1.Pod, address string) discoveryv1.Endpoint {
	ready, serving, terminating := true, clusters.IsReady(pod), pod.DeletionTimestamp != nil
	name := pod.Name
	return discoveryv1.Endpoint{
		Addresses: []string{address}, Hostname: &name,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
}

// withPorts adds the ports of the Service that a slice lacks, with named targets resolved in the pod. Pods whose
// templates give a target different numbers have that of the first. A number that is no port counts as none: the API
// server would refuse the whole slice.
func withPorts(have []discoveryv1.EndpointPort, service *corev1.Service, pod *corev1.Pod) []discoveryv1.EndpointPort {
	for _, p := range service.Spec.Ports {
		name, protocol := p.Name, p.Protocol
		if slices.ContainsFunc(have, func(h discoveryv1.EndpointPort) bool { return *h.Name == name }) {
			continue
		}
		if number := target(p, pod); len(validation.IsValidPortNum(int(number))) == 0 {
			have = append(have, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &number, AppProtocol: p.AppProtocol})
		}
	}
	return have
}

// target returns the port of a pod that a port of its Service stands for, or 0.
func target(p corev1.ServicePort, pod *corev1.Pod) int32 {
	if p.TargetPort.Type == intstr.Int {
		if p.TargetPort.IntVal != 0 {
			return p.TargetPort.IntVal
		}
		return p.Port
	}
	for _, c := range lasting(pod) {
		for _, have := range c.Ports {
			if have.Name == p.TargetPort.StrVal && have.Protocol == p.Protocol {
				return have.ContainerPort
			}
		}
	}
	return 0
}

// lasting returns the containers of a pod that run as long as it does, sidecars (KEP-753) last.
func lasting(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.Containers, slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	}))
}

// same reports whether a slice already has the wanted content.
func same(have, want *discoveryv1.EndpointSlice) bool {
	return have.AddressType == want.AddressType && equality.Semantic.DeepEqual(have.Endpoints, want.Endpoints) &&
		equality.Semantic.DeepEqual(have.Ports, want.Ports) && maps.Equal(have.Labels, want.Labels)
}
