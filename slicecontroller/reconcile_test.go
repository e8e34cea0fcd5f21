package slicecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

func web() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "web"} }

// delays is a queue that records what is added, and after which delay.
type delays struct {
	queue
	after []time.Duration
	added []types.NamespacedName
}

func (q *delays) AddAfter(_ reconcile.Request, d time.Duration) { q.after = append(q.after, d) }
func (q *delays) Add(r reconcile.Request)                       { q.added = append(q.added, r.NamespacedName) }

// A set is requeued for the time when a pod becomes available, even if the pass failed (SY-5, 2599-12). A
// cache that is behind hides no other error.
func TestAPassThatFailsForgetsNothing(t *testing.T) {
	g := newRig(t)
	full := errors.New("exceeded quota")
	behind := fmt.Errorf("%w pod web-1", core.ErrBehind)
	for name, c := range map[string]struct {
		err    error
		due    time.Duration
		want   time.Duration
		queued []time.Duration
		fails  bool
	}{
		"all is well":                 {nil, 0, 0, nil, false},
		"a pod is due":                {nil, 6 * time.Second, 6 * time.Second, nil, false},
		"a pod is due, and something": {full, 6 * time.Second, 0, []time.Duration{6 * time.Second}, true},
		"something has failed":        {full, 0, 0, nil, true},
		"the cache is behind":         {behind, 0, uncachedWriteTimeout, nil, false},
		"behind, and a pod is due":    {behind, time.Second, time.Second, nil, false},
		"behind, and something":       {errors.Join(errors.Join(behind, full), behind), 0, 0, nil, true},
		"behind twice":                {errors.Join(errors.Join(behind, nil), behind), 0, uncachedWriteTimeout, nil, false},
	} {
		q := &delays{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
		g.queue = q
		outcome := core.Outcome{}
		if c.due > 0 {
			outcome.Again = g.clock.Add(c.due)
		}
		got, err := g.after(t.Context(), reconcile.Request{NamespacedName: web()}, outcome, c.err)
		if got.RequeueAfter != c.want || fmt.Sprint(q.after) != fmt.Sprint(c.queued) || (err != nil) != c.fails || errors.Is(err, core.ErrBehind) {
			t.Errorf("%s: in %s, queued %v, error %v", name, got.RequeueAfter, q.after, err)
		}
	}
}

// does returns the effects of a rig, for its set as the cache has it.
func (g *rig) does(t *testing.T) effects {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := g.lagging.Get(t.Context(), web(), set); err != nil {
		t.Fatal(err)
	}
	return effects{g.Reconciler, web(), set}
}

// Only the changes to a pod or claim are sent: the fields of a later Kubernetes stay. A change that another
// writer made meanwhile is not overwritten.
func TestOnlyWhatHasChangedIsSent(t *testing.T) {
	g := newRig(t)
	var sent []string
	was := g.lagging.Client
	g.lagging.Client = interceptor.NewClient(was.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // that of a rig
		Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
			t.Errorf("all of %s is sent", o.GetName())
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			raw, err := p.Data(o)
			sent = append(sent, fmt.Sprintf("%s %s", p.Type(), raw))
			return errors.Join(err, c.Patch(ctx, o, p, opts...))
		},
	})
	g.Reconciler.client = g.lagging
	p := pod("web-0")
	p.UID, p.Spec.NodeName = "a", "node"
	if err := was.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	g.catchUp(t, p)
	next := p.DeepCopy()
	next.Labels = map[string]string{"a": "b"}
	do := g.does(t)
	if err := do.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if want := `application/merge-patch+json {"metadata":{"labels":{"a":"b"},"resourceVersion":"1"}}`; len(sent) != 1 || sent[0] != want {
		t.Errorf("sent %q, expected %q", sent, want)
	}
	next = p.DeepCopy() // as it was before
	next.Labels = map[string]string{"a": "c"}
	if err := do.Update(t.Context(), next); !apierrors.IsConflict(err) {
		t.Errorf("written over what has changed: %v", err)
	}
	now := pod("web-0")
	if err := do.Read(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	now.Labels = map[string]string{"a": "d"}
	if err := do.Update(t.Context(), now); err != nil || len(sent) != 3 || !strings.Contains(sent[2], `"a":"d"`) {
		t.Errorf("what was read beside a cache that is behind: sent %q: %v", sent, err)
	}
	g.catchUp(t, pod("web-0"))
	if err := do.Update(t.Context(), next); !apierrors.IsConflict(err) || len(sent) != 3 {
		t.Errorf("sent %q: %v", sent, err)
	}
}

