package slicecontroller

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// RetainClaims is the annotation of a slice that keeps all its claims, whatever its retention policy is: a
// migration moves every ordinal out of the range (CP-14).
const RetainClaims = "apps.stsmigrate.dev/retain-claims"

// sliced returns the kind StatefulSetSlice with the traits of the feature gates.
func sliced(gates core.Traits) kind {
	traits := gates
	traits.Kind, traits.Conditioned = v1alpha1.Kind(), true
	return kind{
		component:   "slicecontroller",
		lease:       "slicecontroller.apps.stsmigrate.dev",
		gvk:         traits.Kind,
		undefaulted: true,
		evicts:      true,
		empty:       func() client.Object { return &v1alpha1.StatefulSetSlice{} },
		list:        func() client.ObjectList { return &v1alpha1.StatefulSetSliceList{} },
		read: func(o client.Object) *core.Set {
			s := o.(*v1alpha1.StatefulSetSlice) //nolint:forcetypeassert // made by empty
			traits := traits
			traits.RetainClaims = s.Annotations[RetainClaims] == "true"
			traits.Protected = s.Spec.DeletionProtection
			traits.ClaimsGrow = s.Spec.VolumeClaimUpdatePolicy == v1alpha1.InPlace
			traits.Evicts = s.Spec.UpdateStrategy.Evict
			traits.Paused, traits.RollsBack = s.Spec.Paused, s.Spec.UpdateStrategy.OnFailure() == v1alpha1.Rollback
			if d := s.Spec.ProgressDeadlineSeconds; d != nil {
				traits.Deadline = time.Duration(*d) * time.Second
			}
			traits.Reserved = slices.Compact(slices.Sorted(slices.Values(s.Spec.ReserveOrdinals)))
			n := s.Native()
			status := core.Status{StatefulSetStatus: n.Status, Told: s.Status.Conditions, Progressed: s.Status.LastProgressTime, Failed: s.Status.FailedRevision}
			if o := s.Status.Ordinals; o != nil {
				status.Ordinals = &core.Range{Start: o.Start, End: o.End}
			}
			return &core.Set{ObjectMeta: s.ObjectMeta, Spec: n.Spec, Status: status, Traits: traits}
		},
		tell: func(o client.Object, status core.Status) {
			s := o.(*v1alpha1.StatefulSetSlice) //nolint:forcetypeassert // made by empty
			s.Tell(status.StatefulSetStatus)
			s.Status.Conditions, s.Status.LastProgressTime, s.Status.FailedRevision = status.Told, status.Progressed, status.Failed
			if o := status.Ordinals; o != nil {
				s.Status.Ordinals = &v1alpha1.Range{Start: o.Start, End: o.End}
			}
		},
		unknown: func(o client.Object) []string { return o.(*v1alpha1.StatefulSetSlice).Unknown }, //nolint:forcetypeassert // made by empty
		fit:     fit,
	}
}
