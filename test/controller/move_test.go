package controller_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// stop is a destination of a move, and the kind of the set there.
type stop struct {
	at        *cluster.Cluster
	namespace string
	kind      string // sts or stss
}

// set returns the set of this destination as an apps/v1 StatefulSet, or nil.
func (s stop) set(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	key := client.ObjectKey{Namespace: s.namespace, Name: "web"}
	if s.kind == "stss" {
		var o v1alpha1.StatefulSetSlice
		if err := connect(t, s.at).Get(t.Context(), key, &o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		} else if err != nil {
			return nil
		}
		return o.Native()
	}
	var o appsv1.StatefulSet
	if err := connect(t, s.at).Get(t.Context(), key, &o); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return &o
}

// disks returns the volume handles of the ordinals.
func (s stop) disks(t *testing.T) map[string]string {
	t.Helper()
	var claims corev1.PersistentVolumeClaimList
	if err := connect(t, s.at).List(t.Context(), &claims, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range claims.Items {
		var pv corev1.PersistentVolume
		if err := connect(t, s.at).Get(t.Context(), client.ObjectKey{Name: c.Spec.VolumeName}, &pv); err != nil {
			t.Fatal(err)
		}
		out[c.Name] = pv.Spec.CSI.VolumeHandle
	}
	return out
}

// tool runs stsmigrate.
func tool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), mover, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("stsmigrate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A set keeps the names of its pods and its disks, whatever its kind and its controller are on either side.
func TestSetsMoveBetweenTheKinds(t *testing.T) {
	t.Parallel()
	route := []stop{
		{bed.East, "kinds", "sts"},       // the built-in controller
		{bed.West, "kinds", "stss"},      // ours
		{bed.West, "kinds-next", "stss"}, // within a cluster
		{bed.West, "kinds-last", "sts"},  // ours, in place of the built-in one
		{bed.East, "kinds-last", "sts"},
		{bed.West, "kinds", "stss"},
	}
	for _, at := range []stop{route[0], route[1], route[2], route[3], route[4]} {
		err := connect(t, at.at).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at.namespace}})
		if client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	set := three()
	set.Namespace = route[0].namespace
	if err := connect(t, route[0].at).Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	first := watching(t, route[0])
	first.until(t, "three pods", first.has("web-1", "web-2", "web-3"))
	before := route[0].disks(t)
	budgetsKnowSlices(t)
	for k, to := range route[1:] {
		from := route[k]
		file := filepath.Join(t.TempDir(), "plan.yaml")
		reach := []string{"--kubeconfig", from.at.Kubeconfig, "--to-kubeconfig", to.at.Kubeconfig, "--to-namespace", to.namespace}
		tool(t, append([]string{"plan", from.kind + "/web", "-n", from.namespace, "--to-kind", to.kind, "--names", "none", "--out", file}, reach...)...)
		tool(t, append([]string{"apply", file, "--yes", "--step-timeout", "20s"}, reach[:4]...)...)
		tool(t, append([]string{"finalize", "web", "--yes"}, reach...)...)
		there := to.set(t)
		if there == nil || *there.Spec.Replicas != 3 || there.Spec.Ordinals.Start != 1 || there.Status.ReadyReplicas != 3 {
			t.Fatalf("move %d: there is %+v", k, there)
		}
		if left := from.set(t); left != nil {
			t.Errorf("move %d: the set is left: %+v", k, left)
		}
		if after := to.disks(t); !maps.Equal(before, after) {
			t.Errorf("move %d: the disks are %v, and were %v", k, after, before)
		}
	}
	last := watching(t, route[len(route)-1])
	if got := last.pods(t.Context()); !slices.Equal(got, []string{"web-1", "web-2", "web-3"}) {
		t.Errorf("the pods are %v", got)
	}
}

func watching(t *testing.T, at stop) *side {
	t.Helper()
	s := newSide(t, at.at, at.namespace)
	s.listen(t, &corev1.PodList{})
	return s
}

// three returns a set of three replicas from ordinal 1, with a claim.
func three() *appsv1.StatefulSet {
	n := int32(3)
	labels := map[string]string{"app": "web"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, Ordinals: &appsv1.StatefulSetOrdinals{Start: 1}, ServiceName: "web", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web", VolumeMounts: mountOf("data")}}}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claimOf("data")},
		},
	}
}
