package writes

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/reads"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", ResourceVersion: "5"}
}

// seen returns what a cluster with these objects says of one.
func seen[O client.Object](t *testing.T, o O, objects ...client.Object) reads.Seen[O] {
	t.Helper()
	s, err := reads.Get(t.Context(), reads.From(fake.NewClientBuilder().WithObjects(objects...).Build()), client.ObjectKey{Namespace: "shop", Name: "kept"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The type of what a live read has shown can be had without a read, but it has shown nothing then.
func TestNothingIsDeletedForGoodWithoutALiveRead(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("data-web-0"), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "kept"}}
	volume, pod, set := &corev1.PersistentVolume{ObjectMeta: named("pv")}, &corev1.Pod{ObjectMeta: named("web-0")}, &appsv1.StatefulSet{ObjectMeta: named("web")}
	copied := &corev1.Secret{ObjectMeta: named("password")}
	none := seen(t, &appsv1.StatefulSet{})
	for name, remove := range map[string]func(client.Client) error{
		"a claim": func(c client.Client) error {
			return DeleteClaim(t.Context(), c, claim, reads.Seen[*corev1.PersistentVolume]{})
		},
		"a claim with a volume": func(c client.Client) error { return DeleteUnbound(t.Context(), c, claim) },
		"a volume": func(c client.Client) error {
			return DeleteVolume(t.Context(), c, volume, reads.Seen[*corev1.PersistentVolume]{})
		},
		"a pod":                func(c client.Client) error { return DeletePod(t.Context(), c, pod, reads.Seen[*appsv1.StatefulSet]{}) },
		"a pod without a set":  func(c client.Client) error { return DeletePod(t.Context(), c, pod, none) },
		"a set":                func(c client.Client) error { return DeleteSet(t.Context(), c, set, none) },
		"a set without a copy": func(c client.Client) error { return Orphan(t.Context(), c, set, seen(t, &corev1.ConfigMap{})) },
		"a copy": func(c client.Client) error {
			return DeleteCopy(t.Context(), c, copied, seen[client.Object](t, &corev1.Secret{}))
		},
	} {
		on := fake.NewClientBuilder().WithObjects(claim, volume, pod, set, copied).Build()
		if err := remove(on); !errors.Is(err, errUnread) {
			t.Errorf("%s: %v, expected it to be refused", name, err)
		}
	}
}

// The last look before a claim goes is at the policy of its volume.
func TestAClaimIsDeletedOnlyWhileItsVolumeIsRetain(t *testing.T) {
	for policy, goes := range map[corev1.PersistentVolumeReclaimPolicy]bool{corev1.PersistentVolumeReclaimRetain: true, corev1.PersistentVolumeReclaimDelete: false, "": true} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("data-web-0"), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "kept"}}
		var there []client.Object
		if policy != "" {
			pv := &corev1.PersistentVolume{ObjectMeta: named("kept"), Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy}}
			pv.Namespace = "shop" // as the fake cluster finds it
			there = append(there, pv)
		}
		on := fake.NewClientBuilder().WithObjects(claim).Build()
		err := DeleteClaim(t.Context(), on, claim, seen(t, &corev1.PersistentVolume{}, there...))
		gone := apierrors.IsNotFound(on.Get(t.Context(), client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{}))
		if (err == nil) != goes || gone != goes {
			t.Errorf("policy %q: gone %t (%v), expected %t", policy, gone, err, goes)
		}
	}
}

// Of what is read as any object, only kinds of this program are deleted.
func TestAnObjectOfAnyKindIsNotDeleted(t *testing.T) {
	claim, role := &corev1.PersistentVolumeClaim{ObjectMeta: named("data-web-0")}, &rbacv1.Role{ObjectMeta: named("web")}
	on := fake.NewClientBuilder().WithObjects(claim, role).Build()
	if err := DeleteOwn(t.Context(), on, claim); err == nil {
		t.Error("the claim is deleted")
	}
	if err := DeleteOwn(t.Context(), on, role); err != nil {
		t.Error(err)
	}
}
