package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	p, err := slicerig.Begin(binary, installed.Kubeconfig, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	s := newSide(t, north, "outage")
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.listen(t, &corev1.PodList{}, &v1alpha1.StatefulSetSliceList{})
	return north, installed, p, s
}

// outage kills the API server for a time, which the controller must survive.
func outage(t *testing.T, c *cluster.Cluster, p *slicerig.Process, during time.Duration) {
	t.Helper()
	start, err := c.KillServer()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.Done:
		t.Fatalf("the controller ended: %v\n%s", err, p.Output())
	case <-time.After(during):
	}
	t.Cleanup(start())
}

// after waits for something after an outage. The watches of the test have ended with it.
func (s *side) after(t *testing.T, p *slicerig.Process, what string, is func(context.Context) bool) {
	t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for !is(t.Context()) {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within %s: %s\n%s", patience, what, p.Output())
		}
	}
}

// 2599-25: a pod whose minReadySeconds pass while the API server is down counts as soon as it is back: the time does
// not begin anew.
func TestTheTimeOfAPodPassesInAnOutage(t *testing.T) {
	t.Parallel()
	const ready = 20 * time.Second
	north, _, p, s := another(t, slicerig.Slice)
	if err := s.Create(t.Context(), s.written(t, "  replicas: 1\n  minReadySeconds: 20")); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the pod is ready, and does not count", func(ctx context.Context) bool {
		var o v1alpha1.StatefulSetSlice
		err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web"}, &o)
		return err == nil && o.Status.ReadyReplicas == 1 && o.Status.AvailableReplicas == 0
	})
	outage(t, north, p, ready)
	var list v1alpha1.StatefulSetSliceList
	s.after(t, p, "the API server answers", func(ctx context.Context) bool { return s.List(ctx, &list) == nil })
	back := time.Now()
	s.after(t, p, "the pod counts", func(ctx context.Context) bool { return s.isUpdated(ctx, 1) })
	if took := time.Since(back); took >= ready {
		t.Errorf("the pod counted %s after the API server was back: its time has begun anew", took)
	}
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
	outage(t, north, p, 5*time.Second) // long enough for requests to fail
	s.after(t, p, "the set is updated", func(ctx context.Context) bool { return s.isUpdated(ctx, 3) })
	for pod, uid := range s.uids(t) {
		if before[pod] == uid {
			t.Errorf("%s is still the old one", pod)
		}
	}
}
