package writes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAChangeSaysNothingOfWhatItLeaves(t *testing.T) {
	claimed := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1", UID: "u", ResourceVersion: "5", Annotations: map[string]string{"a": "b", "stsmigrate.dev/stamp": "p/1/2"}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-web-4", UID: "c", ResourceVersion: "3"},
		},
	}
	for name, tt := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   string
	}{
		"nothing": {func(*corev1.PersistentVolume) {}, `{"metadata":{"resourceVersion":"5","uid":"u"}}`},
		"an annotation that comes, and a field": {func(pv *corev1.PersistentVolume) {
			pv.Annotations["c"] = "d"
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, `{"metadata":{"annotations":{"c":"d"},"resourceVersion":"5","uid":"u"},"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`},
		"an annotation that goes": {func(pv *corev1.PersistentVolume) {
			delete(pv.Annotations, "stsmigrate.dev/stamp")
		}, `{"metadata":{"annotations":{"stsmigrate.dev/stamp":null},"resourceVersion":"5","uid":"u"}}`},
		"a claim that the volume is promised to": {func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "mall", Name: "data-web-4"}
		}, `{"metadata":{"resourceVersion":"5","uid":"u"},"spec":{"claimRef":{"namespace":"mall","resourceVersion":null,"uid":null}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			next := claimed.DeepCopy()
			tt.change(next)
			raw, err := Patch{Was: claimed}.Data(next)
			if err != nil || string(raw) != tt.want {
				t.Errorf("%s (%v), expected %s", raw, err, tt.want)
			}
		})
	}
}

func TestAChangeIsConditional(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	on := fake.NewClientBuilder().WithObjects(set).Build()
	var was appsv1.StatefulSet
	if err := on.Get(t.Context(), client.ObjectKeyFromObject(set), &was); err != nil {
		t.Fatal(err)
	}
	change := func(value string) error {
		next := was.DeepCopy()
		next.Annotations = map[string]string{"who": value}
		return Change(t.Context(), on, &was, next)
	}
	if err := change("first"); err != nil {
		t.Fatal(err)
	}
	if err := change("late"); !apierrors.IsConflict(err) {
		t.Errorf("%v for an object that has been changed since, expected a conflict", err)
	}
	was.ResourceVersion = ""
	if err := change("unread"); err == nil {
		t.Error("an object that was never read may be changed")
	}
	if err := on.Get(t.Context(), client.ObjectKeyFromObject(set), &was); err != nil || was.Annotations["who"] != "first" {
		t.Errorf("annotations %v (%v), expected those of the first change", was.Annotations, err)
	}
}
