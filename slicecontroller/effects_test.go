package slicecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// store creates an object in the API server of a rig, and copies it into the cache.
func (g *rig) store(t *testing.T, o client.Object) {
	t.Helper()
	if err := g.lagging.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.catchUp(t, o)
}

// comparing lets the API server of a rig compare the UID of a patch with that of the object, which the fake does not.
func (g *rig) comparing() {
	was, _ := g.lagging.Client.(client.WithWatch)
	g.lagging.Client = interceptor.NewClient(was, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			var sent struct {
				Metadata struct {
					UID types.UID `json:"uid"`
				} `json:"metadata"`
			}
			raw, err := p.Data(o)
			now := pod(o.GetName())
			if err := errors.Join(err, json.Unmarshal(raw, &sent), c.Get(ctx, client.ObjectKeyFromObject(o), now)); err != nil {
				return err
			}
			if uid := sent.Metadata.UID; uid != "" && uid != now.UID {
				return apierrors.NewConflict(corev1.Resource("pods"), o.GetName(), errors.New("the UID is another"))
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	g.Reconciler.client = g.lagging
}

// Adopt and Release change one reference of the very pod that was seen. The references of others stay.
func TestOnlyThePodThatWasSeenIsAdoptedOrReleased(t *testing.T) {
	yes := true
	ours := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set", Controller: &yes}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Backup", Name: "b", UID: "other"}
	for name, c := range map[string]struct {
		refs, want []metav1.OwnerReference
		do         func(effects, core.Object) error
	}{
		"adopted":  {[]metav1.OwnerReference{other}, []metav1.OwnerReference{other, ours}, func(e effects, o core.Object) error { return e.Adopt(t.Context(), o, ours) }},
		"released": {[]metav1.OwnerReference{other, ours}, []metav1.OwnerReference{other}, func(e effects, o core.Object) error { return e.Release(t.Context(), o, "set") }},
	} {
		g := newRig(t)
		g.comparing()
		p := pod("web-0")
		p.OwnerReferences = c.refs
		g.store(t, p)
		uids := func() (out []types.UID) {
			now := pod("web-0")
			if err := g.lagging.Client.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
				t.Fatal(err)
			}
			for _, r := range now.OwnerReferences {
				out = append(out, r.UID)
			}
			slices.Sort(out)
			return out
		}
		was := uids()
		former := p.DeepCopy()
		former.UID = "former"
		if err := c.do(g.does(t), former); !apierrors.IsConflict(err) || !slices.Equal(uids(), was) {
			t.Errorf("another pod of the name is %s: %v, its owners are %v", name, err, uids())
		}
		var want []types.UID
		for _, r := range c.want {
			want = append(want, r.UID)
		}
		if err := c.do(g.does(t), p.DeepCopy()); err != nil || !slices.Equal(uids(), want) {
			t.Errorf("it is %s: %v, its owners are %v, expected %v", name, err, uids(), want)
		}
	}
}

// stored returns the set as the API server has it.
func (g *rig) stored(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := g.lagging.Client.Get(t.Context(), web(), set); err != nil {
		t.Fatal(err)
	}
	return set
}

// recreate replaces the set in the API server by another one of the same name.
func (g *rig) recreate(t *testing.T, change func(*appsv1.StatefulSet)) {
	t.Helper()
	set := g.stored(t)
	if err := g.lagging.Client.Delete(t.Context(), set, client.Preconditions{UID: &set.UID}); err != nil {
		t.Fatal(err)
	}
	g.deleted = nil
	set.UID, set.ResourceVersion = "", ""
	change(set)
	if err := g.lagging.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

// A finalizer that another writer has added meanwhile stays.
func TestTheFinalizersOfOthersStay(t *testing.T) {
	g := newRig(t)
	set := g.stored(t)
	set.Finalizers = []string{"backup/first"}
	if err := g.lagging.Client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := g.does(t).Hold(t.Context(), true); !apierrors.IsConflict(err) {
		t.Errorf("written by what was seen before: %v", err)
	}
	g.catchUp(t, set)
	if err := g.does(t).Hold(t.Context(), true); err != nil {
		t.Error(err)
	}
	if got := g.stored(t).Finalizers; !slices.Equal(got, []string{"backup/first", core.Protection}) {
		t.Errorf("%q", got)
	}
}

// A status is written over newer metadata, but neither over a newer status nor into another set of the same name.
func TestAStatusIsWrittenOnlyOverTheOneThatWasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*rig, *appsv1.StatefulSet) error
		written   bool
	}{
		"nothing happens": {func(*rig, *appsv1.StatefulSet) error { return nil }, true},
		"its labels change": {func(g *rig, s *appsv1.StatefulSet) error {
			s.Labels = map[string]string{"a": "b"}
			return g.lagging.Client.Update(t.Context(), s)
		}, true},
		"its status changes": {func(g *rig, s *appsv1.StatefulSet) error {
			s.Status.Replicas = 7
			return g.lagging.Client.Status().Update(t.Context(), s)
		}, false},
		"it is recreated": {func(g *rig, _ *appsv1.StatefulSet) error {
			g.recreate(t, func(*appsv1.StatefulSet) {})
			return nil
		}, false},
	} {
		g := newRig(t)
		do := g.does(t)
		if err := c.meanwhile(g, g.stored(t)); err != nil {
			t.Fatal(err)
		}
		err := do.WriteStatus(t.Context(), core.Status{StatefulSetStatus: appsv1.StatefulSetStatus{ReadyReplicas: 5}})
		if written := g.stored(t).Status.ReadyReplicas == 5; written != c.written || (err == nil) != c.written || err != nil && !apierrors.IsConflict(err) {
			t.Errorf("%s: written %t, %v", name, written, err)
		}
	}
}

