package slicecontroller

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// The indexes of the cache.
const (
	// byController finds pods and revisions by the UID of their controller. Objects without a
	// controller are found by orphans.
	byController = "controller"
	orphans      = "none"
	// byOwner finds claims by the UIDs of all their owners.
	byOwner = "owner"
)

// index finds objects by some of their values.
type index struct {
	of     client.Object
	name   string
	values client.IndexerFunc
}

func indexes() []index {
	controller := func(o client.Object) []string {
		if c := metav1.GetControllerOfNoCopy(o); c != nil {
			return []string{string(c.UID)}
		}
		return []string{orphans}
	}
	owner := func(o client.Object) []string {
		var out []string
		for _, r := range o.GetOwnerReferences() {
			out = append(out, string(r.UID))
		}
		return out
	}
	return []index{
		{&corev1.Pod{}, byController, controller},
		{&appsv1.ControllerRevision{}, byController, controller},
		{&corev1.PersistentVolumeClaim{}, byOwner, owner},
	}
}

// see reads the objects of a set from the cache. Nothing is copied, and the
// caller must not modify the result.
func (r *Reconciler) see(ctx context.Context, set *core.Set, now time.Time) (core.World, error) {
	w := core.World{Set: set, Now: now}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		selector = labels.Nothing() // core reports the error
	}
	var pods, strays corev1.PodList
	var revisions, lone appsv1.ControllerRevisionList
	var owned corev1.PersistentVolumeClaimList
	in := client.InNamespace(set.Namespace)
	for _, l := range []struct {
		list  client.ObjectList
		which []client.ListOption
	}{
		{&pods, []client.ListOption{client.MatchingFields{byController: string(set.UID)}}},
		{&strays, []client.ListOption{client.MatchingFields{byController: orphans}, client.MatchingLabelsSelector{Selector: selector}}},
		{&revisions, []client.ListOption{client.MatchingFields{byController: string(set.UID)}}},
		{&lone, []client.ListOption{client.MatchingFields{byController: orphans}, client.MatchingLabelsSelector{Selector: selector}}},
		{&owned, []client.ListOption{client.MatchingFields{byOwner: string(set.UID)}}},
	} {
		if err := r.client.List(ctx, l.list, append(l.which, in, client.UnsafeDisableDeepCopy)...); err != nil {
			return w, err
		}
	}
	for _, list := range [][]corev1.Pod{pods.Items, strays.Items} {
		for k := range list {
			w.Pods = append(w.Pods, &list[k])
		}
	}
	for _, list := range [][]appsv1.ControllerRevision{revisions.Items, lone.Items} {
		for k := range list {
			w.Revisions = append(w.Revisions, &list[k])
		}
	}
	for k := range owned.Items {
		w.Owned = append(w.Owned, &owned.Items[k])
	}
	w.Claim = func(name string) *corev1.PersistentVolumeClaim {
		var c corev1.PersistentVolumeClaim
		if r.client.Get(ctx, types.NamespacedName{Namespace: set.Namespace, Name: name}, &c, client.UnsafeDisableDeepCopy) != nil {
			return nil // NotFound is the only error of the cache
		}
		return &c
	}
	return w, nil
}
