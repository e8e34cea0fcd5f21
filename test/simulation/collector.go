package simulation

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owned lists the objects that may have owners.
func owned(s *store) (out []client.Object) {
	for _, p := range all[*corev1.Pod](s) {
		out = append(out, p)
	}
	for _, c := range all[*corev1.PersistentVolumeClaim](s) {
		out = append(out, c)
	}
	for _, r := range all[*appsv1.ControllerRevision](s) {
		out = append(out, r)
	}
	return out
}

// collector deletes objects whose owners are all gone, and takes owners that are gone off the others.
func (w *world) collector(s *store) bool {
	for o := range shuffle(w, owned(s)) {
		owners := o.GetOwnerReferences()
		alive := slices.DeleteFunc(slices.Clone(owners), func(r metav1.OwnerReference) bool { return !exists(s, r.UID) })
		switch {
		case len(alive) == len(owners) || o.GetDeletionTimestamp() != nil:
		case len(alive) > 0:
			next := clone(o)
			next.SetOwnerReferences(alive)
			s.put(next)
			return true
		default:
			must(s.Delete(context.TODO(), clone(o)))
			return true
		}
	}
	return slices.ContainsFunc(all[*appsv1.StatefulSet](s), func(set *appsv1.StatefulSet) bool { return w.lets(s, set) })
}

// lets deals with what a set owns that is being deleted in the foreground, which waits for it, or that leaves it behind.
func (w *world) lets(s *store, set *appsv1.StatefulSet) bool {
	orphans := slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents)
	if set.DeletionTimestamp == nil || !orphans && !slices.Contains(set.Finalizers, metav1.FinalizerDeleteDependents) {
		return false
	}
	waits := false
	for o := range shuffle(w, owned(s)) {
		owners := o.GetOwnerReferences()
		left := slices.DeleteFunc(slices.Clone(owners), func(r metav1.OwnerReference) bool { return r.UID == set.UID })
		switch {
		case len(left) == len(owners):
		case orphans || len(left) > 0:
			next := clone(o)
			next.SetOwnerReferences(left)
			s.put(next)
			return true
		case o.GetDeletionTimestamp() == nil:
			must(s.Delete(context.TODO(), clone(o)))
			return true
		default:
			waits = true
		}
	}
	if waits {
		return false
	}
	next := clone(set)
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	s.put(next)
	return true
}

func exists(s *store, uid types.UID) bool {
	if uid == nightly {
		return true // no Job is modelled for it
	}
	for _, p := range all[*corev1.Pod](s) {
		if p.UID == uid {
			return true
		}
	}
	for _, set := range all[*appsv1.StatefulSet](s) {
		if set.UID == uid {
			return true
		}
	}
	return false
}
