package simulation

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// check requires the invariants that hold at every instant. It is called after every change of the world,
// whichever process made it.
func (w *world) check() {
	if !w.stringent {
		return
	}
	w.passes()
	w.arrives()
	w.tightens()
	w.oneIdentity()
	w.atomicSlices()
	w.budgetKept()
	w.dataKept()
	w.rightVolumes()
	w.theirsAlone()
	w.heeded()
	w.nothingDropped()
}

func (w *world) namespace(side plans.Side) string { return w.plan.On(side).Namespace }

// slice returns the range of a side. A set that does not exist or is not prepared yet has an empty range, at
// the end from which it grows.
func (w *world) slice(side plans.Side) plans.Slice {
	set, ok := get[*appsv1.StatefulSet](w.on[side], w.namespace(side), setName)
	if ok && *set.Spec.Replicas > 0 {
		return plans.SliceOf(set)
	}
	if side == plans.Source {
		return plans.Slice{Start: w.plan.Start}
	}
	return plans.Slice{Start: w.plan.End()}
}

func (w *world) pod(side plans.Side, ordinal int32) *corev1.Pod {
	pod, _ := get[*corev1.Pod](w.on[side], w.namespace(side), w.plan.Pod(side, ordinal))
	return pod
}

// oneIdentity is S1: no ordinal runs, or has its disk attached, in two places.
func (w *world) oneIdentity() {
	for o := w.plan.Start; o < w.plan.End(); o++ {
		if w.pod(plans.Source, o) != nil && w.pod(plans.Destination, o) != nil {
			w.fail("S1", "ordinal %d has a pod on both sides", o)
		}
		if w.slice(plans.Source).Has(o) && w.slice(plans.Destination).Has(o) {
			w.fail("S1", "ordinal %d is in both ranges", o)
		}
		for _, side := range plans.Sides() {
			if pod := w.pod(side.Other(), o); pod != nil && w.slice(side).Has(o) && !w.foreign {
				w.fail("S1", "the %s has ordinal %d in its range while its pod is on the other side", side, o)
			}
		}
	}
	attached := map[string]string{}
	for _, s := range w.stores {
		for _, va := range all[*storagev1.VolumeAttachment](s) {
			if _, there := get[*corev1.Node](s, "", va.Spec.NodeName); !there && slices.Contains(w.vouched, va.Spec.NodeName) {
				continue // of a machine that is gone, as the user has said: its control plane is slow to notice
			}
			if where, ok := attached[va.Annotations["disk"]]; ok {
				w.fail("S1", "%s is attached to %s and to %s", va.Annotations["disk"], where, va.Spec.NodeName)
			}
			attached[va.Annotations["disk"]] = va.Spec.NodeName
		}
	}
}

// atomicSlices is S7: both ranges lie end to end, with a gap of at most one window of ordinals between them.
func (w *world) atomicSlices() {
	a, b := w.slice(plans.Source), w.slice(plans.Destination)
	gap := b.Start - (a.Start + a.Replicas)
	if !w.foreign && (a.Start != w.plan.Start || b.Start+b.Replicas != w.plan.End() || gap < 0 || gap > w.plan.Window) {
		w.fail("S7", "the source has %s, the destination has %s (start %d)", a, b, b.Start)
	}
}

// budgetKept is S2 and S3: the unavailable ordinals and the evictions that are still allowed never add up to
// more than d.
func (w *world) budgetKept() {
	if w.foreign {
		return
	}
	var down int32
	for o := w.plan.Start; o < w.plan.End(); o++ {
		inFlight := !w.slice(plans.Source).Has(o) && !w.slice(plans.Destination).Has(o)
		if inFlight || !ready(w.pod(plans.Source, o)) && !ready(w.pod(plans.Destination, o)) {
			down++
		}
	}
	if down > w.plan.MaxUnavailable {
		w.fail("S2", "%d ordinals are unavailable, at most %d may be", down, w.plan.MaxUnavailable)
	}
	if w.rolls { // what rolls obeys no budget
		return
	}
	a, b := w.allowed(plans.Source), w.allowed(plans.Destination)
	if a+b+down > w.plan.MaxUnavailable {
		w.fail("S3", "the budgets allow %d and %d while %d ordinals are unavailable, together at most %d", a, b, down, w.plan.MaxUnavailable)
	}
}