// counts makes the live reads of a rig count.
func (g *rig) counts(reads *int) {
	g.live = interceptor.NewClient(g.lagging.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // that of a rig
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
}

// asOf lets the API server of a rig have a generation of the set, and lets both have a pod.
func (g *rig) asOf(t *testing.T, generation int64, name string) *corev1.Pod {
	t.Helper()
	set := g.stored(t)
	set.Generation = generation
	p := pod(name)
	p.UID = types.UID(name)
	if err := errors.Join(g.lagging.Client.Update(t.Context(), set), client.IgnoreAlreadyExists(g.lagging.Client.Create(t.Context(), p))); err != nil {
		t.Fatal(err)
	}
	return p
}

// No pod outside the range is deleted BEFORE the pass has confirmed the range with the API server: the cache may have
// pods that are newer than the set, in a process that just started, or while the watch of the sets stalls.
func TestTheRangeIsAskedForBeforeAPodOutsideItGoes(t *testing.T) {
	g := newRig(t)
	reads := 0
	g.counts(&reads)
	there := func(generation int64, name string) error {
		p := g.asOf(t, generation, name)
		return g.does(t).Delete(t.Context(), p)
	}
	if err := there(2, "web-2"); !errors.Is(err, core.ErrBehind) || len(g.deleted) != 0 {
		t.Errorf("deleted %v by a range of before: %v", g.deleted, err)
	}
	if err := there(1, "web-2"); err != nil || len(g.deleted) != 1 || reads != 2 {
		t.Errorf("deleted %v with %d reads: %v", g.deleted, reads, err)
	}
	if err := there(2, "web-3"); !errors.Is(err, core.ErrBehind) || len(g.deleted) != 1 {
		t.Errorf("deleted %v by a range that a former pass has confirmed: %v", g.deleted, err)
	}
	pass := g.does(t)
	for _, name := range []string{"web-4", "web-5", "web-0"} {
		if err := pass.Delete(t.Context(), g.asOf(t, 1, name)); err != nil || reads != 4 {
			t.Errorf("%s: asked %d times: %v", name, reads, err)
		}
	}
}

// A new process may have an old set beside new pods, and then knows an old template only. So it deletes and evicts no
// pod of the range BEFORE it has once compared the set with the API server.
func TestTheTemplateIsAskedForBeforeAPodOfTheRangeGoes(t *testing.T) {
	for name, remove := range map[string]func(effects, *corev1.Pod) error{
		"Delete": func(e effects, p *corev1.Pod) error { return e.Delete(t.Context(), p) },
		"Evict":  func(e effects, p *corev1.Pod) error { return e.Evict(t.Context(), p) },
	} {
		g := newRig(t)
		reads, evicted := 0, 0
		g.counts(&reads)
		g.evictions = evictions(t, &evicted)
		if err := remove(g.does(t), g.asOf(t, 2, "web-1")); !errors.Is(err, core.ErrBehind) || len(g.deleted)+evicted != 0 {
			t.Errorf("%s: deleted %v, evicted %d by a template of before: %v", name, g.deleted, evicted, err)
		}
		for range 2 {
			if err := remove(g.does(t), g.asOf(t, 1, "web-1")); client.IgnoreNotFound(err) != nil || reads != 2 {
				t.Errorf("%s: asked %d times: %v", name, reads, err)
			}
		}
		if len(g.deleted)+evicted != 2 {
			t.Errorf("%s: deleted %v, evicted %d", name, g.deleted, evicted)
		}
	}
}

// observed lets a controller have looked at the set.
func (g *rig) observed(t *testing.T) {
	t.Helper()
	set := g.stored(t)
	set.Status.ObservedGeneration = 1
	if err := g.lagging.Client.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	g.catchUp(t, set)
}

// A new process may have an old set beside new pods: an ordinal that has left its range may run elsewhere by now. So it
// creates no pod and no claim BEFORE it has once compared the set with the API server. A set that no controller has
// looked at has given up none, and costs no request.
func TestTheRangeIsAskedForBeforeAPodIsCreated(t *testing.T) {
	for name, of := range map[string]func(string) client.Object{
		"a pod": func(name string) client.Object { return pod(name) },
		"a claim": func(name string) client.Object {
			return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		},
	} {
		g := newRig(t)
		reads := 0
		g.counts(&reads)
		g.observed(t)
		g.asOf(t, 2, "web-0")
		if err := g.does(t).Create(t.Context(), of("web-1")); !errors.Is(err, core.ErrBehind) || reads != 1 {
			t.Errorf("%s is created by a range of before: %v", name, err)
		}
		g.asOf(t, 1, "web-0")
		for _, next := range []string{"web-1", "web-2"} {
			if err := g.does(t).Create(t.Context(), of(next)); err != nil || reads != 2 {
				t.Errorf("%s: asked %d times: %v", name, reads, err)
			}
		}
		g = newRig(t)
		reads = 0
		g.counts(&reads)
		if err := g.does(t).Create(t.Context(), of("web-1")); err != nil || reads != 0 {
			t.Errorf("%s of a set that nobody has looked at: asked %d times: %v", name, reads, err)
		}
		g.observed(t)
		if err := g.does(t).Create(t.Context(), of("web-2")); err != nil || reads != 0 {
			t.Errorf("%s, later: asked %d times: %v", name, reads, err)
		}
	}
}

// A set is woken by its pods in whatever version of its kind they refer to it, and by the deletion
// of a pod that was in its way.
func TestWhoIsWoken(t *testing.T) {
	yes := true
	owned := func(name, version, kind, owner string) *corev1.Pod {
		p := pod(name)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner, UID: "set", Controller: &yes}}
		return p
	}
	for name, c := range map[string]struct {
		pod         *corev1.Pod
		there, gone string
	}{
		"its pod":                     {owned("web-0", "apps/v1", "StatefulSet", "web"), "web", "web"},
		"by another version":          {owned("web-0", "apps/v1beta2", "StatefulSet", "web"), "web", "web"},
		"of another group":            {owned("x", "apps.example.com/v1", "StatefulSet", "web"), "", ""},
		"of another kind":             {owned("x", "apps/v1", "ReplicaSet", "web"), "", ""},
		"somebody else's, in its way": {owned("web-1", "apps/v1", "ReplicaSet", "other"), "", "web"},
		"nobody's, in its way":        {pod("web-1"), "", "web"},
		"no name of a member":         {pod("web-01"), "", ""},
		"of a set that is not there":  {pod("db-1"), "", ""},
		"without an ordinal":          {pod("web"), "", ""},
	} {
		g := newRig(t)
		q := &delays{}
		h := g.pods()
		h.Create(t.Context(), event.CreateEvent{Object: c.pod}, q)
		if got := names(q.added); got != c.there {
			t.Errorf("%s: it wakes %q, expected %q", name, got, c.there)
		}
		q.added = nil
		h.Delete(t.Context(), event.DeleteEvent{Object: c.pod}, q)
		if got := names(q.added); got != c.gone {
			t.Errorf("%s, gone: it wakes %q, expected %q", name, got, c.gone)
		}
	}
}

