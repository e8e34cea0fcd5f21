package slicecontroller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// lagging is a client whose reads come from a cache that the test keeps behind.
type lagging struct {
	client.Client // the API server
	cached        map[string]client.Object
	fill          func(...client.Object) client.Client
}

func (c lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.cache().Get(ctx, key, o, opts...)
	gvk, _ := c.GroupVersionKindFor(o)
	o.GetObjectKind().SetGroupVersionKind(gvk) // as a cache does
	return err
}

func (c lagging) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	return c.cache().List(ctx, l, opts...)
}

// catchUp copies an object from the API server into the cache.
func (c lagging) catchUp(t *testing.T, o client.Object) {
	t.Helper()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	c.cached[string(o.GetUID())] = o
}

func (c lagging) cache() client.Client { return c.fill(slices.Collect(maps.Values(c.cached))...) }

// rig is a Reconciler over such a client, with a set of two replicas.
type rig struct {
	*Reconciler
	lagging
	created, deleted []string
	uids             map[string]*types.UID // from the preconditions of the deletions
	clock            time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{uids: map[string]*types.UID{}, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	n := int32(2)
	labels := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1}, Spec: appsv1.StatefulSetSpec{
		Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	}}
	build := func() *fake.ClientBuilder {
		b := fake.NewClientBuilder().WithStatusSubresource(set)
		for _, i := range indexes() {
			b.WithIndex(i.of, i.name, i.values)
		}
		return b
	}
	g.lagging.Client = build().WithObjects(set.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID("uid-" + o.GetName()))
			if p, ok := o.(*corev1.Pod); ok {
				p.Status.Phase = corev1.PodPending // as an API server does
			}
			g.created = append(g.created, o.GetName())
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var d client.DeleteOptions
			d.ApplyOptions(opts)
			if d.Preconditions == nil || d.Preconditions.UID == nil {
				t.Errorf("AM-3: %s is deleted by its name", o.GetName())
			}
			g.deleted = append(g.deleted, o.GetName())
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	g.cached = map[string]client.Object{"set": set}
	set.ResourceVersion = "999"
	g.fill = func(all ...client.Object) client.Client {
		b := build()
		for _, o := range all {
			b.WithObjects(o.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // a copy of one
		}
		return b.Build()
	}
	g.Reconciler = &Reconciler{
		kind: native(core.Traits{}), client: g.lagging, live: g.lagging.Client, events: record.NewFakeRecorder(100), now: func() time.Time { return g.clock },
		ledger: newLedger(), gauges: newGauges(), memories: map[types.NamespacedName]*memory{},
	}
	return g
}

