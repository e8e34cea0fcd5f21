package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

func twoClusterPlan() *plans.Plan {
	return &plans.Plan{
		Name: "web", Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web", Kind: plans.SliceKind},
	}
}

// Each set gets the Events of its plan in its own cluster, whatever its kind; an absent set gets none.
func TestBothSetsHearOfTheirPlan(t *testing.T) {
	p := twoClusterPlan()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.UID = "uid-a"
	slice := &v1alpha1.StatefulSetSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}}
	slice.UID = "uid-b"
	east := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set).Build()
	west := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(slice).Build()
	on := clusters.Clusters{plans.Source: east, plans.Destination: west}.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: p.Source, plans.Destination: p.Destination})
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := &EventWriter{plan: p, on: on, now: func() time.Time { return clock }}
	for _, side := range plans.Sides() {
		for range 2 { // the second time the set is gone
			if err := h.send(t.Context(), side, &regarded{}, Event{"Warning", "Blocked", "a volume is mounted elsewhere"}); err != nil {
				t.Fatal(err)
			}
			if err := client.IgnoreNotFound(on[side].Delete(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.On(side).Namespace, Name: "web"}})); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		on   client.Client
		want corev1.ObjectReference
	}{
		{east, corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "web", UID: "uid-a"}},
		{west, corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: "StatefulSetSlice", Namespace: "mall", Name: "web", UID: "uid-b"}},
	} {
		var list corev1.EventList
		if err := c.on.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
			t.Fatalf("%v, %d events", err, len(list.Items))
		}
		e := list.Items[0]
		if e.InvolvedObject != c.want || e.Namespace != c.want.Namespace || e.Reason != "Blocked" || e.Type != "Warning" || !e.LastTimestamp.Time.Equal(clock) {
			t.Errorf("%+v", e)
		}
	}
}

// Events that report progress read the set once. A warning names the set that is there now.
func TestEventsReadTheSetRarely(t *testing.T) {
	p := twoClusterPlan()
	reads := 0
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-a"}}
	east := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(set).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := &EventWriter{plan: p, on: clusters.Clusters{plans.Source: east}, now: func() time.Time { clock = clock.Add(time.Second); return clock }}
	about := &regarded{}
	send := func(kind string, want int) {
		t.Helper()
		reads = 0
		if err := h.send(t.Context(), plans.Source, about, Event{kind, "Moved", ""}); err != nil {
			t.Fatal(err)
		}
		if reads != want {
			t.Errorf("%d reads, expected %d", reads, want)
		}
	}
	send("Normal", 1)
	send("Normal", 0)
	clock = clock.Add(regardedFor)
	send("Normal", 1)
	if err := east.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := east.Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-b"}}); err != nil {
		t.Fatal(err)
	}
	send("Warning", 1)
	if about.uid != "uid-b" {
		t.Errorf("the warning is about %s, expected the set that is there", about.uid)
	}
}

// A cluster that does not answer, or refuses, blocks no caller and is reported once. The other side
// gets its Events all the same.
func TestNothingWaitsForEvents(t *testing.T) {
	p := twoClusterPlan()
	p.Destination.Kind = ""
	stuck := make(chan struct{})
	set := func(side plans.Side) client.WithWatch {
		o := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.On(side).Namespace, Name: "web"}}
		return fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(o).Build()
	}
	west := set(plans.Destination)
	east := interceptor.NewClient(set(plans.Source), interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		<-stuck
		return errors.New("forbidden")
	}})
	complaints := make(chan error, 100)
	var tick atomic.Int64
	h := NewEventWriter(t.Context(), p, clusters.Clusters{plans.Source: east, plans.Destination: west}, func() time.Time { return time.Unix(tick.Add(1), 0) }, func(err error) { complaints <- err })
	for range 10 * eventQueueSize {
		h.Write(Event{"Normal", "OrdinalArrived", "web-4"}) // returns, or the test hangs
	}
	h.Close()
	observed := func() int {
		var list corev1.EventList
		if err := west.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	for observed() < eventQueueSize {
		select {
		case <-t.Context().Done():
			t.Fatal("the other side hears nothing")
		case <-time.After(time.Millisecond):
		}
	}
	close(stuck)
	if err := <-complaints; err == nil {
		t.Error("nobody complains")
	}
	select {
	case err := <-complaints:
		t.Errorf("it complains again: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
}
