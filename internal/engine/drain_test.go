package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestNodesAreBeingDrainedInMoreWaysThanOne(t *testing.T) {
	now := metav1.Now()
	taint := func(key string) corev1.Node {
		return corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}}}
	}
	for _, c := range []struct {
		name string
		node corev1.Node
		want bool
	}{
		{"nothing", corev1.Node{}, false},
		{"cordoned", corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}, true},
		{"being deleted", corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, true},
		{"Karpenter", taint("karpenter.sh/disrupted"), true},
		{"Karpenter before v1", taint("karpenter.sh/disruption"), true},
		{"cluster-autoscaler", taint("ToBeDeletedByClusterAutoscaler"), true},
		{"a thought of cluster-autoscaler", taint("DeletionCandidateOfClusterAutoscaler"), false},
		{"another taint", taint("gpu"), false},
	} {
		if got := sets.IsDrained(&c.node); got != c.want {
			t.Errorf("%s: %t, expected %t", c.name, got, c.want)
		}
	}
}

func TestTheUnitOfTheBudgetIsOfTheSideThatNeedsIt(t *testing.T) {
	exposed, down := sets.Need{Exposed: map[string]string{"web-0": "b"}}, sets.Need{Down: "web-1"}
	both := sets.Need{Exposed: exposed.Exposed, Down: "web-1"}
	for _, c := range []struct {
		name                string
		source, destination sets.Need
		turn, want          plans.Side
	}{
		{"nobody needs it", sets.Need{}, sets.Need{}, plans.Source, ""},
		{"a drain on the source", exposed, sets.Need{}, plans.Destination, plans.Source},
		{"a drain on the destination", sets.Need{}, exposed, plans.Source, plans.Destination},
		{"drains on both, by turns", exposed, exposed, plans.Source, plans.Source},
		{"drains on both, by turns", exposed, exposed, plans.Destination, plans.Destination},
		{"what is down comes first: it is all that may be", exposed, down, plans.Source, plans.Destination},
		{"what was evicted comes back before the other side is drained", down, exposed, plans.Destination, plans.Source},
		{"pods are down on both", both, down, plans.Destination, plans.Source},
	} {
		n := sets.Needs{plans.Source: c.source, plans.Destination: c.destination}
		if got := n.Most(c.turn); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}

// atWork returns an engine of a plan of web[0..2] with d, of which ordinal 2 has arrived, and the Relax of
// its wave. The pods are on the nodes a and b, of which b is being drained.
func atWork(t *testing.T, d int32, on map[string]string) (*Engine, plans.Step) {
	t.Helper()
	p := planstest.Named(t, "abc")
	p.MaxUnavailable = d
	j := journal.New(p)
	var relax plans.Step
	for seq := 1; relax.Op != plans.Relax; seq++ {
		relax, _ = p.Step(j.Leg, seq)
	}
	objects := []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{Unschedulable: true}},
	}
	for ns, slice := range map[string]plans.Slice{"shop": {Replicas: 2}, "mall": {Start: 2, Replicas: 1}} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web", UID: "set-of-all"}}
		set.Spec.Replicas, set.Spec.Ordinals = &slice.Replicas, &appsv1.StatefulSetOrdinals{Start: slice.Start}
		set.Spec.Template.Labels = map[string]string{"app": "web"}
		objects = append(objects, set)
	}
	for pod, node := range on {
		ns, name, _ := strings.Cut(pod, "/")
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set-of-all", Controller: new(true)}
		if !strings.HasPrefix(name, "web") {
			owner.UID = "other"
		}
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, OwnerReferences: []metav1.OwnerReference{owner}}, Spec: corev1.PodSpec{NodeName: node}}
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		objects = append(objects, made)
	}
	api := fake.NewClientBuilder().WithObjects(objects...).Build()
	e := New(p, records.NewStore(api, "mall", "web"), clusters.Clusters{plans.Source: api, plans.Destination: api})
	e.journal = j
	return e, relax
}

