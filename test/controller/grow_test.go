package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// Existing claims grow where their class allows it. The condition names those that do not grow yet, and is
// removed once the storage system has expanded them all.
func TestClaimsGrowWhereTheirClassAllows(t *testing.T) {
	t.Parallel()
	s := place(t)
	s.listen(t, &corev1.PersistentVolumeClaimList{})
	s.disks(t)
	templates := func(size string) string {
		return fmt.Sprintf("[{metadata: {name: data}, spec: {storageClassName: grows, accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}, {metadata: {name: log}, spec: {storageClassName: grows-not, accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}]", size, size)
	}
	if err := s.Create(t.Context(), s.written(t, "  replicas: 1\n  volumeClaimUpdatePolicy: InPlace\n  volumeClaimTemplates: "+templates("1Gi"))); err != nil {
		t.Fatal(err)
	}
	claim := func(ctx context.Context, name string) *corev1.PersistentVolumeClaim {
		var c corev1.PersistentVolumeClaim
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &c); err != nil {
			return &c
		}
		return &c
	}
	s.until(t, "a pod", s.has("web-0"))
	for _, name := range []string{"data-web-0", "log-web-0"} {
		s.until(t, name+" is bound", func(ctx context.Context) bool { return claim(ctx, name).Status.Phase == corev1.ClaimBound })
	}
	s.until(t, "the status has a revision", func(context.Context) bool { return s.slice(t).Status.UpdateRevision != "" })
	before, revision := s.uids(t), s.slice(t).Status.UpdateRevision
	grown := s.merged(t, "volumeClaimTemplates: "+templates("2Gi"))
	raw, err := grown.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Patch(t.Context(), grown, client.RawPatch("application/merge-patch+json", raw)); err != nil {
		t.Fatal(err)
	}
	s.until(t, "it asks for more", func(ctx context.Context) bool {
		asks := claim(ctx, "data-web-0").Spec.Resources.Requests[corev1.ResourceStorage]
		return asks.String() == "2Gi"
	})
	s.until(t, "the condition says why the other one does not", func(context.Context) bool {
		c := s.condition(t, core.Stalled)
		return strings.Contains(c, "claim log-web-0 requests 1Gi and needs 2Gi") && strings.Contains(c, "must support resize")
	})
	if err := s.patch(t.Context(), `{"volumeClaimUpdatePolicy":"OnClaimDelete"}`); err != nil { // under this policy the slice does not wait for claims
		t.Fatal(err)
	}
	s.until(t, "nothing is told any more", func(context.Context) bool { return s.condition(t, core.ClaimsOutdated) == "" })
	if err := s.Patch(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows-not"}}, client.RawPatch("application/merge-patch+json", []byte(`{"allowVolumeExpansion":true}`))); err != nil {
		t.Fatal(err)
	}
	if err := s.patch(t.Context(), `{"volumeClaimUpdatePolicy":"InPlace"}`); err != nil {
		t.Fatal(err)
	}
	s.until(t, "both are waited for", func(context.Context) bool { return strings.Contains(s.condition(t, core.ClaimsOutdated), "and 1 more") })
	for _, name := range []string{"data-web-0", "log-web-0"} { // like a storage system
		if err := s.SubResource("status").Patch(t.Context(), claim(t.Context(), name), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"capacity":{"storage":"2Gi"}}}`))); err != nil {
			t.Fatal(err)
		}
	}
	s.until(t, "none is waited for", func(context.Context) bool { return s.condition(t, core.ClaimsOutdated) == "" })
	if s.uids(t)["web-0"] != before["web-0"] || s.slice(t).Status.UpdateRevision != revision {
		t.Error("the pod was made anew, or there is another revision")
	}
}

// disks creates a storage class that lets claims grow and one that does not, with a volume of
// each for the claims of web-0.
func (s *side) disks(t *testing.T) {
	t.Helper()
	no, yes := false, true
	one := resource.MustParse("1Gi")
	for class, expands := range map[string]*bool{"grows-not": &no, "grows": &yes} {
		if err := s.Create(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.com/none", AllowVolumeExpansion: expands}); err != nil {
			t.Fatal(err)
		}
		claim := map[string]string{"grows": "data", "grows-not": "log"}[class] + "-web-0"
		if err := s.Create(t.Context(), &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: class},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: one}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
				ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: claim},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
}
