package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Clusters holds one live client per side. With both sides in one cluster they may be the same client.
type Clusters map[plans.Side]client.Client

// Pair is the two sides of a plan: the sets, and the clients of their clusters. Its reads are live.
type Pair struct {
	Plan *plans.Plan
	On   Clusters
}

// Set reads the StatefulSet of a side; nil means that there is none.
func (w Pair) Set(ctx context.Context, side plans.Side) (*appsv1.StatefulSet, error) {
	return ReadSet(ctx, w.On[side], w.Plan.On(side))
}

// EveryPod reads the pods in the namespace of a side that have the name of a pod of the set, or mount a claim of one or a
// shared claim, and the placeholders. Of their status it reads the phase and the conditions. It may return other pods too.
func (w Pair) EveryPod(ctx context.Context, side plans.Side) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := w.On[side].List(ctx, &list, client.InNamespace(w.Plan.On(side).Namespace), w.concerned(side)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", w.Plan.On(side), err)
	}
	return list.Items, nil
}

// concerned selects the pods of EveryPod. Neither the name nor the volumes of a pod ever change.
func (w Pair) concerned(side plans.Side) Only {
	return Only{Of: "the pods of the set", Fixed: true, Keep: func(o client.Object) client.Object {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return nil
		}
		var claims []corev1.Volume
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				claims = append(claims, *v.DeepCopy())
			}
		}
		mounts := slices.ContainsFunc(claims, func(v corev1.Volume) bool { return w.ofPlan(side, v.PersistentVolumeClaim.ClaimName) })
		place := w.Plan.Placeholder.Used() && pod.Labels[plans.PlaceholderLabel] != ""
		if !mounts && !w.Plan.HasPod(side, pod.Name) && !place {
			return nil
		}
		out := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
				DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
			},
			Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: claims, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds},
			Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions},
		}
		if place {
			out.Annotations = pod.Annotations
		}
		return out.DeepCopy()
	}}
}

// ofPlan reports whether a claim is one that the plan deletes on a side in the end: that of an ordinal, or a shared one.
func (w Pair) ofPlan(side plans.Side, claim string) bool {
	return w.Plan.HasClaim(side, claim) || slices.ContainsFunc(w.Plan.Shared, func(s plans.SharedVolume) bool { return s.Claim == claim })
}

// Pods reads the pods that a set controls, by pod name.
func (w Pair) Pods(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) (map[string]*corev1.Pod, error) {
	all, err := w.EveryPod(ctx, side)
	out := map[string]*corev1.Pod{}
	for i := range all {
		if metav1.IsControlledBy(&all[i], set) {
			out[all[i].Name] = &all[i]
		}
	}
	return out, err
}

// Get reads an object; nil means that there is none. where names the owner of the object in errors.
func Get[T any, O interface {
	*T
	client.Object
}](ctx context.Context, on client.Reader, namespace, name, where string) (*T, error) {
	o := O(new(T))
	err := on.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s of %s: %w", strings.ToLower(KindOf(o)), name, where, err)
	}
	return o, nil
}

// IsReady reports whether a pod is Ready by its condition.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Pod reads the pod of an ordinal; nil means that there is none.
func (w Pair) Pod(ctx context.Context, side plans.Side, ordinal int32) (*corev1.Pod, error) {
	ref := w.Plan.On(side)
	return Get[corev1.Pod](ctx, w.On[side], ref.Namespace, w.Plan.Pod(side, ordinal), ref.String())
}

// Claim reads a claim of a side; nil means that there is none.
func (w Pair) Claim(ctx context.Context, side plans.Side, name string) (*corev1.PersistentVolumeClaim, error) {
	ref := w.Plan.On(side)
	return Get[corev1.PersistentVolumeClaim](ctx, w.On[side], ref.Namespace, name, ref.String())
}

// SavedOn returns the name of a volume on which the plan has saved a claim of this name, unless it is the volume that is
// given; "" if there is none. The plan protects that volume for the claim.
func (w Pair) SavedOn(ctx context.Context, side plans.Side, claim, unless string) (name string, err error) {
	err = Each(ctx, w.On[side], func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
		var saved metav1.PartialObjectMetadata
		if pv.Name != unless && (plans.Stamp{Plan: w.Plan.ID}).Mine(pv) && weight.Unmarshal([]byte(pv.Annotations[plans.ClaimAnnotation]), &saved) == nil && saved.Name == claim {
			name = pv.Name
		}
	})
	if err != nil {
		return "", fmt.Errorf("listing the volumes on the %s: %w", side, err)
	}
	return name, nil
}

// object returns an empty object of a dependency's kind.
func object(d plans.Dependency) client.Object {
	switch d.Kind {
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "Secret":
		return &corev1.Secret{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "Service":
		return &corev1.Service{}
	}
	return nil
}

func unknownKind(d plans.Dependency) error { return fmt.Errorf("dependency %s: unknown kind", d) }

// Dependency reads a dependency on a side; nil means that there is none.
func (w Pair) Dependency(ctx context.Context, side plans.Side, d plans.Dependency) (client.Object, error) {
	o := object(d)
	if o == nil {
		return nil, unknownKind(d)
	}
	err := w.On[side].Get(ctx, client.ObjectKey{Namespace: w.Plan.On(side).Namespace, Name: d.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s in namespace %s: %w", d, w.Plan.On(side).Namespace, err)
	}
	return o, nil
}

// OnBoth reads a dependency on both sides; nil means that a side has none.
func (w Pair) OnBoth(ctx context.Context, d plans.Dependency) (from, to client.Object, err error) {
	if from, err = w.Dependency(ctx, plans.Source, d); err != nil {
		return nil, nil, err
	}
	to, err = w.Dependency(ctx, plans.Destination, d)
	return from, to, err
}

// Copies reads what was copied to the destination. A user without the right to read one learns nothing of it, and it
// is left out.
func (w Pair) Copies(ctx context.Context) ([]client.Object, error) {
	var out []client.Object
	for _, d := range w.Plan.Dependencies {
		o, err := w.Dependency(ctx, plans.Destination, d)
		switch {
		case apierrors.IsForbidden(err):
		case err != nil:
			return nil, err
		case o != nil:
			out = append(out, o)
		}
	}
	return out, nil
}

// Budget reads the PodDisruptionBudget of a side; nil means that there is none.
func (w Pair) Budget(ctx context.Context, side plans.Side) (*policyv1.PodDisruptionBudget, error) {
	name, _ := w.Plan.BudgetOn(side)
	ref := w.Plan.On(side)
	return Get[policyv1.PodDisruptionBudget](ctx, w.On[side], ref.Namespace, name, ref.String())
}

// Revisions reads the revisions of a set: its controller copies the annotations of the set to each that it creates. A
// set that does not exist has none.
func (w Pair) Revisions(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) ([]*appsv1.ControllerRevision, error) {
	if set == nil {
		return nil, nil
	}
	var all appsv1.ControllerRevisionList
	if err := w.On[side].List(ctx, &all, client.InNamespace(set.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the revisions of %s: %w", w.Plan.On(side), err)
	}
	var out []*appsv1.ControllerRevision
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], set) {
			out = append(out, &all.Items[i])
		}
	}
	return out, nil
}
