package slicecontroller

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// HoldClaims is the annotation of a slice that keeps all its claims, whatever its
// retention policy says: a migration moves every ordinal out of the range (CP-14).
const HoldClaims = "apps.stsmigrate.dev/hold-claims"

// sliced are StatefulSetSlices.
func sliced(gates core.Traits) kind {
	traits := gates
	traits.Kind, traits.Conditioned = v1alpha1.Kind(), true
	return kind{
		component:   "slicecontroller",
		gvk:         traits.Kind,
		undefaulted: true,
		empty:       func() client.Object { return &v1alpha1.StatefulSetSlice{} },
		list:        func() client.ObjectList { return &v1alpha1.StatefulSetSliceList{} },
		items: func(l client.ObjectList) []client.Object {
			list := l.(*v1alpha1.StatefulSetSliceList) //nolint:forcetypeassert // made by list
			out := make([]client.Object, len(list.Items))
			for k := range list.Items {
				out[k] = &list.Items[k]
			}
			return out
		},
		read: func(o client.Object) *core.Set {
			s := o.(*v1alpha1.StatefulSetSlice) //nolint:forcetypeassert // made by empty
			traits := traits
			traits.HoldClaims = s.Annotations[HoldClaims] == "true"
			return &core.Set{ObjectMeta: s.ObjectMeta, Spec: specOf(s.Spec), Status: statusOf(s.Status), Traits: traits}
		},
		tell: func(o client.Object, status core.Status) {
			tellSlice(o.(*v1alpha1.StatefulSetSlice), status) //nolint:forcetypeassert // made by empty
		},
	}
}

// specOf gives a spec in the words of apps/v1, which has all of them but for the block of
// EnforcedRollingUpdate. The block of the rollout is always there (RV-12).
func specOf(s v1alpha1.StatefulSetSliceSpec) appsv1.StatefulSetSpec {
	out := appsv1.StatefulSetSpec{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, VolumeClaimTemplates: s.VolumeClaimTemplates,
		ServiceName: s.ServiceName, PodManagementPolicy: s.PodManagementPolicy, RevisionHistoryLimit: s.RevisionHistoryLimit,
		MinReadySeconds: s.MinReadySeconds, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: s.UpdateStrategy.Type},
	}
	if s.Ordinals != nil {
		out.Ordinals = &appsv1.StatefulSetOrdinals{Start: s.Ordinals.Start}
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		out.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: p.WhenDeleted, WhenScaled: p.WhenScaled}
	}
	rollout := s.UpdateStrategy.RollingUpdate
	if s.UpdateStrategy.Type == v1alpha1.EnforcedRollingUpdate {
		rollout = s.UpdateStrategy.EnforcedRollingUpdate
	}
	block := &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}
	if rollout != nil {
		block.MaxUnavailable = rollout.MaxUnavailable
		if rollout.Partition != nil {
			block.Partition = rollout.Partition
		}
	}
	out.UpdateStrategy.RollingUpdate = block
	return out
}

func statusOf(s v1alpha1.StatefulSetSliceStatus) core.Status {
	return core.Status{Told: s.Conditions, StatefulSetStatus: appsv1.StatefulSetStatus{
		ObservedGeneration: s.ObservedGeneration, Replicas: s.Replicas, ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas,
		CurrentReplicas: s.CurrentReplicas, UpdatedReplicas: s.UpdatedReplicas,
		CurrentRevision: s.CurrentRevision, UpdateRevision: s.UpdateRevision, CollisionCount: s.CollisionCount,
	}}
}

func tellSlice(o *v1alpha1.StatefulSetSlice, s core.Status) {
	o.Status = v1alpha1.StatefulSetSliceStatus{
		ObservedGeneration: s.ObservedGeneration, Replicas: s.Replicas, ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas,
		CurrentReplicas: s.CurrentReplicas, UpdatedReplicas: s.UpdatedReplicas,
		CurrentRevision: s.CurrentRevision, UpdateRevision: s.UpdateRevision, CollisionCount: s.CollisionCount,
		Selector: metav1.FormatLabelSelector(o.Spec.Selector), Conditions: s.Told,
	}
}