// disrupts is S2 at the only moment at which an engine can break it. The engine may take serving ordinals out
// of a range only if these and the ordinals that are already unavailable add up to no more than the limit. To
// remove an ordinal that is down costs nothing. What other writers take down without a budget is known to a process when its
// watches tell it.
func (w *world) disrupts(r *process, before, after plans.Slice, side plans.Side) {
	var cost, down int32
	for o := range w.plan.Ordinals().All() {
		serves := w.available(plans.Source, o) || w.available(plans.Destination, o)
		leaves := before.Has(o) && !after.Has(o)
		switch {
		case leaves && w.available(side, o):
			cost++
		case leaves, !serves && r.knows(o):
			down++
		}
	}
	w.leavesForItsPlace(r, before, after, side)
	limit := w.limit()
	if cost > 0 && cost+down > limit {
		w.fail("S2", "%d ordinals are taken down while %d others are unavailable, together at most %d", cost, down, limit)
	}
}

// limit is how many ordinals may be unavailable.
func (w *world) limit() int32 {
	if w.journal.Leg.Direction == plans.Abort {
		return max(w.plan.MaxUnavailable, w.journal.Assurances.MaxUnavailable)
	}
	return w.plan.MaxUnavailable
}

// endsOneTooMany is S2 where an engine deletes a pod that its set's controller does not come to: a pod that serves goes
// only if its ordinal and those that are down are no more than the limit.
func (w *world) endsOneTooMany(s *store, k key) {
	pod, there := get[*corev1.Pod](s, k.namespace, k.name)
	if !there || !ready(pod) || pod.Labels[plans.PlaceholderLabel] != "" {
		return
	}
	var down int32
	for o := range w.plan.Ordinals().All() {
		if !w.available(plans.Source, o) && !w.available(plans.Destination, o) {
			down++
		}
	}
	if down+1 > w.limit() {
		w.fail("S2", "%s is deleted while %d ordinals are unavailable, together at most %d", k, down, w.limit())
	}
}

// available reports whether an ordinal serves on a side, and has done so for minReadySeconds.
func (w *world) available(side plans.Side, ordinal int32) bool {
	pod := w.pod(side, ordinal)
	return ready(pod) && (w.options.MinReady == 0 || w.aged[pod.UID])
}

// allowed returns how many pods of a side may be evicted at the moment. It is the higher of two numbers: the
// status, which the eviction API believes, and the count from the spec and the healthy pods. Granted
// evictions whose deletion is still to come count too.
func (w *world) allowed(side plans.Side) int32 {
	s := w.on[side]
	name, _ := w.plan.BudgetOn(side)
	b, ok := get[*policyv1.PodDisruptionBudget](s, w.namespace(side), name)
	if !ok {
		return 0
	}
	now := w.countBudget(s, b)
	n := now.DisruptionsAllowed
	if b.Status.ObservedGeneration == b.Generation {
		n = max(n, b.Status.DisruptionsAllowed)
	}
	// An old status may allow evictions of pods that are no longer healthy.
	return min(n, now.CurrentHealthy) + int32(len(now.DisruptedPods))
}

// dataKept is S4: no disk with the user's data is destroyed, and a volume that carries our hold mark is
// Retain for as long as it carries it.
func (w *world) dataKept() {
	for handle, d := range w.disks {
		if d.destroyed && d.claim != "" {
			w.fail("S4", "%s, which held the data of %s, is destroyed", handle, d.claim)
		}
	}
	if w.foreign {
		return
	}
	for _, s := range w.stores {
		seen := map[string]bool{}
		for _, pv := range all[*corev1.PersistentVolume](s) {
			d := w.disks[diskOf(pv)]
			if w.left(d.claim) || d.claim == media {
				w.mediaHeld(pv)
				continue
			}
			w.held(pv, d)
			if seen[diskOf(pv)] {
				w.fail("S5", "cluster %s has two volumes for %s", s.name, diskOf(pv))
			}
			seen[diskOf(pv)] = true
		}
	}
}

