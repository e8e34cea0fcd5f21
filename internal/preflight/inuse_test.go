package preflight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
)

// theirs is a set of another team with the name of ours, with two Ready pods and their claims.
func theirs() (set *appsv1.StatefulSet, all []client.Object) {
	replicas := int32(2)
	set = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "mall", Name: "web", UID: "theirs", CreationTimestamp: metav1.Date(2026, 5, 4, 8, 15, 0, 0, time.UTC),
		Annotations: map[string]string{"meta.helm.sh/release-name": "orders"},
	}}
	set.Spec.Replicas = &replicas
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "registry.example/orders:7"}}
	all = append(all, set)
	for o := range 2 {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: fmt.Sprintf("data-web-%d", o), UID: types.UID(fmt.Sprint("c", o))}}
		claim.Spec.VolumeName, claim.Status.Phase = "theirs", corev1.ClaimBound
		pod := podOf(fmt.Sprintf("web-%d", o), corev1.ConditionTrue, claim.Name)
		pod.Namespace, pod.OwnerReferences[0].UID = "mall", "theirs"
		pod.Spec.Containers = set.Spec.Template.Spec.Containers
		all = append(all, claim, pod)
	}
	return set, all
}

// Somebody's set in the place of ours means that the place is wrong. It is one finding, which says what is there, and no
// remedy is to scale it down or to delete any of it.
func TestWhatIsInUseIsNeverToBeDeleted(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	set, all := theirs()
	idle := all[1].DeepCopyObject().(client.Object)
	over := podOf("web-0", corev1.ConditionFalse)
	over.Namespace, over.Status.Phase = "mall", corev1.PodSucceeded
	for name, c := range map[string]struct {
		there    []client.Object
		existing *appsv1.StatefulSet
		midway   bool
		want     []string
		deletes  bool // what has ended, or what nobody uses
	}{
		"a set that serves":         {all, set, false, []string{"FAIL ...StatefulSet mall/web...has the ordinals [0..1]...2 of its 2 pods are Ready...registry.example/orders:7...made 2026-05-04 08:15 UTC, of the Helm release orders...the wrong cluster or namespace"}, false},
		"its pods and claims alone": {all[1:], nil, false, []string{"FAIL ...pod mall/web-0...it is Ready (registry.example/orders:7; of StatefulSet web)...the wrong cluster", "FAIL ...claim mall/data-web-0...bound to volume theirs...pod web-0 mounts it...the wrong cluster", "FAIL ...pod mall/web-1", "FAIL ...claim mall/data-web-1"}, false},
		"in mid-move":               {all[1:3], nil, true, []string{"FAIL ...pod mall/web-0...find out whose it is", "FAIL ...claim mall/data-web-0...pod web-0 mounts it...find out whose it is"}, false},
		"a claim that nobody uses":  {[]client.Object{idle}, nil, false, []string{"FAIL ...claim mall/data-web-0...bound to volume theirs...is this the cluster and the namespace that you mean? Ask its owner...Only if the data is needed no more, delete the claim"}, true},
		"a pod that has ended":      {[]client.Object{over}, nil, false, []string{"FAIL ...pod mall/web-0...delete the pod, which has ended"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{nfs, nfs}, There: c.there}.Inspected(t)
			i.Midway, i.Now.Existing = c.midway, c.existing
			found, err := DestinationFree(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
			for _, f := range found {
				if says := strings.Contains(f.Remedy, "delete the"); says != c.deletes {
					t.Errorf("it says to delete something: %t, expected %t: %s", says, c.deletes, f.Remedy)
				}
				if strings.Contains(f.Remedy, "scale it") {
					t.Errorf("it says to scale down what is in use: %s", f.Remedy)
				}
			}
		})
	}
}
