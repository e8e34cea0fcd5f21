package simulation

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
)

// budgetController is the disruption controller.
func (w *world) budgetController(s *store) bool {
	for b := range shuffle(w, all[*policyv1.PodDisruptionBudget](s)) {
		status := w.countBudget(s, b)
		if equality.Semantic.DeepEqual(status, b.Status) {
			continue
		}
		next := clone(b)
		next.Status = status
		s.put(next)
		return true
	}
	return false
}

// isOver reports whether a budget is over a pod.
func isOver(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	must(err)
	return pod.Namespace == b.Namespace && selector.Matches(labels.Set(pod.Labels))
}

// countBudget returns the correct status of a budget. maxUnavailable and percentages are counted from the
// replicas of the set, a plain minAvailable from the pods alone.
func (w *world) countBudget(s *store, b *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudgetStatus {
	status := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
	for _, pod := range all[*corev1.Pod](s) {
		if !isOver(b, pod) {
			continue
		}
		status.ExpectedPods++
		granted, waits := b.Status.DisruptedPods[pod.Name]
		if waits && pod.DeletionTimestamp == nil && w.granted[pod.UID] {
			if status.DisruptedPods == nil {
				status.DisruptedPods = map[string]metav1.Time{}
			}
			status.DisruptedPods[pod.Name] = granted
			continue
		}
		if ready(pod) {
			status.CurrentHealthy++
		}
	}
	if b.Spec.MaxUnavailable != nil || b.Spec.MinAvailable != nil && b.Spec.MinAvailable.Type == intstr.String {
		status.ExpectedPods = 0
		if set, ok := get[*appsv1.StatefulSet](s, b.Namespace, setName); ok {
			status.ExpectedPods = plans.SliceOf(set).Replicas
		}
	}
	n := int(status.ExpectedPods)
	switch {
	case b.Spec.MaxUnavailable != nil:
		v, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MaxUnavailable, n, true)
		must(err)
		status.DesiredHealthy = int32(max(n-v, 0))
	case b.Spec.MinAvailable != nil:
		v, err := intstr.GetScaledValueFromIntOrPercent(b.Spec.MinAvailable, n, true)
		must(err)
		status.DesiredHealthy = int32(v)
	default: // with neither, the controller expects no pods, and allows nothing
		status.ExpectedPods = 0
	}
	if status.ExpectedPods > 0 {
		status.DisruptionsAllowed = max(status.CurrentHealthy-status.DesiredHealthy, 0)
	}
	return status
}

// chosen reports whether a pod will be evicted: a random one, or, if w.drains is set, one on a node that is
// being drained.
func (w *world) chosen(s *store, pod *corev1.Pod) bool {
	if !w.drains {
		return w.chance(4)
	}
	node, ok := get[*corev1.Node](s, "", pod.Spec.NodeName)
	return ok && drained(node)
}

// evictor drains nodes, by evictions of pods that serve. The deletion of one that is granted follows later.
func (w *world) evictor(s *store) bool {
	for b := range shuffle(w, all[*policyv1.PodDisruptionBudget](s)) {
		for _, pod := range all[*corev1.Pod](s) {
			if w.granted[pod.UID] && isOver(b, pod) && pod.DeletionTimestamp == nil {
				must(s.Delete(context.TODO(), clone(pod)))
				return true
			}
		}
		if w.evictions == 0 || b.Status.ObservedGeneration < b.Generation || b.Status.DisruptionsAllowed == 0 {
			continue
		}
		for pod := range shuffle(w, all[*corev1.Pod](s)) {
			if !isOver(b, pod) || !ready(pod) || w.granted[pod.UID] || !w.chosen(s, pod) {
				continue
			}
			w.evictions--
			must(w.evicts(s, pod))
			return true
		}
	}
	return false
}

// evicts is the answer of the eviction API. It grants by the status of the budget, which may be old but never older than
// the spec. A pod that does not serve costs nothing, if enough others do.
func (w *world) evicts(s *store, pod *corev1.Pod) error {
	k := slices.IndexFunc(all[*policyv1.PodDisruptionBudget](s), func(b *policyv1.PodDisruptionBudget) bool { return b.Namespace == pod.Namespace })
	if k < 0 || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return s.Delete(context.TODO(), clone(pod))
	}
	b := all[*policyv1.PodDisruptionBudget](s)[k]
	always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	if !ready(pod) && (always || b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0) {
		return s.Delete(context.TODO(), clone(pod))
	}
	if b.Status.ObservedGeneration < b.Generation || b.Status.DisruptionsAllowed == 0 {
		return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	}
	next := clone(b)
	next.Status.DisruptionsAllowed--
	if next.Status.DisruptedPods == nil {
		next.Status.DisruptedPods = map[string]metav1.Time{}
	}
	next.Status.DisruptedPods[pod.Name] = metav1.Unix(s.version, 0)
	w.granted[pod.UID] = true
	s.put(next)
	return nil
}

// room returns how many pods the budgets let be down, whatever is down at the moment.
func (w *world) room() (n int32) {
	for _, side := range plans.Sides() {
		name, _ := w.plan.BudgetOn(side)
		if b, ok := get[*policyv1.PodDisruptionBudget](w.on[side], w.namespace(side), name); ok {
			status := w.countBudget(w.on[side], b)
			n += max(min(status.ExpectedPods, w.slice(side).Replicas)-status.DesiredHealthy, 0)
		}
	}
	return n
}
