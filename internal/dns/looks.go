package dns

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	netutils "k8s.io/utils/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// arrival is a pod that has arrived on a side.
type arrival struct {
	plan    *plans.Plan
	side    plans.Side
	pod     *corev1.Pod
	ordinal int32
}

// Missing returns the reason why a pod that has arrived on a side is not yet found under all its names, or by a Service of
// clients, read live, or "". Until then its peers cannot reach it, and the next ordinal must stay up (S2).
func Missing(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side, pod *corev1.Pod, ordinal int32) (string, error) {
	a := arrival{p, side, pod, ordinal}
	var own plans.Directory
	for _, d := range p.Directories() {
		find := a.unnamed
		switch {
		case d.Client == "" && d.Lists == side: // the control plane lists it there, by the Service
			own = d
			continue
		case d.Lists == side:
			continue
		case d.Client != "":
			find = a.unlisted
		}
		if why, err := find(ctx, on[d.On], d); err != nil || why != "" {
			return why, err
		}
	}
	if own.Lists == "" { // names are not bridged
		return "", nil
	}
	why, err := unserved(ctx, p, on[own.On], own)
	if err != nil || why == "" {
		return "", err
	}
	return fmt.Sprintf("pod %s is available, waiting until %s resolves on the %s%s", pod.Name, p.Host(side, ordinal, own.Namespace), own.On, why), nil
}

// unnamed returns the reason why the name of the pod is not answered in a directory with all its addresses, or "".
func (a arrival) unnamed(ctx context.Context, c client.Client, d plans.Directory) (string, error) {
	needed, err := needed(ctx, a.plan, c, d, a.pod)
	if err != nil {
		return "", err
	}
	for _, ip := range needed {
		found, err := listed(ctx, c, d, sliceName(a.plan, d, family(ip), a.ordinal), func(e discoveryv1.Endpoint) bool {
			return e.Hostname != nil && *e.Hostname == a.pod.Name && slices.Contains(e.Addresses, ip)
		})
		if err != nil {
			return "", err
		}
		if !found {
			why := fmt.Sprintf("pod %s is available, waiting until %s resolves to its address %s on the %s", a.pod.Name, a.plan.Host(a.side, a.ordinal, d.Namespace), ip, d.On)
			obstacle, err := obstacle(ctx, a.plan, c, d, ip, a.pod.Name)
			return why + obstacle, err
		}
	}
	return "", nil
}

// needed returns the addresses of a pod that a directory lists. Only where a pod has several does it depend on the
// families of the Service.
func needed(ctx context.Context, p *plans.Plan, c client.Client, d plans.Directory, pod *corev1.Pod) ([]string, error) {
	var service corev1.Service
	if len(pod.Status.PodIPs) > 1 {
		key := client.ObjectKey{Namespace: d.Namespace, Name: p.Names.Service}
		if err := c.Get(ctx, key, &service); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Service %s on the %s: %w", key, d.On, err)
		}
	}
	var out []string
	for _, ip := range pod.Status.PodIPs {
		if slices.Contains(answers(&service, pod), family(ip.IP)) {
			out = append(out, ip.IP)
		}
	}
	return out, nil
}

func family(address string) discoveryv1.AddressType {
	if netutils.IsIPv6String(address) {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// listed reports whether a slice lists a pod as ready.
func listed(ctx context.Context, c client.Client, d plans.Directory, slice string, is func(discoveryv1.Endpoint) bool) (bool, error) {
	var s discoveryv1.EndpointSlice
	key := client.ObjectKey{Namespace: d.Namespace, Name: slice}
	if err := c.Get(ctx, key, &s); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading EndpointSlice %s on the %s: %w", key, d.On, err)
	}
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
		return is(e) && e.Conditions.Ready != nil && *e.Conditions.Ready
	}), nil
}

// obstacle returns what keeps a hostname from being listed at an address until another writer acts, or "".
func obstacle(ctx context.Context, p *plans.Plan, c client.Client, d plans.Directory, address, hostname string) (string, error) {
	if why, err := unserved(ctx, p, c, d); err != nil || why != "" {
		return why, err
	}
	stale, err := listedElse(ctx, p, c, d, address, hostname)
	if err != nil || stale == "" {
		return "", err
	}
	return fmt.Sprintf(", where EndpointSlice %s/%s still lists the name at another address; its writer, or the controller manager of that cluster, must remove that", d.Namespace, stale), nil
}

