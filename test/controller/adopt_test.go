package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// hands is a set that is adopted by one kind after the other.
type hands struct {
	*side
	t      *testing.T
	native *appsv1.StatefulSet
	slice  *v1alpha1.StatefulSetSlice
	pods   map[string]string
	// revision is the revision of the pods.
	revision string
}

func (h *hands) resting(kind string, o client.Object, status func() appsv1.StatefulSetStatus) {
	h.t.Helper()
	h.until(h.t, kind+" is at rest", func(ctx context.Context) bool {
		if h.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: "web"}, o) != nil {
			return false
		}
		s := status()
		return s.ReadyReplicas == 3 && s.Replicas == 3 && s.CurrentRevision == s.UpdateRevision && s.ObservedGeneration == o.GetGeneration()
	})
}

func (h *hands) isNative() {
	h.t.Helper()
	h.resting("the StatefulSet", h.native, func() appsv1.StatefulSetStatus { return h.native.Status })
}

func (h *hands) isSlice() {
	h.t.Helper()
	h.resting("the slice", h.slice, func() appsv1.StatefulSetStatus { return h.slice.Native().Status })
}

// adopt runs the command and returns its output.
func (h *hands) adopt(code int, set string) string {
	h.t.Helper()
	return h.run(code, "adopt", set, "--yes")
}

// same requires the same pods, of the same revision, and no remains of the adoption.
func (h *hands) same(where, revision string) {
	h.t.Helper()
	if now := h.uids(h.t); fmt.Sprint(now) != fmt.Sprint(h.pods) || revision != h.revision {
		h.t.Errorf("%s: the pods are %v and were %v, the revision is %s and was %s", where, now, h.pods, revision, h.revision)
	}
	var left corev1.ConfigMapList
	if err := h.List(h.t.Context(), &left, client.InNamespace(h.namespace)); err != nil {
		h.t.Fatal(err)
	}
	for _, c := range left.Items {
		if strings.HasPrefix(c.Name, "stsmigrate") {
			h.t.Errorf("%s: %s is left", where, c.Name)
		}
	}
}

func (h *hands) edit(patch string) {
	h.t.Helper()
	o := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "web"}}
	if err := h.Patch(h.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		h.t.Fatal(err)
	}
}

func native3(t *testing.T) *hands {
	t.Helper()
	h := &hands{side: place(t), t: t, native: &appsv1.StatefulSet{}, slice: &v1alpha1.StatefulSetSlice{}}
	h.listen(t, &appsv1.StatefulSetList{})
	set := three()
	set.Namespace = h.namespace
	retention := appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: retention, WhenScaled: retention}
	if err := h.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	h.isNative()
	h.pods, h.revision = h.uids(t), h.native.Status.UpdateRevision
	return h
}

// A set is adopted in place, and adopted back: the pods, the revision and the claims stay the same, and
// nothing remains of the adoption (3335-44, 3335-61).
func TestASetIsAdoptedInPlace(t *testing.T) {
	t.Parallel()
	h := native3(t)
	strategy := h.native.Spec.UpdateStrategy.Type
	h.adopt(0, "web")
	h.isSlice()
	h.same("as a slice", h.slice.Status.UpdateRevision)
	if h.slice.Spec.UpdateStrategy.Type != strategy || len(h.slice.Annotations) != 0 || h.Get(t.Context(), client.ObjectKeyFromObject(h.native), h.native) == nil {
		t.Errorf("%+v %v", h.slice.Spec.UpdateStrategy, h.slice.Annotations)
	}
	if out := h.adopt(0, "web"); !strings.Contains(out, "done") {
		t.Errorf("once more: %s", out)
	}
	h.adopt(0, "stss/web")
	h.isNative()
	h.same("as a StatefulSet again", h.native.Status.UpdateRevision)
}

// A set that is not at rest is not adopted.
func TestASetThatIsNotAtRestIsNotAdopted(t *testing.T) {
	t.Parallel()
	h := native3(t)
	h.edit(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}`)
	h.isNative()
	if out := h.adopt(4, "web"); !strings.Contains(out, "blocked: StatefulSet "+h.namespace+"/web has a partition") {
		t.Error(out)
	}
	h.edit(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "web-2"}}
	if err := h.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+cluster.NeverReady+`":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := h.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: "web"}, h.native)
		return h.native.Status.ReadyReplicas == 2, err
	}); err != nil {
		t.Fatal(err)
	}
	if out := h.adopt(4, "web"); !strings.Contains(out, "blocked: StatefulSet "+h.namespace+"/web is not at rest") {
		t.Error(out)
	}
	h.adopt(1, "nothing")
	if h.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "web"}, h.native) != nil || h.native.DeletionTimestamp != nil {
		t.Errorf("%+v", h.native.ObjectMeta)
	}
}
