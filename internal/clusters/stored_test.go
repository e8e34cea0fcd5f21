package clusters

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// versioned returns the pod as a watch reports it.
func versioned(name, version string) *corev1.Pod {
	pod := onePod(name)
	pod.ResourceVersion = version
	return pod
}

// reports lets the watch report a pod, and keep it.
func (r *recently) reports(pod *corev1.Pod) {
	if r.store == nil {
		r.store = map[string]*corev1.Pod{}
	}
	r.store[pod.Name] = pod
	r.Changed(podKey(pod.Name), Change{Version: pod.ResourceVersion, UID: pod.UID})
}

// An object that was read once is answered from what its watch has reported since, as long as the watch is alive.
func TestAReadIsAnsweredByTheWatch(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.reports(versioned("web-0", "5")) // BEFORE the first read: another process may have written it since
	r.get(t, "web-0")
	r.asked(t, "get web-0")
	r.reports(versioned("web-0", "1000"))
	if got := r.get(t, "web-0"); got.ResourceVersion != "1000" {
		t.Errorf("version %s, expected what the watch has reported", got.ResourceVersion)
	}
	r.now = r.now.Add(4 * time.Second)
	r.get(t, "web-0").Name = "changed" // the next reader must not see that
	if got := r.get(t, "web-0"); got.Name != "web-0" {
		t.Error("a reader has changed what is stored")
	}
	r.asked(t)
	r.now = r.now.Add(time.Minute)
	r.get(t, "web-0")
	r.asked(t, "get web-0") // nothing was heard of the watch for a minute
}

// What a watch has is no answer if this process knows a later version: by a read, by a write, or by what the same watch
// has reported before.
func TestNoStoredObjectIsOlderThanWhatIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		act    func(t *testing.T, r *recently)
		stored string
		want   []string
	}{
		"as it was read":              {func(*testing.T, *recently) {}, "999", nil},
		"the watch has fallen behind": {func(*testing.T, *recently) {}, "998", []string{"get web-0"}},
		"it was written, and the answer is later": {func(t *testing.T, r *recently) {
			t.Helper()
			pod := r.get(t, "web-0")
			pod.Labels = map[string]string{"new": "label"}
			if err := r.on.Patch(t.Context(), pod, client.MergeFrom(onePod("web-0"))); err != nil {
				t.Fatal(err)
			}
			r.requests = nil
		}, "1000", []string{"get web-0"}},
		"it was deleted": {func(t *testing.T, r *recently) {
			t.Helper()
			if err := r.on.Delete(t.Context(), onePod("web-0")); err != nil {
				t.Fatal(err)
			}
		}, "1000", []string{"get web-0"}},
		"the watch goes back": {func(t *testing.T, r *recently) {
			t.Helper()
			r.reports(versioned("web-0", "2000"))
			r.get(t, "web-0")
		}, "1999", []string{"get web-0"}},
		"the watch goes back behind its own report": {func(_ *testing.T, r *recently) { r.reports(versioned("web-0", "2000")) }, "1000", []string{"get web-0"}},
		"it comes back after its end was reported":  {func(_ *testing.T, r *recently) { r.Changed(podKey("web-0"), Change{Gone: true, Turned: true}) }, "1000", []string{"get web-0"}},
		"nobody can compare the versions":           {func(*testing.T, *recently) {}, "x", []string{"get web-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := recent(t, onePod("web-0"))
			r.get(t, "web-0")
			r.requests = nil
			r.reports(versioned("web-0", "999"))
			c.act(t, r)
			r.store["web-0"] = versioned("web-0", c.stored)
			r.now = r.now.Add(time.Second) // the answer to the read counts no more
			r.get(t, "web-0")
			r.asked(t, c.want...)
		})
	}
}

// The objects of a list that is kept are known by the list: what the watch reports of them is read from it.
func TestTheChangesOfAListAreReadFromTheWatch(t *testing.T) {
	r := recent(t, onePod("web-0"), onePod("web-1"))
	r.Changed(podKey("other"), Change{Version: "1"})
	r.list(t, named("web"))
	r.asked(t, "list")
	r.reports(versioned("web-1", "1000"))
	var pods corev1.PodList
	if err := r.on.List(t.Context(), &pods, client.InNamespace("shop"), named("web")); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 2 || pods.Items[1].ResourceVersion != "1000" {
		t.Errorf("%v, expected web-1 as the watch has reported it", pods.Items)
	}
	r.asked(t)
	if len(r.wanted) != 2 {
		t.Errorf("%q are wanted, expected both pods", r.wanted)
	}
}

