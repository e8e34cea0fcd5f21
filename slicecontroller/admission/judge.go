// Package admission validates a StatefulSetSlice before it is stored, where the schema of the kind cannot:
// it returns errors (VA-4, ER-19) and warnings. The controller does not depend on it.
package admission

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// template returns errors for a selector or pod template that no set can create its pods from (VA-4).
func template(s v1alpha1.StatefulSetSliceSpec) field.ErrorList {
	var out field.ErrorList
	at := field.NewPath("spec", "template")
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	switch {
	case err != nil:
		out = append(out, field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(s.Selector), err.Error()))
	case selector.Empty():
		out = append(out, field.Required(field.NewPath("spec", "selector"), "an empty selector would select every pod of the namespace"))
	case !selector.Matches(labels.Set(s.Template.Labels)):
		out = append(out, field.Invalid(at.Child("metadata", "labels"), s.Template.Labels, "spec.selector ("+selector.String()+") does not select pods with these labels"))
	}
	if p := s.Template.Spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		out = append(out, field.NotSupported(at.Child("spec", "restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if s.Template.Spec.ActiveDeadlineSeconds != nil {
		out = append(out, field.Forbidden(at.Child("spec", "activeDeadlineSeconds"), "the pods of a set must run without a deadline"))
	}
	return out
}

// rollout returns the block of the strategy, or nil.
func rollout(s v1alpha1.UpdateStrategy) *v1alpha1.Rollout {
	if s.Type == v1alpha1.EnforcedRollingUpdate {
		return s.EnforcedRollingUpdate
	}
	return s.RollingUpdate
}

// many reports whether maxUnavailable differs from its default.
func many(s v1alpha1.UpdateStrategy) bool {
	r := rollout(s)
	return r != nil && r.MaxUnavailable != nil && *r.MaxUnavailable != intstr.FromInt32(1)
}

// gated returns errors for the new use of features that are switched off (961-41, ER-19). An existing use
// is accepted: the controller treats it as if the feature did not exist.
func gated(off core.Traits, was *v1alpha1.StatefulSetSlice, s v1alpha1.StatefulSetSliceSpec) field.ErrorList {
	var out field.ErrorList
	at := field.NewPath("spec", "updateStrategy")
	before := v1alpha1.UpdateStrategy{}
	if was != nil {
		before = was.Spec.UpdateStrategy
	}
	if off.NotEnforced && s.UpdateStrategy.Type == v1alpha1.EnforcedRollingUpdate && before.Type != s.UpdateStrategy.Type {
		out = append(out, field.Forbidden(at.Child("type"), "the feature EnforcedRollingUpdateInStatefulSet is switched off"))
	}
	if off.OneAtATime && many(s.UpdateStrategy) && !many(before) {
		out = append(out, field.Forbidden(at.Child("rollingUpdate", "maxUnavailable"), "the feature MaxUnavailableStatefulSet is switched off"))
	}
	return out
}

// later returns errors for newly used fields that this release does not know and would ignore (3541-26).
// The controller leaves slices with such fields unchanged.
func later(was, s *v1alpha1.StatefulSetSlice) field.ErrorList {
	var out field.ErrorList
	for _, path := range s.Unknown {
		if was == nil || !slices.Contains(was.Unknown, path) {
			out = append(out, field.Forbidden(field.NewPath(path), "the slice controller of this cluster does not know this field: upgrade the slice controller first, or check the spelling of the field"))
		}
	}
	return out
}

// pods returns how many pods a slice has.
func pods(s *v1alpha1.StatefulSetSlice) int64 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return int64(*s.Spec.Replicas)
}

// warnings lists settings that are valid, but often not intended.
func warnings(s *v1alpha1.StatefulSetSlice) []string {
	var out []string
	if r := rollout(s.Spec.UpdateStrategy); r != nil {
		start, end := core.RangeOf(s.Native().Spec, s.Spec.ReserveOrdinals)
		partition := int64(0)
		if r.Partition != nil {
			partition = int64(*r.Partition)
		}
		out = append(out, offRange(start, end, partition)...)
		out = append(out, tooMany(pods(s), max(end-max(start, partition), 0), r.MaxUnavailable)...)
	}
	if s.Spec.UpdateStrategy.Evict && s.Spec.UpdateStrategy.Type == v1alpha1.OnDelete {
		out = append(out, "evict has no meaning for OnDelete, whose updates delete no pods")
	}
	if n := s.Spec.RevisionHistoryLimit; n != nil && *n < 0 { // RV-7
		out = append(out, fmt.Sprintf("revisionHistoryLimit %d keeps every ControllerRevision for ever", *n))
	}
	if s.Spec.UpdateStrategy.Type == v1alpha1.EnforcedRollingUpdate { // 3541-43
		for _, v := range s.Spec.Template.Spec.Volumes {
			if v.EmptyDir != nil || v.HostPath != nil {
				out = append(out, fmt.Sprintf("EnforcedRollingUpdate deletes pods that are not available, and volume %s does not outlive its pod or its node", v.Name))
			}
		}
	}
	return out
}

// offRange warns of a partition that is neither an ordinal of the range nor the one after it,
// which freezes all pods (PT-5).
func offRange(start, end, partition int64) []string {
	if start == end || partition == 0 || partition >= start && partition <= end {
		return nil
	}
	return []string{fmt.Sprintf("partition %d is no ordinal of the range %d..%d: the partition is an ordinal, not an offset from the start of the range", partition, start, end-1)}
}

// tooMany warns of a maxUnavailable that limits nothing: n is the number of pods, and staged is how many of
// them an update replaces (MU-9, 961-55).
func tooMany(n, staged int64, most *intstr.IntOrString) []string {
	if most == nil || n == 0 {
		return nil
	}
	m, err := intstr.GetScaledValueFromIntOrPercent(most, int(n), false)
	switch {
	case err != nil, m <= 1: // the schema refuses invalid values
		return nil
	case int64(m) >= n:
		return []string{fmt.Sprintf("maxUnavailable %s lets an update take down all %d pods at once", most, n)}
	case int64(m) > staged:
		return []string{fmt.Sprintf("maxUnavailable %s is more than the %d pods that the partition lets an update replace", most, staged)}
	}
	return nil
}

// overlap warns of a StatefulSet that needs the same pods (CL-11).
func overlap(s *v1alpha1.StatefulSetSlice, other *appsv1.StatefulSet) string {
	start, end := core.RangeOf(s.Native().Spec, s.Spec.ReserveOrdinals)
	low, high := core.RangeOf(other.Spec, nil)
	low, high = max(low, start), min(high, end)
	if low >= high || leavesPods(other) {
		return ""
	}
	return fmt.Sprintf("StatefulSet %s has the same name and the same pods %s-%d to %s-%d, which the slice will not adopt", other.Name, other.Name, low, other.Name, high-1)
}

// leavesPods reports whether a set is being deleted without its pods.
func leavesPods(s *appsv1.StatefulSet) bool {
	if s.DeletionTimestamp == nil {
		return false
	}
	for _, f := range s.Finalizers {
		if f == metav1.FinalizerOrphanDependents {
			return true
		}
	}
	return false
}
