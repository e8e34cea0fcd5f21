// Package admission says what is wrong with a StatefulSetSlice before it is stored, as far
// as the schema of the kind cannot: refusals (VA-4, ER-19) and warnings. The controller does
// not rest on it.
package admission

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// template refuses what no set can make its pods from (VA-4).
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
		out = append(out, field.Forbidden(at.Child("spec", "activeDeadlineSeconds"), "pods of a set have no end"))
	}
	return out
}

// rollout is the block of the strategy, or nil.
func rollout(s v1alpha1.UpdateStrategy) *v1alpha1.Rollout {
	if s.Type == v1alpha1.EnforcedRollingUpdate {
		return s.EnforcedRollingUpdate
	}
	return s.RollingUpdate
}

// many says that maxUnavailable is something else than its default.
func many(s v1alpha1.UpdateStrategy) bool {
	r := rollout(s)
	return r != nil && r.MaxUnavailable != nil && *r.MaxUnavailable != intstr.FromInt32(1)
}

// gated refuses that features are used anew that are switched off (961-41, ER-19). What
// uses them already stays as it is: the controller takes it for what it was before.
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

// warnings are about what may be meant, and often is not.
func warnings(s v1alpha1.StatefulSetSliceSpec) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	n, start := int32(1), int32(0)
	if s.Replicas != nil {
		n = *s.Replicas
	}
	if s.Ordinals != nil {
		start = s.Ordinals.Start
	}
	end := int64(start) + int64(n)
	if r := rollout(s.UpdateStrategy); r != nil {
		first := int64(start)
		if r.Partition != nil {
			first = max(first, int64(*r.Partition))
			if p := int64(*r.Partition); n > 0 && p != 0 && (p < int64(start) || p > end) { // PT-5
				say("partition %d is no ordinal of the range %d..%d: it counts ordinals, not places in the range", p, start, end-1)
			}
		}
		if r.MaxUnavailable != nil && n > 0 { // MU-9, 961-55
			m, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, int(n), false)
			switch staged := max(end-first, 0); {
			case err != nil: // refused by the schema
			case m >= int(n) && m > 1:
				say("maxUnavailable %s lets an update take down all %d pods at once", r.MaxUnavailable, n)
			case int64(m) > staged && m > 1:
				say("maxUnavailable %s is more than the %d pods that the partition lets an update replace", r.MaxUnavailable, staged)
			}
		}
	}
	if s.RevisionHistoryLimit != nil && *s.RevisionHistoryLimit < 0 { // RV-7
		say("revisionHistoryLimit %d keeps every ControllerRevision for ever", *s.RevisionHistoryLimit)
	}
	if s.UpdateStrategy.Type == v1alpha1.EnforcedRollingUpdate { // 3541-43
		for _, v := range s.Template.Spec.Volumes {
			if v.EmptyDir != nil || v.HostPath != nil {
				say("EnforcedRollingUpdate deletes pods that are not available, and volume %s does not outlive its pod or its node", v.Name)
			}
		}
	}
	return out
}

// overlap warns of a StatefulSet that wants the same pods (CL-11).
func overlap(s *v1alpha1.StatefulSetSlice, other *appsv1.StatefulSet) string {
	ours, theirs := s.Native().Spec, other.Spec
	from := func(o *appsv1.StatefulSetOrdinals) int64 {
		if o == nil {
			return 0
		}
		return int64(o.Start)
	}
	size := func(n *int32) int64 {
		if n == nil {
			return 1
		}
		return int64(*n)
	}
	low := max(from(ours.Ordinals), from(theirs.Ordinals))
	high := min(from(ours.Ordinals)+size(ours.Replicas), from(theirs.Ordinals)+size(theirs.Replicas))
	if low >= high || leavesPods(other) {
		return ""
	}
	return fmt.Sprintf("StatefulSet %s has the same name, and with it the pods %s-%d to %s-%d, which the slice will not take", other.Name, other.Name, low, other.Name, high-1)
}

// leavesPods says that a set is being deleted without its pods.
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
