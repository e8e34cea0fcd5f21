package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A StatefulSet that is converted to a slice and back loses nothing.
func TestAStatefulSetIsTheSameAfterItWasASlice(t *testing.T) {
	n, partition, limit, most, collisions := int32(3), int32(4), int32(7), intstr.FromString("30%"), int32(1)
	full := appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "5", Generation: 2, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, Ordinals: &appsv1.StatefulSetOrdinals{Start: 2}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:             corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
			ServiceName:          "peers", PodManagementPolicy: appsv1.ParallelPodManagement, RevisionHistoryLimit: &limit, MinReadySeconds: 9,
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: "Delete", WhenScaled: "Retain"},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, CurrentReplicas: 2, UpdatedReplicas: 1,
			CurrentRevision: "web-a", UpdateRevision: "web-b", CollisionCount: &collisions,
		},
	}
	block := &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: &most}
	for _, strategy := range []appsv1.StatefulSetUpdateStrategy{
		{Type: RollingUpdate, RollingUpdate: block}, {Type: EnforcedRollingUpdate, RollingUpdate: block}, {Type: OnDelete},
	} {
		want := full.DeepCopy()
		want.Spec.UpdateStrategy = strategy
		if diff := cmp.Diff(want, FromNative(want.DeepCopy()).Native()); diff != "" {
			t.Errorf("%s: %s", strategy.Type, diff)
		}
	}
	if _, noted := FromNative(full.DeepCopy()).Native().Annotations[More]; noted {
		t.Error("there is nothing that apps/v1 has no words for, and it is noted")
	}
	bare := FromNative(&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: RollingUpdate}}}).Native()
	if b := bare.Spec.UpdateStrategy.RollingUpdate; b == nil || b.Partition == nil || *b.Partition != 0 {
		t.Errorf("RV-12: without a block it is %+v", b)
	}
	if s := FromNative(&full); s.Status.Selector != "app=web" || s.Kind != "StatefulSetSlice" || s.APIVersion != "apps.stsmigrate.dev/v1alpha1" {
		t.Errorf("%+v", s)
	}
}

// A slice that is a StatefulSet for a while, or is recreated from one, keeps its settings.
func TestASliceIsTheSameAfterItWasAStatefulSet(t *testing.T) {
	soon, usual := int32(60), int32(usualDeadline)
	for name, spec := range map[string]StatefulSetSliceSpec{
		"paused":                     {Paused: true},
		"a deadline":                 {ProgressDeadlineSeconds: &soon},
		"a way back":                 {UpdateStrategy: UpdateStrategy{Type: RollingUpdate, RollingUpdate: &Rollout{OnFailure: Rollback}}},
		"protected":                  {DeletionProtection: true},
		"ordinals that are left out": {ReserveOrdinals: []int32{1, 3}},
		"claims that grow":           {VolumeClaimUpdatePolicy: InPlace},
		"evictions":                  {UpdateStrategy: UpdateStrategy{Evict: true}},
		"one of the enforced update": {UpdateStrategy: UpdateStrategy{Type: EnforcedRollingUpdate, EnforcedRollingUpdate: &Rollout{OnFailure: Rollback}}},
	} {
		want := StatefulSetSlice{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"c": "d"}}, Spec: spec}
		got := FromNative(want.DeepCopy().Native())
		if diff := cmp.Diff(want.ObjectMeta, got.ObjectMeta); diff != "" || got.Spec.Paused != spec.Paused || got.Spec.VolumeClaimUpdatePolicy != spec.VolumeClaimUpdatePolicy || got.Spec.DeletionProtection != spec.DeletionProtection || got.Spec.UpdateStrategy.Evict != spec.UpdateStrategy.Evict || got.Spec.UpdateStrategy.OnFailure() != spec.UpdateStrategy.OnFailure() || !cmp.Equal(got.Spec.ProgressDeadlineSeconds, spec.ProgressDeadlineSeconds) || !cmp.Equal(got.Spec.ReserveOrdinals, spec.ReserveOrdinals) {
			t.Errorf("%s: %+v %s", name, got.Spec, diff)
		}
		if want.Native(); len(want.Annotations) != 1 {
			t.Errorf("%s: the slice itself is annotated: %v", name, want.Annotations)
		}
	}
	quiet := StatefulSetSlice{Spec: StatefulSetSliceSpec{ProgressDeadlineSeconds: &usual, VolumeClaimUpdatePolicy: OnClaimDelete}}
	if noted := quiet.Native().Annotations; len(noted) > 0 {
		t.Errorf("what everybody has is noted: %v", noted)
	}
}

// A claim template has only metadata and spec: the other fields of a claim are not written, and would
// differ from what users write.
func TestAClaimTemplateHasNoStatus(t *testing.T) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}}}}
	raw, err := json.Marshal(FromNative(set).Spec.VolumeClaimTemplates)
	if want := `[{"metadata":{"name":"data"},"spec":{"resources":{}}}]`; err != nil || string(raw) != want {
		t.Errorf("got %s, expected %s (%v)", raw, want, err)
	}
}
