package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Native returns the slice as an apps/v1 StatefulSet. apps/v1 has no EnforcedRollingUpdate: its type is
// kept, and its block takes the place of that of RollingUpdate. Other fields that apps/v1 lacks are in the
// annotation More. Except for OnDelete, the block of a rollout is always set. Nothing is copied deeply.
func (s *StatefulSetSlice) Native() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		ObjectMeta: s.noted(), Spec: s.Spec.native(), Status: s.Status.native(),
	}
}

// FromNative returns a StatefulSet as a slice. Native of the result is the StatefulSet again. A partition
// keeps its value, and is an ordinal from then on.
func FromNative(set *appsv1.StatefulSet) *StatefulSetSlice {
	s := &StatefulSetSlice{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion().String(), Kind: Kind().Kind},
		ObjectMeta: set.ObjectMeta, Spec: specFrom(set.Spec), Status: statusFrom(set),
	}
	s.heed()
	return s
}

func (s StatefulSetSliceSpec) native() appsv1.StatefulSetSpec {
	out := appsv1.StatefulSetSpec{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, VolumeClaimTemplates: nativeClaims(s.VolumeClaimTemplates),
		ServiceName: s.ServiceName, PodManagementPolicy: s.PodManagementPolicy, RevisionHistoryLimit: s.RevisionHistoryLimit,
		MinReadySeconds: s.MinReadySeconds, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: s.UpdateStrategy.Type},
	}
	if s.Ordinals != nil {
		out.Ordinals = &appsv1.StatefulSetOrdinals{Start: s.Ordinals.Start}
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		out.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: p.WhenDeleted, WhenScaled: p.WhenScaled}
	}
	if s.UpdateStrategy.Type == OnDelete {
		return out
	}
	rollout := s.UpdateStrategy.RollingUpdate
	if s.UpdateStrategy.Type == EnforcedRollingUpdate {
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

func specFrom(s appsv1.StatefulSetSpec) StatefulSetSliceSpec {
	out := StatefulSetSliceSpec{
		Replicas: s.Replicas, Selector: s.Selector, Template: s.Template, VolumeClaimTemplates: claimsFrom(s.VolumeClaimTemplates),
		ServiceName: s.ServiceName, PodManagementPolicy: s.PodManagementPolicy, RevisionHistoryLimit: s.RevisionHistoryLimit,
		MinReadySeconds: s.MinReadySeconds, UpdateStrategy: UpdateStrategy{Type: s.UpdateStrategy.Type},
	}
	if s.Ordinals != nil {
		out.Ordinals = &Ordinals{Start: s.Ordinals.Start}
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		out.PersistentVolumeClaimRetentionPolicy = &RetentionPolicy{WhenDeleted: p.WhenDeleted, WhenScaled: p.WhenScaled}
	}
	block := s.UpdateStrategy.RollingUpdate
	if block == nil {
		return out
	}
	rollout := &Rollout{Partition: block.Partition, MaxUnavailable: block.MaxUnavailable}
	if s.UpdateStrategy.Type == EnforcedRollingUpdate {
		out.UpdateStrategy.EnforcedRollingUpdate = rollout
	} else {
		out.UpdateStrategy.RollingUpdate = rollout
	}
	return out
}

func nativeClaims(templates []corev1.PersistentVolumeClaimTemplate) []corev1.PersistentVolumeClaim {
	var out []corev1.PersistentVolumeClaim
	for _, t := range templates {
		out = append(out, corev1.PersistentVolumeClaim{ObjectMeta: t.ObjectMeta, Spec: t.Spec})
	}
	return out
}

// claimsFrom keeps only the metadata and spec of a claim: nothing is created from the rest.
func claimsFrom(claims []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimTemplate {
	var out []corev1.PersistentVolumeClaimTemplate
	for _, c := range claims {
		out = append(out, corev1.PersistentVolumeClaimTemplate{ObjectMeta: c.ObjectMeta, Spec: c.Spec})
	}
	return out
}

func (s StatefulSetSliceStatus) native() appsv1.StatefulSetStatus {
	return appsv1.StatefulSetStatus{
		ObservedGeneration: s.ObservedGeneration, Replicas: s.Replicas, ReadyReplicas: s.ReadyReplicas, AvailableReplicas: s.AvailableReplicas,
		CurrentReplicas: s.CurrentReplicas, UpdatedReplicas: s.UpdatedReplicas,
		CurrentRevision: s.CurrentRevision, UpdateRevision: s.UpdateRevision, CollisionCount: s.CollisionCount,
	}
}

// Tell sets the status of the slice from a status of apps/v1. Fields that apps/v1 lacks are kept.
func (s *StatefulSetSlice) Tell(status appsv1.StatefulSetStatus) {
	was := s.Status
	s.Status = StatefulSetSliceStatus{
		ObservedGeneration: status.ObservedGeneration, Replicas: status.Replicas, ReadyReplicas: status.ReadyReplicas, AvailableReplicas: status.AvailableReplicas,
		CurrentReplicas: status.CurrentReplicas, UpdatedReplicas: status.UpdatedReplicas,
		CurrentRevision: status.CurrentRevision, UpdateRevision: status.UpdateRevision, CollisionCount: status.CollisionCount,
		Selector: metav1.FormatLabelSelector(s.Spec.Selector), Ordinals: was.Ordinals, LastProgressTime: was.LastProgressTime, FailedRevision: was.FailedRevision, Conditions: was.Conditions,
	}
}

func statusFrom(set *appsv1.StatefulSet) StatefulSetSliceStatus {
	s := StatefulSetSlice{Spec: StatefulSetSliceSpec{Selector: set.Spec.Selector}}
	s.Tell(set.Status)
	return s.Status
}