// atRest stores the journal of an engine whose last wave has arrived, and creates the budgets: the
// destination has the unit.
func atRest(t *testing.T, e *Engine, relax plans.Step) client.Client {
	t.Helper()
	e.epoch, e.journal.Epoch, e.journal.Begun, e.journal.Done = 1, 1, relax.Seq, relax.Seq
	if err := e.store.Create(t.Context(), e.plan, e.journal); err != nil {
		t.Fatal(err)
	}
	e.journal = nil
	if err := e.recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	api := e.on[plans.Source]
	for ns, spec := range map[string]policyv1.PodDisruptionBudgetSpec{"shop": {MinAvailable: &two}, "mall": {MaxUnavailable: &one}} {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web-stsmigrate"}, Spec: spec}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		e.observer.moment(e.journal, relax, true).Stamp.Put(b)
		if err := api.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return api
}

// unwatched is a client for an interceptor.
type unwatched struct{ client.Client }

func (unwatched) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("nothing is watched")
}

// Attend lets one side be drained for as long as that drain progresses, and then the other.
func TestAPlanAtRestLetsTheSidesBeDrainedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, relax := atWork(t, 1, map[string]string{"shop/web-0": "b", "shop/web-1": "a", "mall/web-2": "b"})
		api := unwatched{atRest(t, e, relax)}
		wake := clusters.NewChangeSignal()
		rings := interceptor.NewClient(api, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				defer wake.Notify(clusters.ObjectKey{Cluster: plans.Source, Kind: clusters.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()}, clusters.Change{Version: "?"})
				return c.Update(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				defer wake.Notify(clusters.ObjectKey{Cluster: plans.Source, Kind: clusters.KindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()}, clusters.Change{Version: "?"})
				return c.Patch(ctx, o, p, opts...)
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			New(e.plan, e.store, clusters.Clusters{plans.Source: rings, plans.Destination: rings}).Drains.Attend(ctx, wake, func(err error) { t.Error(err) })
			close(done)
		}()
		for _, want := range []plans.Side{plans.Source, plans.Destination, plans.Source} {
			<-time.After(drainIdleTimeout - minRecheck)
			if got, err := pdb.Holder(t.Context(), e.plan, e.on, relax); err != nil || got != want {
				t.Errorf("%q has the unit, %v, expected the %s", got, err, want)
			}
			<-time.After(3 * minRecheck)
		}
		cancel()
		<-done
		j, _, err := e.store.Journal(t.Context(), e.plan)
		if err != nil || j.Epoch != 2 {
			t.Errorf("the journal says epoch %d (%v), expected one takeover", j.Epoch, err)
		}
	})
}

// If both sides are drained, each of them has the unit for as long as an idle drain is waited for. The
// move continues after that.
func TestTheNextOrdinalWaitsForEitherSideInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, relax := atWork(t, 1, map[string]string{"shop/web-0": "b", "shop/web-1": "a", "mall/web-2": "b"})
		api := atRest(t, e, relax)
		one, two := intstr.FromInt32(1), intstr.FromInt32(2)
		var told []string
		began, wake := time.Now(), clusters.NewChangeSignal() //nolint:forbidigo // the clock of the bubble
		r := &run{Engine: e, deadline: time.NewTimer(time.Hour), Options: Options{Wake: wake, Report: func(p Progress, _ error) {
			told = append(told, p.Reason)
			for _, ns := range []string{"shop", "mall"} { // its own writes are changes as well
				wake.Notify(clusters.ObjectKey{Cluster: plans.Source, Kind: "PodDisruptionBudget", Namespace: ns, Name: "web-stsmigrate"}, clusters.Change{Version: "?"})
			}
		}}}
		r.yield(t.Context(), relax)
		waited := time.Since(began)
		var here, there policyv1.PodDisruptionBudget
		for ns, b := range map[string]*policyv1.PodDisruptionBudget{"shop": &here, "mall": &there} {
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web-stsmigrate"}, b); err != nil {
				t.Fatal(err)
			}
		}
		turns := strings.Count(strings.Join(told, "\n"), "are let through, and after them those of")
		if waited < 2*drainIdleTimeout || waited > 2*drainIdleTimeout+6*minRecheck || turns != 2 || *here.Spec.MinAvailable != two || *there.Spec.MaxUnavailable != one {
			t.Errorf("it waited %s, for %d sides (%v, %v):\n%s", waited, turns, here.Spec, there.Spec, strings.Join(told, "\n"))
		}
	})
}

