package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// Users need the status most when a cluster does not answer.
func TestTheStatusShowsWhatCanBeSeen(t *testing.T) {
	p := &plans.Plan{
		APIVersion: plans.APIVersion, Kind: plans.PlanKind, Name: "web", ID: "web-abc", Count: 3, MaxUnavailable: 1, Window: 1,
		Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "shop", Name: "web"},
		Budget: plans.Budget{Source: "web", Destination: "web"},
	}
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "stsmigrate", p.Name)
	j := journal.New(p)
	j.Epoch, j.Detached = 1, true
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	away := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("connection refused")
	}}
	source, destination := slice(0, 2), slice(2, 1)
	for name, c := range map[string]struct {
		on     clusters.Clusters
		lost   map[plans.Side]error
		want   [3]OrdinalView // of web-2, web-1 and web-0
		unseen []plans.Side
	}{
		"all of it": {clusters.Clusters{plans.Source: source, plans.Destination: destination}, nil, [3]OrdinalView{
			{Source: "-", Destination: "Ready", Phase: "moved"}, {Source: "Ready", Destination: "-", Phase: "on the source"}, {Source: "Ready", Destination: "-", Phase: "on the source"},
		}, nil},
		"a source that is not reached": {clusters.Clusters{plans.Destination: destination}, map[plans.Side]error{plans.Source: errors.New("no context east")}, [3]OrdinalView{
			{Source: "?", Destination: "Ready", Phase: "moved"}, {Source: "?", Destination: "-", Phase: "on the source"}, {Source: "?", Destination: "-", Phase: "on the source"},
		}, []plans.Side{plans.Source}},
		"a destination that does not answer": {clusters.Clusters{plans.Source: source, plans.Destination: interceptor.NewClient(destination, away)}, nil, [3]OrdinalView{
			{Source: "-", Destination: "?", Phase: "moved"}, {Source: "Ready", Destination: "?", Phase: "on the source"}, {Source: "Ready", Destination: "?", Phase: "on the source"},
		}, []plans.Side{plans.Destination}},
		"neither": {clusters.Clusters{}, map[plans.Side]error{plans.Source: errors.New("no"), plans.Destination: errors.New("no")}, [3]OrdinalView{
			{Source: "?", Destination: "?", Phase: "?"}, {Source: "?", Destination: "?", Phase: "?"}, {Source: "?", Destination: "?", Phase: "?"},
		}, plans.Sides()},
	} {
		v, err := Status(t.Context(), p, store, c.on, c.lost, clock, func(verb string) string { return verb })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for k, want := range c.want {
			if got := v.Ordinals[k]; got.Source != want.Source || got.Destination != want.Destination || k > 0 && got.Phase != want.Phase {
				t.Errorf("%s: %+v, expected %+v", name, got, want)
			}
		}
		if v.State != "Waiting" {
			t.Errorf("%s: %s, expected Waiting", name, v.State)
		}
		if known := v.Unavailable != nil && *v.Unavailable == 0; known != (len(c.unseen) == 0) {
			t.Errorf("%s: %v are unavailable; expected 0 if both sides were seen, else nothing", name, v.Unavailable)
		}
		if got := slices.Sorted(maps.Keys(v.Unseen)); !slices.Equal(got, slices.Sorted(slices.Values(c.unseen))) {
			t.Errorf("%s: unseen are %v, expected %v", name, got, c.unseen)
		}
		if slices.Contains(slices.Collect(maps.Values(v.Unseen)), "") {
			t.Errorf("%s: it is not said why: %v", name, v.Unseen)
		}
	}
}

// What keeps every process away from a plan, such as a Secret with another cluster, has to be mended before what its wave
// waits for counts. A process that has the plan sees the latter itself.
func TestTheStatusSaysWhatKeepsEveryProcessAway(t *testing.T) {
	p := planstest.Named(t, "abc")
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "stsmigrate", p.Name)
	j := journal.New(p)
	j.Epoch, j.Detached, j.WaitingID, j.Waiting = 1, true, reasons.ClusterNotReached, "cluster east has another UID"
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	on := clusters.Clusters{plans.Source: slice(0, 3), plans.Destination: slice(3, 0)}
	for _, holder := range []string{"", "a/1"} {
		if holder != "" {
			if _, err := store.Acquire(t.Context(), holder, func(string) bool { return false }, planstest.Noon); err != nil {
				t.Fatal(err)
			}
		}
		v, err := Status(t.Context(), p, store, on, nil, planstest.Noon, func(verb string) string { return verb })
		if err != nil {
			t.Fatal(err)
		}
		if v.Reason == "" || v.Holder != holder || (v.Reason == j.Waiting && v.ReasonID == j.WaitingID) != (holder == "") {
			t.Errorf("holder %q: %s [%s]", v.Holder, v.Reason, v.ReasonID)
		}
	}
}

