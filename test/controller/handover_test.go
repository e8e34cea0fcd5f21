package controller_test

import (
	"context"
	"os/exec"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

// builtIn runs only the built-in controller for a cluster, until end is called.
func builtIn(t *testing.T, c *cluster.Cluster) (end func()) {
	t.Helper()
	program, err := cluster.Program(t.Context(), "kube-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--controllers=statefulset-controller", "--kubeconfig", c.Kubeconfig, "--leader-elect=false", "--secure-port=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
}

// A running set is handed from our controller to the built-in one and back: no pod restarts, and each
// controller carries out the next change.
func TestASetGoesFromOneControllerToTheOther(t *testing.T) {
	t.Parallel()
	north, installed, p, s := another(t, slicerig.Native)
	s.listen(t, &appsv1.StatefulSetList{})
	set := three()
	set.Namespace = s.namespace
	set.Spec.VolumeClaimTemplates, set.Spec.Template.Spec.Containers[0].VolumeMounts = nil, nil // there is no volume provisioner in that cluster
	if err := s.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	rests := func(n int32) {
		t.Helper()
		s.until(t, "the set rests", func(ctx context.Context) bool {
			err := s.Get(ctx, client.ObjectKeyFromObject(set), set)
			st := set.Status
			return err == nil && st.ObservedGeneration == set.Generation && st.AvailableReplicas == n && st.Replicas == n && st.UpdatedReplicas == n && st.CurrentRevision == st.UpdateRevision
		})
	}
	scale := func(n int32) {
		t.Helper()
		before := set.DeepCopy()
		set.Spec.Replicas = &n
		if err := s.Patch(t.Context(), set, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		rests(n)
	}
	rests(3)
	first, revision := s.uids(t), set.Status.UpdateRevision
	p.Kill()
	end := builtIn(t, north)
	scale(4)
	end()
	begin(t, installed.Kubeconfig, slicerig.Native)
	scale(3)
	if err := s.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web-3"}}); err != nil {
		t.Fatal(err)
	}
	s.until(t, "it is made again", func(ctx context.Context) bool {
		return s.has("web-1", "web-2", "web-3")(ctx) && s.uids(t)["web-3"] != first["web-3"]
	})
	for _, pod := range []string{"web-1", "web-2"} {
		if s.uids(t)[pod] != first[pod] {
			t.Errorf("%s was made anew", pod)
		}
	}
	if set.Status.UpdateRevision != revision {
		t.Errorf("revision %s became %s", revision, set.Status.UpdateRevision)
	}
}
