package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

const deletes = appsv1.DeletePersistentVolumeClaimRetentionPolicyType

// setController acts, like the real one, on the spec in its cache, which may be an old one.
func (w *world) setController(s *store) bool {
	for live := range shuffle(w, all[*appsv1.StatefulSet](s)) {
		seen := w.seen[live.UID]
		stale := seen == nil || seen.Generation != live.Generation
		if stale && (seen == nil || w.chance(2)) {
			w.seen[live.UID] = cached(live)
			return true
		}
		if w.syncSet(s, seen, live) {
			return true
		}
		if stale {
			w.seen[live.UID] = cached(live)
			return true
		}
	}
	return false
}

// cached returns what the controller keeps of a set. It compares a new status with the live one.
func cached(live *appsv1.StatefulSet) *appsv1.StatefulSet {
	seen := clone(live)
	seen.Status = appsv1.StatefulSetStatus{}
	return seen
}

func (w *world) syncSet(s *store, seen, live *appsv1.StatefulSet) bool {
	if w.revise(s, seen) {
		return true // the real one keeps the revision first
	}
	pods := podsOf(s, live)
	parts := []func() bool{
		func() bool { return w.ownClaims(s, seen, pods) },
		func() bool { return w.scaleUp(s, seen, pods) },
		func() bool { return w.scaleDown(s, seen, pods) },
		func() bool { return w.setStatus(s, seen, live, pods) },
	}
	for part := range shuffle(w, parts) {
		if part() {
			return true
		}
	}
	return false
}

// revise keeps the pod template as a revision, with the annotations of the set at that moment.
func (w *world) revise(s *store, set *appsv1.StatefulSet) bool {
	name := set.Name + "-" + revisionOf(set)
	if _, there := get[*appsv1.ControllerRevision](s, set.Namespace, name); there {
		return false
	}
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: set.Spec.Template.Labels, Annotations: maps.Clone(set.Annotations)}}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	must(s.Create(context.TODO(), r))
	return true
}

func revisionOf(set *appsv1.StatefulSet) string {
	return "rev" + set.Spec.Template.Spec.Containers[0].Image
}

func podsOf(s *store, set *appsv1.StatefulSet) map[int32]*corev1.Pod {
	out := map[int32]*corev1.Pod{}
	for _, pod := range all[*corev1.Pod](s) {
		if metav1.IsControlledBy(pod, set) {
			out[ordinalOf(pod.Name)] = pod
		}
	}
	return out
}

// ordinalOf returns the number after the last dash of a pod's or a claim's name, or -1 if there is none.
func ordinalOf(name string) int32 {
	n, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

func ready(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func (w *world) scaleUp(s *store, set *appsv1.StatefulSet, pods map[int32]*corev1.Pod) bool {
	slice := plans.SliceOf(set)
	for o := slice.Start; o < slice.Start+slice.Replicas; o++ {
		switch pod := pods[o]; {
		case pod == nil:
			return w.makePod(s, set, o)
		case set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement && !ready(pod):
			return false
		}
	}
	return false
}

// makePod creates the missing claims, one per call, and then the pod. A claim that is being deleted must be
// gone first.
func (w *world) makePod(s *store, set *appsv1.StatefulSet, o int32) bool {
	app := set.Spec.Template.Labels
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, o), Labels: app}, Spec: *set.Spec.Template.Spec.DeepCopy()}
	if _, taken := get[*corev1.Pod](s, pod.Namespace, pod.Name); taken {
		return false
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	for _, t := range set.Spec.VolumeClaimTemplates {
		name := t.Name + "-" + pod.Name
		claim, ok := get[*corev1.PersistentVolumeClaim](s, set.Namespace, name)
		if !ok {
			missing := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: app}, Spec: t.Spec}
			if s.refused(missing, nil) != nil {
				return false
			}
			must(s.Create(context.TODO(), missing))
			return true
		}
		if claim.DeletionTimestamp != nil {
			return false
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	if s.refused(pod, nil) != nil {
		return false
	}
	must(s.Create(context.TODO(), pod))
	return true
}

func (w *world) scaleDown(s *store, set *appsv1.StatefulSet, pods map[int32]*corev1.Pod) bool {
	for _, o := range slices.Backward(slices.Sorted(maps.Keys(pods))) {
		if plans.SliceOf(set).Has(o) {
			continue
		}
		if pods[o].DeletionTimestamp == nil && !w.condemnClaims(s, set, pods[o]) {
			must(s.Delete(context.TODO(), clone(pods[o])))
			return true
		}
		if set.Spec.PodManagementPolicy == appsv1.OrderedReadyPodManagement {
			return false
		}
	}
	return false
}

// condemnClaims makes a condemned pod the owner of its claims, BEFORE the pod is deleted, if the retention
// policy requires that.
func (w *world) condemnClaims(s *store, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled != deletes {
		return false
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	return w.setOwner(s, set, ordinalOf(pod.Name), []metav1.OwnerReference{owner})
}

// ownClaims keeps the owner references of the claims in range as the retention policy requires.
func (w *world) ownClaims(s *store, set *appsv1.StatefulSet, pods map[int32]*corev1.Pod) bool {
	var owners []metav1.OwnerReference
	if set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted == deletes {
		owners = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID}}
	}
	for _, o := range slices.Sorted(maps.Keys(pods)) {
		if plans.SliceOf(set).Has(o) && w.setOwner(s, set, o, owners) {
			return true
		}
	}
	return false
}

func (w *world) setOwner(s *store, set *appsv1.StatefulSet, o int32, owners []metav1.OwnerReference) bool {
	for _, t := range set.Spec.VolumeClaimTemplates {
		claim, ok := get[*corev1.PersistentVolumeClaim](s, set.Namespace, fmt.Sprintf("%s-%s-%d", t.Name, set.Name, o))
		if !ok || equality.Semantic.DeepEqual(claim.OwnerReferences, owners) {
			continue
		}
		next := clone(claim)
		next.OwnerReferences = owners
		s.put(next)
		return true
	}
	return false
}

func (w *world) setStatus(s *store, seen, live *appsv1.StatefulSet, pods map[int32]*corev1.Pod) bool {
	revision := revisionOf(seen)
	status := appsv1.StatefulSetStatus{ObservedGeneration: seen.Generation, Replicas: int32(len(pods)), CurrentRevision: revision, UpdateRevision: revision}
	for _, pod := range pods {
		if !ready(pod) {
			continue
		}
		status.ReadyReplicas++
		if seen.Spec.MinReadySeconds == 0 || w.aged[pod.UID] {
			status.AvailableReplicas++
		}
	}
	if equality.Semantic.DeepEqual(status, live.Status) {
		return false
	}
	next := clone(live)
	next.Status = status
	s.put(next)
	return true
}
