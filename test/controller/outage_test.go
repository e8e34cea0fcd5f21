package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/slicerig"
)

// another starts a cluster with a process for a kind, and creates a namespace in it.
func another(t *testing.T, kind string) (*cluster.Cluster, *slicerig.Installed, *slicerig.Process, *side) {
	t.Helper()
	north, err := cluster.Start(t.Context(), "north", cluster.Options{PodStart: podStart, PodStop: podStop, Unmanaged: []string{"north"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := north.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	installed, err := slicerig.Install(t.Context(), north, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := begin(t, installed.Kubeconfig, kind)
	s := newSide(t, north, "outage")
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.listen(t, &corev1.PodList{}, &v1alpha1.StatefulSetSliceList{})
	return north, installed, p, s
}

// 961-53, 2599-25, 3541-48, 3335-60: while the API server is down nothing happens. Then the
// update continues where it stopped.
func TestAnUpdateGoesOnAfterAnOutage(t *testing.T) {
	t.Parallel()
	north, _, p, s := another(t, slicerig.Slice)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 3\n  minReadySeconds: 1")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 3)
	before := s.uids(t)
	s.template(t, "a", `"b"`)
	s.until(t, "the first pod goes", func(context.Context) bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		return len(s.trace) > 3
	})
	start, err := north.KillServer()
	if err != nil {
		t.Fatal(err)
	}
	select { // long enough for requests to fail
	case err := <-p.Done:
		t.Fatalf("the controller ended: %v\n%s", err, p.Output())
	case <-time.After(5 * time.Second):
	}
	t.Cleanup(start())
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(quiet) // the watches of the test have ended as well
	defer tick.Stop()
	for !s.isUpdated(t.Context(), 3) {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not updated within %s\n%s", patience, p.Output())
		}
	}
	for pod, uid := range s.uids(t) {
		if before[pod] == uid {
			t.Errorf("%s is still the old one", pod)
		}
	}
}
