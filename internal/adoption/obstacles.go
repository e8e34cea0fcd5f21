package adoption

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// restless returns the reason why a set cannot be adopted now, or "". Under OnDelete the current revision of a
// StatefulSet never changes before Kubernetes 1.37, so there only the pods count.
func restless(s *appsv1.StatefulSet) string {
	n := plans.SliceOf(s).Replicas
	st := s.Status
	updating := st.CurrentRevision != st.UpdateRevision && s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
	_, paused := s.Annotations[sets.PausedFrom]
	switch {
	case s.DeletionTimestamp != nil:
		return "is being deleted"
	case paused:
		return "is paused, and keeps in an annotation what it gets back: resume its update first (rollout resume)"
	case st.ObservedGeneration < s.Generation, st.Replicas != n, st.ReadyReplicas != n, st.UpdatedReplicas != n, updating:
		return fmt.Sprintf("is not at rest: %d pods, %d ready and %d updated of %d; wait for it, or repair it first", st.Replicas, st.ReadyReplicas, st.UpdatedReplicas, n)
	case s.Spec.UpdateStrategy.RollingUpdate != nil && s.Spec.UpdateStrategy.RollingUpdate.Partition != nil && *s.Spec.UpdateStrategy.RollingUpdate.Partition != 0:
		return "has a partition, which means another thing for the other kind: set it to 0 first"
	}
	return ""
}

// bound returns why a set cannot have another kind: something that it names, or that marks it, would act on the
// former kind only. It returns "" if nothing does.
func bound(s *appsv1.StatefulSet) string {
	if o := metav1.GetControllerOfNoCopy(s); o != nil {
		return fmt.Sprintf("is controlled by %s %s, which would create it again: change the kind there", o.Kind, o.Name)
	}
	for _, f := range s.Finalizers {
		if !slices.Contains([]string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, v1alpha1.ProtectionFinalizer}, f) {
			return fmt.Sprintf("has the finalizer %s, whose controller does not know the other kind and would never remove it: let that controller remove it first", f)
		}
	}
	for _, mark := range []struct{ by, in string }{{"Argo CD", "argocd.argoproj.io/tracking-id"}, {"Flux", "kustomize.toolkit.fluxcd.io/name"}, {"Flux", "helm.toolkit.fluxcd.io/name"}} {
		_, label := s.Labels[mark.in]
		if _, noted := s.Annotations[mark.in]; noted || label {
			return fmt.Sprintf("is applied by %s (%s), which would create it again beside the new set: take it out of there without deleting it, and remove that mark", mark.by, mark.in)
		}
	}
	return ""
}

// scalers returns the autoscalers of a set, in words: they name its kind, and would scale nothing afterwards.
func (a Adoption) scalers(ctx context.Context) ([]string, error) {
	var out []string
	for _, k := range []struct {
		schema.GroupVersionKind
		target string
	}{
		{schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, "scaleTargetRef"},
		{schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}, "scaleTargetRef"},
		{schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}, "targetRef"},
	} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		err := a.On.List(ctx, &list, client.InNamespace(a.Set.Namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // it is not installed, or not ours to see
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing the %ss of namespace %s: %w", k.Kind, a.Set.Namespace, err)
		}
		for _, o := range list.Items {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", k.target, "kind")
			name, _, _ := unstructured.NestedString(o.Object, "spec", k.target, "name")
			if kind == a.Set.SetKind() && name == a.Set.Name {
				out = append(out, k.Kind+" "+o.GetName())
			}
		}
	}
	return out, nil
}

// obstacle returns why a set cannot be adopted, or "". The last thing that is asked is whether the API server
// would accept the new set: after the deletion of the former one its pods would have no controller.
func (a Adoption) obstacle(ctx context.Context, old *appsv1.StatefulSet) (string, error) {
	if why := restless(old); why != "" {
		return why, nil
	}
	if why := bound(old); why != "" {
		return why, nil
	}
	scalers, err := a.scalers(ctx)
	if err != nil {
		return "", err
	}
	if len(scalers) > 0 {
		return fmt.Sprintf("is scaled by %s, which would scale nothing afterwards: delete that, and apply it for the other kind at the end", strings.Join(scalers, ", ")), nil
	}
	err = a.as(a.becomes()).Create(ctx, a.successor(old), client.DryRunAll)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Sprintf("cannot become a %s (tried as a dry run): %v", a.becomes().SetKind(), err), nil
	case err != nil:
		return "", fmt.Errorf("creating %s as a dry run: %w", a.becomes().Set(), err)
	}
	return "", nil
}

// successor returns the set of the other kind. Its strategy is OnDelete, so that it replaces no pods until it is
// verified that the set takes them for its own revision.
func (a Adoption) successor(old *appsv1.StatefulSet) *appsv1.StatefulSet {
	next := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: plans.NativeKind},
		ObjectMeta: *(&metav1.ObjectMeta{
			Namespace: a.Set.Namespace, Name: a.Set.Name, Labels: old.Labels, Annotations: old.Annotations, OwnerReferences: old.OwnerReferences,
		}).DeepCopy(),
		Spec: *old.Spec.DeepCopy(),
	}
	delete(next.Annotations, corev1.LastAppliedConfigAnnotation) // it describes the other kind
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, adopted, string(old.UID))
	next.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	return next
}