// Of a plan that no process has begun, only the status of its object says what keeps it, such as a quota.
func TestTheStatusSaysWhatKeepsAPlanFromBeginning(t *testing.T) {
	p := planstest.Named(t, "abc")
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "stsmigrate", p.Name)
	if err := store.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	const why = "exceeded quota: full"
	o := records.NewDeclared("stsmigrate", p.Name)
	o.Object["spec"], o.Object["status"] = map[string]any{"source": map[string]any{"namespace": "shop", "name": "web"}}, map[string]any{"message": why}
	if err := home.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	lost := map[plans.Side]error{plans.Source: errors.New("no context"), plans.Destination: errors.New("no context")}
	v, err := Status(t.Context(), p, store, clusters.Clusters{}, lost, planstest.Noon, func(verb string) string { return verb })
	if err != nil || v.State != "Planned" || v.Reason != why {
		t.Errorf("%+v, %v", v, err)
	}
}

// The application may have moved on since. A plan that has ended does not count what is unavailable then.
func TestAPlanThatHasEndedCountsNothingThatHasMovedOn(t *testing.T) {
	p := &plans.Plan{
		APIVersion: plans.APIVersion, Kind: plans.PlanKind, Name: "web", ID: "web-abc", Count: 2, MaxUnavailable: 1, Window: 1,
		Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "shop", Name: "web"},
	}
	nothing := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	for name, c := range map[string]struct {
		outcome             plans.Outcome
		source, destination client.WithWatch
		phase               string
		counted             bool
	}{
		"it is where it was left":         {plans.Finalized, nothing, slice(0, 2), "moved", true},
		"it was moved back":               {plans.Finalized, slice(0, 2), nothing, "moved", false},
		"another plan moves it":           {plans.Finalized, slice(0, 1), slice(1, 1), "moved", false},
		"aborted, and left where it was":  {plans.Aborted, slice(0, 2), nothing, "on the source", true},
		"aborted, and moved by a new one": {plans.Aborted, nothing, slice(0, 2), "on the source", false},
	} {
		j := journal.New(p)
		j.Outcome = c.outcome
		v := &View{}
		v.ordinals(t.Context(), clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: c.source, plans.Destination: c.destination}}, nil, j, plans.Step{})
		if counted := v.Unavailable != nil && *v.Unavailable == 0; counted != c.counted || (v.Next == "") != c.counted {
			t.Errorf("%s: unavailable %v, next %q", name, v.Unavailable, v.Next)
		}
		for _, o := range v.Ordinals {
			if o.Phase != c.phase {
				t.Errorf("%s: ordinal %d is %q, expected %q", name, o.Ordinal, o.Phase, c.phase)
			}
		}
	}
}

// slice returns a client of a cluster with these ordinals of a set, all ready.
func slice(start, replicas int32) client.WithWatch {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set"}}
	set.Spec.Replicas, set.Spec.Ordinals = &replicas, &appsv1.StatefulSetOrdinals{Start: start}
	objects := []client.Object{set}
	for o := start; o < start+replicas; o++ {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", o), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
		pod.Spec.NodeName = "node"
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		objects = append(objects, pod)
	}
	return fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(objects...).Build()
}

// A wave that is away, and that nothing in the clusters keeps, has a process that is refused something. The status says
// so after a while.
func TestTheStatusSaysThatAProcessGetsNoFurther(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		look   plans.Observation
		holder string
		after  time.Duration
		want   reasons.ID
	}{
		"a write is not there":             {plans.Observation{}, "a/1", time.Minute, reasons.WriteNotTaken},
		"it was seen, and not recorded":    {plans.Observation{Standing: plans.After}, "a/1", time.Minute, reasons.WriteNotTaken},
		"a write was only just decided":    {plans.Observation{}, "a/1", time.Second, ""},
		"no process carries the plan out":  {plans.Observation{}, "", time.Minute, ""},
		"the clusters show what keeps it":  {plans.Wait(reasons.PodTerminating, "pod web-0"), "a/1", time.Minute, reasons.PodTerminating},
		"the clusters could not be read":   {plans.Observation{Standing: plans.During}, "a/1", time.Minute, ""},
		"the clock of the process is late": {plans.Observation{}, "a/1", -time.Minute, ""},
	} {
		j := &journal.Journal{Stopwatch: &journal.Stopwatch{Since: metav1.MicroTime{Time: began}}}
		if got := refused(j, c.look, true, c.holder, began.Add(c.after)); got.ID != c.want {
			t.Errorf("%s: %q, expected %q", name, got.ID, c.want)
		}
	}
}

// The ordinals of the wave under way show what is done with them, and no others do.
func TestAnOrdinalOfTheWaveShowsItsStep(t *testing.T) {
	row := OrdinalView{Source: "Ready", Destination: "-"}
	for _, c := range []struct {
		op      plans.Op
		ordinal int32
		want    string
	}{{plans.Shrink, 4, "Shrink"}, {plans.Shrink, 3, phaseOn(plans.Source)}} {
		if got := phase(row, plans.Step{Op: c.op, Ordinals: plans.Slice{Start: 4, Replicas: 1}}, c.ordinal); got != c.want {
			t.Errorf("%s, ordinal %d: %q, expected %q", c.op, c.ordinal, got, c.want)
		}
	}
}