// unserved says which Service a directory lacks, without which it resolves no name, or "".
func unserved(ctx context.Context, p *plans.Plan, c client.Client, d plans.Directory) (string, error) {
	key := client.ObjectKey{Namespace: d.Namespace, Name: p.Names.Service}
	err := c.Get(ctx, key, &corev1.Service{})
	switch {
	case apierrors.IsNotFound(err) && d.Lists == "":
		return fmt.Sprintf(", where Service %s, which stands in for that of the other cluster, does not exist; recreate namespace %s there, if it is gone", key, d.Namespace), nil
	case apierrors.IsNotFound(err):
		return fmt.Sprintf(", where Service %s does not exist any more: it gives the pods their names; recreate it", key), nil
	case err != nil:
		return "", fmt.Errorf("reading Service %s on the %s: %w", key, d.On, err)
	}
	return "", nil
}

// listedElse returns the name of a slice of another writer that lists a hostname at another address, or "".
func listedElse(ctx context.Context, p *plans.Plan, c client.Client, d plans.Directory, address, hostname string) (string, error) {
	var all discoveryv1.EndpointSliceList
	if err := c.List(ctx, &all, client.InNamespace(d.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: p.Names.Service}); err != nil {
		return "", fmt.Errorf("listing EndpointSlices of namespace %s on the %s: %w", d.Namespace, d.On, err)
	}
	var others []*discoveryv1.EndpointSlice
	for i := range all.Items {
		if s := &all.Items[i]; !ofPlan(s) {
			others = append(others, s)
		}
	}
	return listsElse(others, family(address), hostname, address), nil
}

// Remove returns the look that deletes the exports, slices and stand-in Services of a plan, one after the
// other, unless the user keeps them after finalize. BEFORE its first write, stop has ended the Syncer
// of this process, which would recreate them.
func Remove(p *plans.Plan, on map[plans.Side]client.Client, stop func()) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		if m.KeepNames && m.To() == plans.Destination {
			return plans.Done(), nil
		}
		stop()
		if s, err := unexport(ctx, p, on, m); err != nil || s.Standing != plans.After {
			return s, err
		}
		if s, err := unlist(ctx, p, on); err != nil || s.Standing != plans.After {
			return s, err
		}
		for _, d := range p.Directories() {
			if d.Lists != "" {
				continue
			}
			var s corev1.Service
			err := on[d.On].Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: p.Names.Service}, &s)
			if err != nil && !apierrors.IsNotFound(err) {
				return plans.Observation{}, fmt.Errorf("reading Service %s/%s on the %s: %w", d.Namespace, p.Names.Service, d.On, err)
			}
			if err == nil && s.Labels[PlanLabel] == p.ID && s.DeletionTimestamp == nil {
				return remove(on[d.On], d.Namespace, "Service", &s, d.On), nil
			}
		}
		return plans.Done(), nil
	}
}

// unlist deletes the slices of a plan, one after the other.
func unlist(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client) (plans.Observation, error) {
	for _, side := range plans.Sides() {
		for _, namespace := range p.Directories().In(side) {
			var all discoveryv1.EndpointSliceList
			if err := on[side].List(ctx, &all, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector(p)}); err != nil {
				return plans.Observation{}, fmt.Errorf("listing EndpointSlices of namespace %s on the %s: %w", namespace, side, err)
			}
			if i := slices.IndexFunc(all.Items, func(s discoveryv1.EndpointSlice) bool { return ofPlan(&s) }); i >= 0 {
				return remove(on[side], namespace, "EndpointSlice", &all.Items[i], side), nil
			}
		}
	}
	return plans.Done(), nil
}

func remove[O writes.Own](c client.Client, namespace, kind string, o O, side plans.Side) plans.Observation {
	return plans.Write(fmt.Sprintf("%s: delete %s %s/%s, which bridged the names", side, kind, namespace, o.GetName()), plans.Undo{},
		func(ctx context.Context) error { return writes.Delete(ctx, c, o) })
}
