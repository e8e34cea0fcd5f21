package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Quota requires room in each ResourceQuota of the side that the ordinals come to for all remaining ordinals together, so that
// the move does not exceed a quota midway. Between two waves it requires room for the next wave. A dry run
// cannot show this: it uses up no quota.
func Quota(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var quotas corev1.ResourceQuotaList
	to := i.Plan.On(i.To())
	if err := i.On[i.To()].List(ctx, &quotas, client.InNamespace(to.Namespace)); err != nil {
		return check.Unseen(err, "quotas of namespace "+to.Namespace, "resourcequotas")
	}
	if len(quotas.Items) == 0 {
		return nil, nil
	}
	pod, rest, err := demands(ctx, i)
	if err != nil {
		return nil, err
	}
	held, err := placeholders(ctx, i)
	if err != nil {
		return nil, err
	}
	perPod := podDemand(pod)
	var out []check.Finding
	for k := range quotas.Items {
		q := &quotas.Items[k]
		object := fmt.Sprintf("ResourceQuota %s/%s", q.Namespace, q.Name)
		matches, puzzling := covers(q, pod)
		if puzzling != "" {
			out = append(out, check.Finding{
				Level: check.Warn, Object: object, Saw: "its scope " + puzzling + " is not understood", Want: "to know that there is room for all ordinals",
				Remedy: "see yourself: " + i.Kubectl(i.To()) + " -n " + q.Namespace + " describe resourcequota " + q.Name,
			})
			continue
		}
		need := demand{}
		if matches {
			need.add(perPod, int64(i.Ordinals.Replicas))
		}
		if len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil {
			need.add(rest, 1) // scopes are about pods only
		}
		for k := range held {
			if counts, _ := covers(q, &held[k]); counts { // its ordinal has its place
				need.add(podDemand(&held[k]), -1)
			}
		}
		for _, s := range short(q, need) {
			out = append(out, check.Finding{
				Object: object, Saw: fmt.Sprintf("%s: %s of %s are left, and the %d ordinals that are to come need %s", s.name, s.left.String(), s.hard.String(), i.Ordinals.Replicas, s.need.String()),
				Want: "room for all ordinals", Remedy: fmt.Sprintf("raise it by %s: %s -n %s edit resourcequota %s", s.missing.String(), i.Kubectl(i.To()), q.Namespace, q.Name),
			})
		}
	}
	return out, nil
}

// demand is an amount of each resource.
type demand corev1.ResourceList

func (d demand) add(more demand, times int64) {
	for name, q := range more {
		sum := d[name]
		q = q.DeepCopy()
		q.Mul(times)
		sum.Add(q)
		d[name] = sum
	}
}

func (d demand) count(names ...corev1.ResourceName) {
	for _, n := range names {
		d.add(demand{n: *resource.NewQuantity(1, resource.DecimalSI)}, 1)
	}
}

// coming returns a pod as it would be on that side: as the API server returns it, where a dry run is
// allowed.
func coming(ctx context.Context, i check.Inspection) (*corev1.Pod, error) {
	may, err := mayTry(ctx, i)
	if err != nil {
		return nil, err
	}
	if may {
		tried, err := dryRunPod(ctx, i)
		if err != nil || tried.refusal == nil { // otherwise the check pod-accepted reports why
			return tried.pod, err
		}
	}
	set, err := i.Receives()
	if err != nil {
		return nil, err
	}
	return build.Pod(set, i.Plan.Start), nil
}

// demands returns a pod as the API server returns it, with the requests that LimitRanges add, and what is
// needed besides the pods.
func demands(ctx context.Context, i check.Inspection) (*corev1.Pod, demand, error) {
	pod, err := coming(ctx, i)
	if err != nil {
		return nil, nil, err
	}
	rest := demand{}
	claims, err := claims(ctx, i)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range claims {
		counted, err := prepared(ctx, i, c)
		if err != nil {
			return nil, nil, err
		}
		if !counted {
			rest.add(claimDemand(c), 1)
		}
	}
	for _, t := range sets.Ephemeral(pod.Spec) {
		rest.add(claimDemand(&corev1.PersistentVolumeClaim{Spec: t.Spec}), int64(i.Ordinals.Replicas))
	}
	if i.Midway {
		return pod, rest, nil // the others exist already
	}
	rest.count("configmaps", "count/configmaps", "configmaps", "count/configmaps", "count/leases.coordination.k8s.io") // plan, journal, Lease
	if !i.Plan.Existed() {
		rest.count(corev1.ResourceName("count/" + clusters.ResourceOf(i.Plan.Destination).GroupResource().String()))
	}
	if _, existed := i.Plan.BudgetOn(plans.Destination); !existed {
		rest.count("count/poddisruptionbudgets.policy")
	}
	for _, d := range i.Plan.Dependencies {
		to, err := i.Dependency(ctx, plans.Destination, d)
		if err != nil {
			return nil, nil, err
		}
		if to == nil && d.Required == "" {
			plural := corev1.ResourceName(strings.ToLower(d.Kind) + "s")
			rest.count(plural, "count/"+plural)
		}
	}
	return pod, rest, nil
}

