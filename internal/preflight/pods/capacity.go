package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	podresource "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// NodesFit requires a node for each pod, of the side that it comes to: a node that takes the pod (cordons, taints,
// nodeSelector and required node affinity), that reaches its volumes, and that has room for its requests
// beside the pods that run there and the ordinals above. It is not the scheduler: it ignores pod affinity,
// topology spread and attach limits.
func NodesFit(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	nodes, err := nodes(ctx, i)
	if apierrors.IsForbidden(err) {
		return []check.Finding{unseenNodes(i, i.To())}, nil
	}
	if err != nil {
		return nil, err
	}
	template, err := i.Arriving()
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	r := freeCapacity{pod: pod, nodes: nodes, used: map[string]corev1.ResourceList{}, running: func(node string) (corev1.ResourceList, error) { return running(ctx, i, node) }}
	var out []check.Finding
	for _, o := range slices.Backward(slices.Collect(i.Ordinals.All())) {
		where, err := reach(ctx, i, o)
		if err != nil {
			return nil, err
		}
		why, err := r.take(where)
		if apierrors.IsForbidden(err) {
			return append(out, unseenPods(i)), nil
		}
		if err != nil {
			return nil, err
		}
		if why == "" {
			continue
		}
		out = append(out, check.Finding{
			Object: fmt.Sprintf("pod %s on the %s (%s)", i.Plan.Pod(i.To(), o), i.To(), i.Plan.On(i.To()).Context), Saw: why, Want: "a node that can take it",
			Remedy: "add nodes or free some, or --ignore nodes-fit where nodes come on demand",
		})
	}
	return out, nil
}

// nodes lists the nodes of the side that the pods come to.
func nodes(ctx context.Context, i check.Inspection) ([]corev1.Node, error) {
	return check.Once(i, nodesKey{}, func() ([]corev1.Node, error) {
		var list corev1.NodeList
		if err := i.On[i.To()].List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing the nodes of the %s: %w", i.To(), err)
		}
		return list.Items, nil
	})
}

func unseenPods(i check.Inspection) check.Finding {
	return check.Finding{
		Level: check.Warn, Object: fmt.Sprintf("nodes of the %s (%s)", i.To(), i.Plan.On(i.To()).Context), Saw: "you may not list the pods that run there", Want: "to be able to see how full they are",
		Remedy: "let a user who may list them check, or ask for `list` on pods in all namespaces",
	}
}

// running sums up the requests of the pods that run on a node of that side. The pods of the set that
// will leave that very cluster do not count.
func running(ctx context.Context, i check.Inspection, node string) (corev1.ResourceList, error) {
	leaving := map[string]bool{}
	for o := range i.Ordinals.All() {
		leaving[i.Plan.Pod(i.From, o)] = i.Plan.OneCluster()
	}
	used := corev1.ResourceList{}
	err := clusters.Each(ctx, i.On[i.To()], func() client.ObjectList { return &corev1.PodList{} }, func(p *corev1.Pod) {
		if !leaving[p.Name] || !metav1.IsControlledBy(p, i.Leaves()) {
			occupy(used, p)
		}
	}, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", node)})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of node %s on the %s: %w", node, i.To(), err)
	}
	return used, nil
}

// reach returns the node affinities that the volumes of an ordinal will have.
func reach(ctx context.Context, i check.Inspection, ordinal int32) ([]*corev1.NodeSelector, error) {
	if len(i.Plan.Claims) == 0 {
		return nil, nil
	}
	s, err := volumes.On(ctx, i, plans.Source)
	if err != nil {
		return nil, err
	}
	b, err := i.Volumes(ctx, ordinal)
	var out []*corev1.NodeSelector
	for _, v := range b.Volumes {
		pv := s.ByName[v.Name]
		if pv == nil {
			continue
		}
		if !i.Plan.OneCluster() && i.From == plans.Source { // on the way back it is the source's own
			pv = storage.VolumeFrom(pv, corev1.ObjectReference{}, i.Plan.Storage)
		}
		if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
			out = append(out, a.Required)
		}
		out = append(out, zones(pv)...)
	}
	return out, err
}