// While a drain goes first, whoever looks at the plan from elsewhere sees why the next ordinal waits. Afterwards nobody does,
// and nobody does either when the process has gone.
func TestADrainThatGoesFirstIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, relax := atWork(t, 1, map[string]string{"shop/web-0": "b", "shop/web-1": "a", "mall/web-2": "a"})
		atRest(t, e, relax)
		var shown atomic.Int32
		r := &run{Engine: e, deadline: time.NewTimer(time.Hour), Options: Options{Wake: clusters.NewChangeSignal(), Report: func(Progress, error) {}}}
		go func() {
			<-time.After(drainIdleTimeout / 2)
			for holder, want := range map[string]reasons.ID{"me": reasons.DrainFirst, "": ""} {
				if id, why := stored(t, e).Shown(holder); id != want || (why != "") != (want != "") {
					t.Errorf("while it waits, with the process %q: %s, %q", holder, id, why)
				}
				shown.Add(1)
			}
		}()
		r.yield(t.Context(), relax)
		if shown.Load() != 2 || e.telling {
			t.Errorf("looked at %d times; it still tells: %t", shown.Load(), e.telling)
		}
		if e.journal == nil {
			if err := e.recall(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if e.told(); e.journal.Waiting != "" {
			t.Errorf("afterwards: %q", e.journal.Waiting)
		}
	})
}

func TestTheNextOrdinalWaitsForDrainedNodes(t *testing.T) {
	for _, c := range []struct {
		name string
		d    int32
		on   map[string]string // pod: node
		want string
	}{
		{name: "none of the set is on it", d: 1, on: map[string]string{"shop/web-0": "a", "shop/web-1": "a", "mall/web-2": "a", "shop/other-0": "b"}},
		{name: "the pod that leaves next is", d: 1, on: map[string]string{"shop/web-0": "a", "shop/web-1": "b", "mall/web-2": "a"}},
		{name: "one on the source is", d: 1, on: map[string]string{"shop/web-0": "b", "shop/web-1": "a", "mall/web-2": "a"}, want: "evictions of web-0 (node b) are let through"},
		{name: "one that has arrived is", d: 1, on: map[string]string{"shop/web-0": "a", "shop/web-1": "a", "mall/web-2": "b"}, want: "evictions of web-2 (node b) are let through"},
		{name: "one on each side is", d: 1, on: map[string]string{"shop/web-0": "b", "shop/web-1": "a", "mall/web-2": "b"}, want: "evictions of web-0 (node b) are let through, and after them those of web-2 (node b)"},
		{name: "another is down", d: 1, on: map[string]string{"shop/web-1": "a", "mall/web-2": "b"}, want: "evictions of web-2 (node b) are let through when pod web-0 of the source is ready"},
		{name: "both budgets are open", d: 2, on: map[string]string{"shop/web-0": "b", "shop/web-1": "a", "mall/web-2": "b"}, want: "evictions of web-0 (node b), web-2 (node b) are let through"},
	} {
		t.Run(fmt.Sprintf("d = %d, %s", c.d, c.name), func(t *testing.T) {
			e, relax := atWork(t, c.d, c.on)
			e.way.from, e.way.leave = plans.Source, plans.Slice{Start: 1, Replicas: 1}
			if _, err := e.way.needs(sets.Steps{Pair: clusters.Pair{Plan: e.plan, On: e.on}})(t.Context()); err != nil {
				t.Fatal(err)
			}
			why := e.Drains.letThrough(relax)
			if (why != "") != (c.want != "") || !strings.HasSuffix(why, c.want) {
				t.Errorf("%q, expected %q", why, c.want)
			}
		})
	}
}