func names(keys []types.NamespacedName) string {
	var out []string
	for _, k := range keys {
		out = append(out, k.Name)
	}
	return strings.Join(out, " ")
}

// Under an unknown strategy nothing is done, and an event reports it.
func TestAnUnknownStrategyIsLeftAlone(t *testing.T) {
	g := newRig(t)
	set, _ := g.cached["set"].(*appsv1.StatefulSet)
	set.Spec.UpdateStrategy.Type = "Recreate"
	g.pass(t)
	g.pass(t)
	if len(g.created) > 0 || len(g.deleted) > 0 {
		t.Errorf("made %v, deleted %v", g.created, g.deleted)
	}
	if got := g.told(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning UnknownStrategy nothing is done: this release of the slice controller does not know the update strategy Recreate") {
		t.Errorf("told %q", got)
	}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	if g.pass(t); len(g.created) == 0 {
		t.Error("with one that is known nothing is done either")
	}
}

// A status of the canary is the work of another controller.
func TestAnotherControllerIsNoticed(t *testing.T) {
	for generation, noticed := range []bool{false, true} {
		guard := newGuard(nil, "stsmigrate")
		set := newCanary("stsmigrate")
		set.Status.ObservedGeneration = int64(generation)
		if err := guard.look(t.Context(), set, false); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-guard.found:
			if !noticed || !errors.Is(err, ErrAnother) {
				t.Errorf("generation %d: %v", generation, err)
			}
		default:
			if noticed {
				t.Errorf("generation %d is not noticed", generation)
			}
		}
	}
}