// excused reports whether a claim may have another disk than its own. There are three cases: a claim that is
// bound on both sides, for a time or for good; a claim for an ordinal that another writer has scaled up; a
// claim that was created late, for no pod.
func (w *world) excused(s *store, claim *corev1.PersistentVolumeClaim, d disk) bool {
	both := w.left(claim.Name) || claim.Name == media && d.claim == media
	return both || d.claim == "" && w.foreign || slices.Contains(w.late, place{s.name, keyOf(claim)})
}

// held is S4 for the volume of an ordinal.
func (w *world) held(pv *corev1.PersistentVolume, d disk) {
	_, held := pv.Annotations[plans.PolicyAnnotation]
	retained := pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	o := ordinalOf(d.claim)
	inFlight := d.claim != "" && !w.slice(plans.Source).Has(o) && !w.slice(plans.Destination).Has(o)
	if (held || inFlight) && !retained || inFlight && !held {
		w.fail("S4", "volume %s (policy %s, marked %t) is not protected", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy, held)
	}
}

// mediaHeld is S4 for a disk that two volume objects name: both are Retain for that time.
func (w *world) mediaHeld(pv *corev1.PersistentVolume) {
	twins := 0
	for _, side := range plans.Sides() {
		if _, ok := get[*corev1.PersistentVolume](w.on[side], "", map[plans.Side]string{plans.Source: media, plans.Destination: w.second()}[side]); ok {
			twins++
		}
	}
	if pv.Spec.NFS != nil && twins == 2 && pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		w.fail("S4", "volume %s shares its disk with another object and has policy %s", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy)
	}
}

func (w *world) second() string { return w.plan.SecondVolume(plans.SharedVolume{Volume: media}) }

// idle reports whether, between two clusters, a claim is one that no pod mounts: it was prepared for an ordinal that is
// still on the other side, or is being deleted.
func (w *world) idle(s *store, claim *corev1.PersistentVolumeClaim) bool {
	if len(w.stores) == 1 {
		return false
	}
	for _, pod := range all[*corev1.Pod](s) {
		if pod.Namespace == claim.Namespace && storage.Mounts(pod, claim.Name) {
			return false
		}
	}
	return claim.DeletionTimestamp != nil || !w.slice(w.sideOf(s)).Has(ordinalOf(claim.Name))
}

// sideOf returns the side that a cluster is, of two clusters.
func (w *world) sideOf(s *store) plans.Side {
	if s == w.on[plans.Source] {
		return plans.Source
	}
	return plans.Destination
}

// rightVolumes is S5: a claim is bound to the disk with the data of its own ordinal and template, in one
// place. No such disk is available to another claim.
func (w *world) rightVolumes() {
	bound := map[string]string{}
	for _, s := range w.stores {
		for _, claim := range all[*corev1.PersistentVolumeClaim](s) {
			pv, ok := get[*corev1.PersistentVolume](s, "", claim.Spec.VolumeName)
			if !ok {
				continue
			}
			d := w.disks[diskOf(pv)]
			if w.excused(s, claim, d) {
				continue
			}
			if d.claim != claim.Name {
				w.fail("S5", "claim %s of %s got the disk of %q", claim.Name, claim.Namespace, d.claim)
			}
			where := fmt.Sprintf("%s/%s", s.name, claim.Namespace)
			if w.idle(s, claim) {
				continue
			}
			if other, ok := bound[claim.Name]; ok && claim.Status.Phase == corev1.ClaimBound {
				w.fail("S5", "claim %s is bound in %s and in %s", claim.Name, other, where)
			}
			if claim.Status.Phase == corev1.ClaimBound {
				bound[claim.Name] = where
			}
		}
		for _, pv := range all[*corev1.PersistentVolume](s) {
			if w.disks[diskOf(pv)].claim != "" && pv.Spec.ClaimRef == nil && !w.foreign {
				w.fail("S5", "volume %s has an empty claimRef", pv.Name)
			}
		}
	}
}