func (g *rig) pass(t *testing.T) reconcile.Result {
	t.Helper()
	r, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// skips returns how many passes were put off, over all resources.
func (g *rig) skips() (n float64) {
	for _, of := range [][]string{{"", "pods"}, {"", "persistentvolumeclaims"}, {"apps", "controllerrevisions"}, {"apps", "statefulsets"}} {
		n += testutil.ToFloat64(g.gauges.skips.WithLabelValues(of...))
	}
	return n
}

// SC-4: nothing is decided before the cache has the writes of this process.
func TestNothingIsDecidedBeforeOurOwnWritesAreSeen(t *testing.T) {
	g := newRig(t)
	g.pass(t)
	wrote := len(g.created)
	if wrote != 3 { // a revision and two pods
		t.Fatalf("created %v", g.created)
	}
	if r := g.pass(t); len(g.created) != wrote || g.skips() != 1 || r.RequeueAfter == 0 {
		t.Fatalf("created %v, %v skips, %+v", g.created, g.skips(), r)
	}
	var revisions appsv1.ControllerRevisionList
	if err := g.lagging.Client.List(t.Context(), &revisions); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	g.catchUp(t, set)
	for k, o := range []client.Object{&revisions.Items[0], set, pod("web-0"), pod("web-1")} {
		g.catchUp(t, o)
		if g.pass(t); g.skips() != float64(k+2) {
			t.Errorf("%d of 4 have not been told of, and %v passes were put off", 4-k, g.skips())
		}
		if key, settled := g.ledger.saw(o); settled != (k == 3) || key.Name != "web" {
			t.Errorf("%s of %s: settled %t", o.GetName(), key, settled)
		}
	}
	if g.pass(t); len(g.created) != wrote || g.skips() != 5 {
		t.Errorf("created %v, %v skips", g.created, g.skips())
	}
	if n := testutil.ToFloat64(g.gauges.skips.WithLabelValues("", "pods")); n == 0 { // the last one that was missing
		t.Error("it is not told that pods were missing")
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// A write whose end no watch shows does not block a set for ever.
func TestWhatTheWatchNeverShowsIsAskedFor(t *testing.T) {
	g := newRig(t)
	g.pass(t)
	if err := g.lagging.Client.Delete(t.Context(), pod("web-0"), client.Preconditions{UID: new(types.UID)}); err != nil {
		t.Fatal(err)
	}
	g.deleted = nil
	if g.pass(t); g.skips() != 1 {
		t.Errorf("%v skips", g.skips())
	}
	g.clock = g.clock.Add(uncachedWriteTimeout)
	wrote := len(g.created)
	if g.pass(t); len(g.created) != wrote {
		t.Errorf("created %v although the cache lacks what the API server has", g.created)
	}
	_, left := g.ledger.wait(types.NamespacedName{Namespace: "shop", Name: "web"}, "set", g.clock)
	for _, e := range left {
		if e.object.GetName() == "web-0" {
			t.Error("web-0 is gone and still waited for")
		}
	}
}

// While the API server does not answer, a write is waited for however long it is missing from the cache.
func TestAWriteThatNobodyConfirmsIsWaitedFor(t *testing.T) {
	g := newRig(t)
	g.pass(t)
	wrote := len(g.created)
	g.live = interceptor.NewClient(g.lagging.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // that of a rig
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	})
	g.clock = g.clock.Add(time.Hour)
	if r := g.pass(t); len(g.created) != wrote || r.RequeueAfter != uncachedWriteTimeout {
		t.Errorf("created %v, %+v", g.created, r)
	}
}

// SC-2: a deletion counts before the cache shows it.
func TestDeletionsAreRemembered(t *testing.T) {
	l := newLedger()
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	p := pod("web-0")
	p.UID, p.ResourceVersion = "a", "5"
	l.add(entry{set: "set", key: key, object: p, gone: true})
	seen := p.DeepCopy()
	seen.ResourceVersion = "9" // of a status that was written before
	if _, struck := l.saw(seen); struck {
		t.Error("a pod that is not terminating shows its deletion")
	}
	seen.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if _, struck := l.saw(seen); !struck || l.has(key) {
		t.Error("a terminating pod does not show its deletion")
	}
	l.add(entry{set: "set", key: key, object: p, gone: true})
	if _, struck := l.lost("a"); !struck {
		t.Error("a pod that is gone does not show its deletion")
	}
	l.add(entry{set: "former", key: key, object: p})
	if left, _ := l.wait(key, "set", time.Time{}); left {
		t.Errorf("SC-1: what was written for a namesake is waited for: %v", left)
	}
	l.add(entry{set: "set", key: key, object: p})
	for version, want := range map[string]bool{"4": false, "5": true, "10": true, "x": true} {
		l.add(entry{set: "set", key: key, object: p})
		o := p.DeepCopy()
		o.ResourceVersion = version
		if _, struck := l.saw(o); struck != want {
			t.Errorf("version %s shows what was written as 5: %t, expected %t", version, struck, want)
		}
	}
}

func (l *ledger) has(key types.NamespacedName) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.open[key] != nil
}

// No event wakes a set before the cache has everything that a pass waits for. The
// last missing object wakes it.
func TestASetSleepsUntilEverythingHasArrived(t *testing.T) {
	l := newLedger()
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	wrote := map[string]*corev1.Pod{}
	for _, name := range []string{"a", "b"} {
		wrote[name] = pod(name)
		wrote[name].UID, wrote[name].ResourceVersion = types.UID(name), "5"
		l.add(entry{set: "set", key: key, object: wrote[name]})
	}
	if l.awaited(key) {
		t.Error("nobody comes back for it yet")
	}
	if open, _ := l.wait(key, "set", time.Time{}); !open || !l.awaited(key) {
		t.Error("two writes are open")
	}
	if _, settled := l.saw(wrote["a"]); settled || !l.awaited(key) {
		t.Error("one write is open still")
	}
	if of, settled := l.saw(wrote["b"]); !settled || of != key || l.awaited(key) {
		t.Error("nothing is open any more")
	}
}

// told returns the events since its last call.
func (g *rig) told() []string {
	var out []string
	events, _ := g.events.(*record.FakeRecorder)
	for len(events.Events) > 0 {
		out = append(out, <-events.Events)
	}
	return out
}