// A leading process works until another controller writes to its canary. It recreates a deleted canary.
func TestTheCanaryIsKeptWhileTheProcessLeads(t *testing.T) {
	g := newRig(t)
	at := fake.NewClientBuilder().WithStatusSubresource(&appsv1.StatefulSet{}).Build()
	g.canary = newGuard(at, "stsmigrate")
	g.Reconciler.client = at
	all := func() []appsv1.StatefulSet {
		var list appsv1.StatefulSetList
		if err := at.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	began := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- g.canary.keep(t.Context(), func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	<-began
	look := func(name string) {
		t.Helper()
		if _, err := g.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "stsmigrate", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	one := all()
	if len(one) != 1 {
		t.Fatalf("%d canaries", len(one))
	}
	look(one[0].Name)
	if len(g.created) > 0 || all()[0].Status.ObservedGeneration != 0 {
		t.Error("it takes care of its own canary")
	}
	if err := at.Delete(t.Context(), &one[0]); err != nil {
		t.Fatal(err)
	}
	look(one[0].Name)
	two := all()
	if len(two) != 1 || two[0].Name == one[0].Name {
		t.Fatalf("after one was deleted: %v", two)
	}
	two[0].Status.ObservedGeneration = 1
	if err := at.Status().Update(t.Context(), &two[0]); err != nil {
		t.Fatal(err)
	}
	look(two[0].Name)
	if err := <-ended; !errors.Is(err, ErrAnother) {
		t.Errorf("it ended with %v", err)
	}
	if left := all(); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

// A deleted canary that cannot be recreated at once is recreated by a retry: without one, another controller
// that starts later is not noticed (AM-6).
func TestACanaryThatCannotBeRecreatedIsTriedAgain(t *testing.T) {
	refused := errors.New("no")
	var fails error
	at := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if fails != nil {
				return fails
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	g := newRig(t)
	g.canary, g.Reconciler.client = newGuard(at, "stsmigrate"), at
	first, err := g.canary.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := at.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	key := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(first)}
	fails = refused
	for range 2 {
		if _, err := g.Reconcile(t.Context(), key); !errors.Is(err, refused) {
			t.Fatalf("it is not tried again: %v", err)
		}
	}
	fails = nil
	if _, err := g.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	var list appsv1.StatefulSetList
	if err := at.List(t.Context(), &list); err != nil || len(list.Items) != 1 || !g.canary.is(client.ObjectKeyFromObject(&list.Items[0])) {
		t.Errorf("%d canaries, %v", len(list.Items), err)
	}
}

// An eviction names the very pod that was seen. The client does not retry it, whatever the API server
// suggests: a worker would be blocked meanwhile.
func TestAnEvictionIsAskedForOnce(t *testing.T) {
	g := newRig(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(raw))
		refusal := apierrors.NewTooManyRequests("not now", 3600).Status()
		w.Header().Set("Retry-After", "3600")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(refusal)
	}))
	defer server.Close()
	c, err := typedcorev1.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	g.evictions = c.RESTClient()
	p := pod("web-1")
	p.UID, p.ResourceVersion = "seen", "7"
	err = g.does(t).Evict(t.Context(), p)
	if seconds, _ := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || seconds != 3600 {
		t.Errorf("%v", err)
	}
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "POST /api/v1/namespaces/shop/pods/web-1/eviction ") || !strings.Contains(asked[0], `"preconditions":{"uid":"seen","resourceVersion":"7"}`) {
		t.Errorf("asked %q", asked)
	}
}

// A changed budget wakes the sets of its namespace that evict, and no others.
func TestBudgetsWakeWhoEvicts(t *testing.T) {
	slice := func(name string, evict bool) *v1alpha1.StatefulSetSlice {
		return &v1alpha1.StatefulSetSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       v1alpha1.StatefulSetSliceSpec{UpdateStrategy: v1alpha1.UpdateStrategy{Type: v1alpha1.RollingUpdate, Evict: evict}},
		}
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{kind: sliced(core.Traits{}), client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(slice("web", true), slice("db", false)).Build()}
	for namespace, want := range map[string]string{"shop": "web", "mall": ""} {
		if got := names(r.ofBudget(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "any"}})); got != want {
			t.Errorf("%s: it wakes %q, expected %q", namespace, got, want)
		}
	}
}

// Template and set may have hyphens in their names, so the name of one claim may fit several sets.
func TestAClaimWakesTheSetsThatItsNameFits(t *testing.T) {
	of := func(name, template string) client.Object {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: template}}}
		return s
	}
	r := &Reconciler{kind: native(core.Traits{}), client: fake.NewClientBuilder().WithObjects(of("web", "data"), of("a-web", "data"), of("b", "my-data"), of("0", "data")).Build()}
	for claim, want := range map[string]string{
		"data-web-0": "web", "data-a-web-12": "a-web", "my-data-b-3": "b", "data-0-1": "0",
		"data-web": "", "data-web-x": "", "data-web-01": "", "log-web-0": "", "web-0": "", "data": "", "": "", "data--0": "",
	} {
		o := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim}}
		var got []string
		for _, s := range r.ofClaim(t.Context(), o) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("claim %q wakes %q, expected %q", claim, got, want)
		}
	}
}