// After a write whose answer is lost, an API server is asked: the write may have been carried out.
func TestNothingStoredAnswersAfterALostWrite(t *testing.T) {
	r := recent(t, onePod("web-0"))
	pod := r.get(t, "web-0")
	lost := errors.New("connection lost")
	c, _ := r.on.(keepingClient)
	if err := c.writes(pod, nil, func() (client.Object, error) { return nil, lost }); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	r.reports(versioned("web-0", "1000"))
	r.requests = nil
	r.get(t, "web-0")
	r.asked(t, "get web-0")
	r.reports(versioned("web-0", "1001"))
	r.get(t, "web-0")
	r.asked(t)
}

// A watch keeps the objects that were asked for, and of all others their names and versions.
func TestAWatchKeepsWhatIsWanted(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}, open: true}
	pod := func(name, version string) *corev1.Pod {
		p := versioned(name, version)
		p.Spec.NodeName = "node-a"
		return p
	}
	key := types.NamespacedName{Namespace: "shop", Name: "web-0"}
	reported := func(pods ...*corev1.Pod) {
		t.Helper()
		for _, p := range pods {
			short, err := w.trimmed(p)
			if err == nil {
				err = w.Update(short)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	reported(pod("web-0", "5"))
	if o := w.stored(key); o != nil {
		t.Errorf("%v is kept, and nobody wants it", o)
	}
	w.want(key, pod("web-0", "4"))
	if o := w.stored(key); o != nil {
		t.Error("a read that is behind the watch is kept")
	}
	w.want(key, pod("web-0", "5"))
	if o := w.stored(key); o == nil {
		t.Error("a read as the watch has reported it is not kept")
	}
	reported(pod("web-0", "6"), pod("web-1", "7"))
	if o, ok := w.stored(key).(*corev1.Pod); !ok || o.ResourceVersion != "6" || o.Spec.NodeName != "node-a" {
		t.Errorf("%v, expected the whole pod of version 6", o)
	}
	if err := w.Delete(pod("web-0", "8")); err != nil {
		t.Fatal(err)
	}
	if w.stored(key) != nil {
		t.Error("a pod is answered that is gone")
	}
	reported(pod("web-0", "9"))
	if o := w.stored(key); o == nil {
		t.Error("the next pod of its name is not kept")
	}
}

// A watch that has ended, or had no room for an object, answers nothing.
func TestABrokenWatchAnswersNothing(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}, open: true, synced: true}
	key, pod := types.NamespacedName{Namespace: "shop", Name: "web-0"}, versioned("web-0", "5")
	if err := w.Update(pod); err != nil {
		t.Fatal(err)
	}
	w.want(key, pod)
	for name, breaks := range map[string]func(){
		"not all was reported": func() { w.synced = false },
		"it has ended":         func() { w.open = false },
		"it had no room":       func() { w.crowded = true },
	} {
		w.synced, w.open, w.crowded = true, true, false
		if w.stored(key) == nil {
			t.Fatal("a watch that is well does not answer")
		}
		if breaks(); w.stored(key) != nil {
			t.Errorf("%s, and it answers", name)
		}
	}
}

// What nobody asks for any more is let go.
func TestAWatchLetsGoWhatIsNotUsed(t *testing.T) {
	w := &watched{versions: map[types.NamespacedName]reported{}, open: true}
	used := types.NamespacedName{Namespace: "shop", Name: "used"}
	w.want(used, nil)
	for k := range 10 * minKept {
		w.want(types.NamespacedName{Namespace: "shop", Name: "web-" + string(rune('a'+k%26)) + string(rune('a'+k/26%26)) + string(rune('a'+k/676))}, nil)
		w.want(used, nil)
	}
	if len(w.kept) > 2*minKept {
		t.Errorf("%d objects are kept", len(w.kept))
	}
	if !w.wants(used) {
		t.Error("what is used is let go")
	}
}