// zones returns the zones of a volume's labels as node affinities. As in the scheduler, a node without any
// such label matches every zone, and the new form of a label also satisfies the old one.
func zones(pv *corev1.PersistentVolume) []*corev1.NodeSelector {
	is := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	var nowhere corev1.NodeSelectorTerm
	for _, key := range storage.ZoneLabels() {
		nowhere.MatchExpressions = append(nowhere.MatchExpressions, is(key, corev1.NodeSelectorOpDoesNotExist))
	}
	newer := map[string]string{corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion}
	var out []*corev1.NodeSelector
	for _, key := range storage.ZoneLabels() {
		value, ok := pv.Labels[key]
		if !ok {
			continue
		}
		in := storage.Zones(value)
		terms := []corev1.NodeSelectorTerm{nowhere, {MatchExpressions: []corev1.NodeSelectorRequirement{is(key, corev1.NodeSelectorOpIn, in...)}}}
		if to, old := newer[key]; old {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{is(key, corev1.NodeSelectorOpDoesNotExist), is(to, corev1.NodeSelectorOpIn, in...)}})
		}
		out = append(out, &corev1.NodeSelector{NodeSelectorTerms: terms})
	}
	return out
}

// freeCapacity is the free capacity of a cluster's nodes while pods of one template are placed on them. The
// pods of a node are listed only when the pod might fit there, so that a cluster with room costs few
// requests.
type freeCapacity struct {
	pod     *corev1.Pod
	nodes   []corev1.Node
	used    map[string]corev1.ResourceList // by node; absent: not listed yet
	running func(node string) (corev1.ResourceList, error)
}

// take places one more pod on the first node that can take it, or returns the reason why there is none, in
// the scheduler's style.
func (r *freeCapacity) take(volumes []*corev1.NodeSelector) (string, error) {
	whys := map[string]int{}
	for k := range r.nodes {
		node := &r.nodes[k]
		why := r.barred(node, volumes)
		if why == "" {
			var err error
			if why, err = r.full(node); err != nil {
				return "", err
			}
		}
		if why == "" {
			add(r.used[node.Name], requests(r.pod))
			return "", nil
		}
		whys[why]++
	}
	var out []string
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		out = append(out, fmt.Sprintf("%d %s", whys[why], why))
	}
	if len(out) == 0 {
		return "there are no nodes", nil
	}
	return fmt.Sprintf("none of %d nodes can take it: %s", len(r.nodes), strings.Join(out, ", ")), nil
}

// barred returns the reason why a node would not take the pod even if it were empty, or "".
func (r *freeCapacity) barred(node *corev1.Node, volumes []*corev1.NodeSelector) string {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable { // the taint of that name follows a moment later
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	binding := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	if t, found := scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, r.pod.Spec.Tolerations, binding, false); found {
		return "with taint " + t.Key
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(r.pod).Match(node); err != nil || !ok {
		return "not what nodeSelector or node affinity ask for"
	}
	for _, v := range volumes {
		if ok, err := nodeaffinity.NewLazyErrorNodeSelector(v).Match(node); err != nil || !ok {
			return "where its volume cannot be reached"
		}
	}
	return ""
}

// full returns the reason why there is no room for the pod on a node, or "".
func (r *freeCapacity) full(node *corev1.Node) (string, error) {
	used, asked := r.used[node.Name]
	if !asked {
		var err error
		if used, err = r.running(node.Name); err != nil {
			return "", err
		}
		r.used[node.Name] = used
	}
	for _, name := range slices.Sorted(maps.Keys(requests(r.pod))) {
		free, wanted := node.Status.Allocatable[name], requests(r.pod)[name]
		free.Sub(used[name])
		if wanted.Cmp(free) > 0 {
			return "with too little " + string(name), nil
		}
	}
	return "", nil
}

// requests returns what a pod takes of a node, itself included as one pod.
func requests(pod *corev1.Pod) corev1.ResourceList {
	out := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	out[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return out
}

// occupy adds what a pod takes, unless it has ended.
func occupy(used corev1.ResourceList, pod *corev1.Pod) {
	if p := pod.Status.Phase; p != corev1.PodSucceeded && p != corev1.PodFailed {
		add(used, requests(pod))
	}
}

func add(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// nodesKey is the key of check.Once for these nodes.
type nodesKey struct{}