// prepared reports whether a claim of the wave exists on the side that it comes to, where the quota counts it already.
func prepared(ctx context.Context, i check.Inspection, c *corev1.PersistentVolumeClaim) (bool, error) {
	if !i.Midway {
		return false, nil
	}
	have, err := i.MayBeMissing().Claim(ctx, i.To(), c.Name)
	return have != nil && i.Ours(have), err
}

// podDemand returns what one pod takes, under all the names that a quota may have for it.
func podDemand(p *corev1.Pod) demand {
	d := demand{}
	d.count("pods", "count/pods")
	for name, q := range total(p, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }) {
		d["requests."+name] = q
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			d[name] = q
		}
	}
	for name, q := range total(p, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }) {
		d["limits."+name] = q
	}
	return d
}

// total returns the sum over the containers, or what the initialization takes if that is more: each init
// container beside the sidecars that were started before it. A total that the pod states itself replaces the
// sum.
func total(p *corev1.Pod, of func(corev1.ResourceRequirements) corev1.ResourceList) demand {
	running, peak := demand{}, demand{}
	for _, c := range p.Spec.InitContainers {
		now := demand{}
		now.add(running, 1)
		now.add(demand(of(c.Resources)), 1)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			running = now
		}
		peak.raise(now)
	}
	for _, c := range p.Spec.Containers {
		running.add(demand(of(c.Resources)), 1)
	}
	running.raise(peak)
	if p.Spec.Resources != nil {
		maps.Copy(running, of(*p.Spec.Resources))
	}
	for name, q := range p.Spec.Overhead {
		if _, counts := running[name]; counts {
			running.add(demand{name: q}, 1)
		}
	}
	return running
}

// raise makes each amount at least as large as that of to.
func (d demand) raise(to demand) {
	for name, q := range to {
		if have, ok := d[name]; !ok || have.Cmp(q) < 0 {
			d[name] = q
		}
	}
}

func claimDemand(c *corev1.PersistentVolumeClaim) demand {
	d := demand{}
	d.count("persistentvolumeclaims", "count/persistentvolumeclaims")
	size := demand{"requests.storage": *c.Spec.Resources.Requests.Storage()}
	if name := class(c); name != "" {
		prefix := corev1.ResourceName(name + ".storageclass.storage.k8s.io/")
		d.count(prefix + "persistentvolumeclaims")
		size[prefix+"requests.storage"] = size["requests.storage"]
	}
	d.add(size, 1)
	return d
}

// covers reports whether the pods count against a quota. puzzling is a scope for which that is unknown, or
// "".
func covers(q *corev1.ResourceQuota, pod *corev1.Pod) (matches bool, puzzling string) {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, s := range q.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		all = append(all, q.Spec.ScopeSelector.MatchExpressions...)
	}
	matches = true
	for _, s := range all {
		var in bool
		switch s.ScopeName {
		case corev1.ResourceQuotaScopeTerminating:
			in = pod.Spec.ActiveDeadlineSeconds != nil
		case corev1.ResourceQuotaScopeNotTerminating:
			in = pod.Spec.ActiveDeadlineSeconds == nil
		case corev1.ResourceQuotaScopeBestEffort:
			in = bestEffort(pod)
		case corev1.ResourceQuotaScopeNotBestEffort:
			in = !bestEffort(pod)
		case corev1.ResourceQuotaScopePriorityClass:
			in = prioritized(s, pod.Spec.PriorityClassName)
		default:
			puzzling = string(s.ScopeName)
		}
		matches = matches && in
	}
	return matches, puzzling
}

func prioritized(s corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch s.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(s.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(s.Values, class)
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	default:
		return class != ""
	}
}

// bestEffort reports whether no container of the pod, nor the pod itself, requests or limits CPU or memory.
func bestEffort(p *corev1.Pod) bool {
	asks := func(l corev1.ResourceList) bool { return !l.Cpu().IsZero() || !l.Memory().IsZero() }
	if r := p.Spec.Resources; r != nil && (asks(r.Requests) || asks(r.Limits)) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		return asks(c.Resources.Requests) || asks(c.Resources.Limits)
	})
}

// shortage is a limit of a quota that would be exceeded.
type shortage struct {
	name                      corev1.ResourceName
	hard, left, need, missing resource.Quantity
}

// short lists the limits that a quota would exceed, sorted by name.
func short(q *corev1.ResourceQuota, need demand) (out []shortage) {
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
		want, asked := need[name]
		if !asked || want.Sign() <= 0 {
			continue
		}
		s := shortage{name: name, hard: q.Spec.Hard[name], need: want, missing: want.DeepCopy()}
		s.left = s.hard.DeepCopy()
		s.left.Sub(q.Status.Used[name])
		if s.missing.Sub(s.left); s.missing.Sign() > 0 {
			out = append(out, s)
		}
	}
	return out
}
