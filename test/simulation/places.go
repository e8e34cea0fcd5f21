package simulation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// placeholders lists those of the plan that there are on a side.
func (w *world) placeholders(side plans.Side) (out []*corev1.Pod) {
	for _, p := range all[*corev1.Pod](w.on[side]) {
		if p.Namespace == w.namespace(side) && p.Labels[plans.PlaceholderLabel] != "" {
			out = append(out, p)
		}
	}
	return out
}

// place returns the placeholder of an ordinal on a side, or nil.
func (w *world) place(side plans.Side, ordinal int32) *corev1.Pod {
	pod, _ := get[*corev1.Pod](w.on[side], w.namespace(side), w.plan.Place(side, ordinal))
	return pod
}

// anchor reports whether a pod is the anchor of a place.
func anchor(p *corev1.Pod) bool { return p.Labels["stsmigrate.dev/anchor-for"] != "" }

// removable reports whether this program may delete a placeholder: nobody else has taken it for theirs.
func removable(pod *corev1.Pod) bool {
	claims := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
	return pod.DeletionTimestamp == nil && pod.Labels[plans.PlaceholderLabel] != "" && !claims && metav1.GetControllerOfNoCopy(pod) == nil
}

// leavesForItsPlace is S17 and S18 where places are taken: an ordinal that serves leaves only for a place that is proven, and
// that is there.
func (w *world) leavesForItsPlace(r *process, before, after plans.Slice, side plans.Side) {
	if !w.plan.Placeholder.Used() || w.journal.Assurances.SkipPlaces > 0 || len(r.untold) > 0 {
		return
	}
	to := side.Other()
	for o := range w.plan.Ordinals().All() {
		if !before.Has(o) || after.Has(o) || !w.available(side, o) {
			continue
		}
		pod := w.place(to, o)
		if !w.proven(pod) {
			w.fail("S17", "ordinal %d leaves the %s, and its place is not proven", o, side)
			continue
		}
		if node, there := get[*corev1.Node](w.on[to], "", pod.Spec.NodeName); !there || !up(node) || drained(node) {
			w.fail("S18", "ordinal %d leaves the %s for %s, which takes no pods", o, side, pod.Spec.NodeName)
		}
	}
}

// proven reports whether a placeholder proves what the plan wants proven. One that runs has reached what it must.
func (w *world) proven(pod *corev1.Pod) bool {
	runs := w.plan.Placeholder.Proof == plans.Warm || len(w.plan.Placeholder.Reach) > 0
	return pod != nil && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && (!runs || pod.Status.Phase == corev1.PodRunning)
}

// givesWay is S28 at the moments at which an engine can break it. No place of a wave to come is taken while an ordinal that is
// due has no node yet, and the place of an ordinal is free when a range takes that ordinal.
func (r *process) givesWay(s *store, verb string, o client.Object, before plans.Slice) {
	w := r.w
	if !w.plan.Placeholder.Used() || r.pause != nil || len(r.untold) > 0 || r.besides {
		return
	}
	for _, side := range plans.Sides() {
		if w.on[side] != s || w.namespace(side) != o.GetNamespace() {
			continue
		}
		if pod, is := o.(*corev1.Pod); is && verb == "create" && pod.Labels[plans.PlaceholderLabel] != "" && !w.away(side) {
			if due := w.homeless(s, side); due != "" {
				w.fail("S28", "%s is made while %s has no node", pod.Name, due)
			}
		}
		if kindOf(o) == "StatefulSet" {
			w.frees(side, before)
		}
	}
}

// frees is S28 when a set is written: the places of the ordinals that it takes are free.
func (w *world) frees(side plans.Side, before plans.Slice) {
	for ordinal := range w.plan.Ordinals().All() {
		if place := w.place(side, ordinal); w.gains(side, before, ordinal) && place != nil && removable(place) {
			w.fail("S28", "the %s takes ordinal %d, whose place is still taken by its placeholder", side, ordinal)
		}
	}
}

// away reports whether the plan returns ordinals to a side: an ordinal that is down there then keeps no other from it.
func (w *world) away(to plans.Side) bool { return to == plans.Source && !w.entering(to) }

// entering reports whether the plan waits for a wave that a side has taken.
func (w *world) entering(plans.Side) bool {
	step, _, more := w.journal.Next(w.plan)
	return more && step.Op == plans.Grow
}

// homeless returns a pod of an ordinal that a range in a cluster has, and that has no node, or "". The wave that is about to
// leave is not meant.
func (w *world) homeless(s *store, to plans.Side) string {
	for _, side := range plans.Sides() {
		if w.on[side] != s {
			continue
		}
		for o := range w.plan.Ordinals().All() {
			wave := side != to && w.journal.Prepared != nil && w.journal.Prepared.Has(o)
			if pod := w.pod(side, o); w.slice(side).Has(o) && !wave && (pod == nil || pod.Spec.NodeName == "") {
				return w.plan.Pod(side, o)
			}
		}
	}
	return ""
}

// placesAndWaits returns the placeholders of a cluster that have a node and may be deleted, and the pods that have none.
func placesAndWaits(s *store) (places, waits []*corev1.Pod) {
	for _, p := range all[*corev1.Pod](s) {
		switch {
		case p.Labels[plans.PlaceholderLabel] != "":
			if p.Spec.NodeName != "" && removable(p) && !hasEnded(p) {
				places = append(places, p)
			}
		case p.Spec.NodeName == "" && p.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(p) != nil:
			waits = append(waits, p)
		}
	}
	return places, waits
}

// heldUp is S28 while a plan waits, and nothing in the world changes any more: no ordinal waits for a node that a placeholder
// has.
func (w *world) heldUp() {
	for _, s := range w.stores {
		places, waits := placesAndWaits(s)
		for _, place := range places {
			node, there := get[*corev1.Node](s, "", place.Spec.NodeName)
			for _, p := range waits {
				if _, bound := volumesOf(s, p); there && bound && up(node) && !drained(node) {
					w.fail("S28", "%s waits for a node, and %s has %s", keyOf(p), place.Name, node.Name)
				}
			}
		}
	}
}