// A template is tried without being stored.
func TestATemplateIsOnlyTried(t *testing.T) {
	g := newRig(t)
	do := g.does(t)
	if _, err := do.Default(t.Context(), g.stored(t).Spec.Template); err != nil {
		t.Fatal(err)
	}
	var there corev1.PodTemplateList
	if err := g.lagging.Client.List(t.Context(), &there); err != nil || len(there.Items) > 0 {
		t.Errorf("%d pod templates are stored: %v", len(there.Items), err)
	}
}

// What was confirmed about a set does not hold for another set of the same name.
func TestTheRangeOfARecreatedSetIsAskedForAgain(t *testing.T) {
	remove := func(g *rig, name string) error {
		p := pod(name)
		p.UID = types.UID(name)
		return g.does(t).Delete(t.Context(), p)
	}
	g := newRig(t)
	g.recreate(t, func(*appsv1.StatefulSet) {})
	if err := remove(g, "web-2"); !errors.Is(err, core.ErrBehind) || len(g.deleted) > 0 {
		t.Errorf("deleted %v by the range of a former set: %v", g.deleted, err)
	}
	g = newRig(t)
	if err := g.does(t).current(t.Context(), pod("web-1")); err != nil {
		t.Fatal(err)
	}
	g.recreate(t, func(*appsv1.StatefulSet) {})
	next := g.stored(t).DeepCopy()
	g.cached = map[string]client.Object{"set": next}
	now := g.stored(t)
	now.Generation++
	if err := g.lagging.Client.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := remove(g, "web-1"); !errors.Is(err, core.ErrBehind) || len(g.deleted) > 0 {
		t.Errorf("deleted %v by what was confirmed for a former set: %v", g.deleted, err)
	}
}

// evictions returns a client of an API server that grants and counts all evictions.
func evictions(t *testing.T, granted *int) rest.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*granted++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	}))
	t.Cleanup(server.Close)
	c, err := typedcorev1.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return c.RESTClient()
}

// Nothing is decided before the cache has any of the writes of this process, whatever kind of write it is (SC-2,
// SC-4, SC-5).
func TestEveryWriteIsWaitedFor(t *testing.T) {
	ours := *metav1.NewControllerRef(&metav1.ObjectMeta{Name: "web", UID: "set"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
	for name, write := range map[string]func(effects, *corev1.Pod) error{
		"Create": func(e effects, _ *corev1.Pod) error { return e.Create(t.Context(), pod("web-1")) },
		"Update": func(e effects, p *corev1.Pod) error {
			p.Labels = map[string]string{"a": "b"}
			return e.Update(t.Context(), p)
		},
		"Delete":  func(e effects, p *corev1.Pod) error { return e.Delete(t.Context(), p) },
		"Evict":   func(e effects, p *corev1.Pod) error { return e.Evict(t.Context(), p) },
		"Adopt":   func(e effects, p *corev1.Pod) error { return e.Adopt(t.Context(), p, ours) },
		"Release": func(e effects, p *corev1.Pod) error { return e.Release(t.Context(), p, "other") },
		"Hold":    func(e effects, _ *corev1.Pod) error { return e.Hold(t.Context(), true) },
		"WriteStatus": func(e effects, _ *corev1.Pod) error {
			return e.WriteStatus(t.Context(), core.Status{StatefulSetStatus: appsv1.StatefulSetStatus{Replicas: 1}})
		},
	} {
		g := newRig(t)
		g.evictions = evictions(t, new(int))
		p := pod("web-0")
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Backup", Name: "b", UID: "other"}}
		g.store(t, p)
		if err := write(g.does(t), p.DeepCopy()); err != nil || !g.ledger.has(web()) {
			t.Errorf("%s: %v, waited for: %t", name, err, g.ledger.has(web()))
		}
	}
}
