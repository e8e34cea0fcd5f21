package dns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ofClients returns the slices that a Service of clients needs beside the control plane's own. They list every pod of the
// other side that its selector matches as the pod's labels are now, as the control plane would: also those that are not
// ready, or are being deleted, which kube-proxy uses while there is no better one.
func ofClients(p *plans.Plan, d plans.Directory, service *corev1.Service, pods []*corev1.Pod) map[string]*discoveryv1.EndpointSlice {
	out, byName := sliceSet{}, map[string]*corev1.Pod{}
	for _, pod := range pods {
		byName[pod.Name] = pod
	}
	for o := p.Start; o < p.End(); o++ {
		pod := byName[p.Pod(d.Lists.Other(), o)]
		if pod == nil || !clients.Selects(service, pod.Labels) {
			continue
		}
		for _, t := range families(service) {
			if address := addressOf(pod, t); address != "" {
				s := out.of(p, d, service, t, o)
				s.Endpoints = append(s.Endpoints, clientEndpoint(d, service, pod, address))
				s.Ports = withPorts(s.Ports, service, pod)
			}
		}
	}
	return out
}

// families returns the types of the addresses of a Service's endpoints. A cluster IP of one family leads to no endpoint of
// the other one.
func families(service *corev1.Service) []discoveryv1.AddressType {
	return slices.DeleteFunc(addressTypes(), func(t discoveryv1.AddressType) bool {
		return len(service.Spec.IPFamilies) > 0 && !slices.Contains(service.Spec.IPFamilies, corev1.IPFamily(t))
	})
}

// clientEndpoint sets the conditions that the control plane would set for the pod. Its node counts within one cluster, for
// traffic that stays on its node; it names the pod nowhere: what follows the name would look in the Service's namespace.
func clientEndpoint(d plans.Directory, service *corev1.Service, pod *corev1.Pod, address string) discoveryv1.Endpoint {
	serving, terminating := clusters.IsReady(pod), pod.DeletionTimestamp != nil
	ready := service.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
	}
	if node := pod.Spec.NodeName; node != "" && d.SameNodes {
		e.NodeName = &node
	}
	return e
}

// unlisted returns the reason why the pod is not yet listed by a Service of clients of the other
// side that selects it, read live, or "".
func (a arrival) unlisted(ctx context.Context, c client.Client, d plans.Directory) (string, error) {
	var service corev1.Service
	key := client.ObjectKey{Namespace: d.Namespace, Name: d.Client}
	if err := c.Get(ctx, key, &service); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return "", nil // its clients have no name
		}
		return "", fmt.Errorf("reading Service %s on the %s: %w", key, d.On, err)
	}
	if !clients.Selects(&service, a.pod.Labels) {
		return "", nil
	}
	for _, t := range families(&service) {
		address := addressOf(a.pod, t)
		if address == "" {
			continue
		}
		found, err := listed(ctx, c, d, sliceName(a.plan, d, t, a.ordinal), func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, address) })
		if err != nil {
			return "", err
		}
		if !found {
			return fmt.Sprintf("pod %s is available, waiting until Service %s on the %s, by which clients find it, lists its address %s", a.pod.Name, key, d.On, address), nil
		}
	}
	return "", nil
}

// isOf reports whether a slice of the plan is one of a directory. What belongs to no Service of clients is the governing
// one's.
func isOf(p *plans.Plan, d plans.Directory, slice string) bool {
	rest := strings.TrimPrefix(slice, slicePrefix(p.ID))
	at := strings.LastIndex(rest, "-ipv")
	if at < 0 || !slices.Contains(p.Names.Clients, rest[:at]) {
		return d.Client == ""
	}
	return rest[:at] == d.Client
}
