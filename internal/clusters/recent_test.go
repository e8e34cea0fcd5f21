package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// recently is a Recent over a fake cluster, with the requests that reach the cluster.
type recently struct {
	*Recent
	on       client.Client
	cluster  client.WithWatch
	now      time.Time
	requests []string
	before   func() // called before the cluster answers a read
	err      error  // of every list
	covered  bool
	reported map[string]bool // the pods that the watch has reported
	store    map[string]*corev1.Pod
	wanted   []string
	covers   func() // called when it is asked what is covered, if set
}

// Covers implements Watching.
func (r *recently) Covers(ObjectKey) bool {
	if r.covers != nil {
		r.covers()
	}
	return r.covered
}

// Absent implements Watching.
func (r *recently) Absent(t ObjectKey) bool { return r.covered && !r.reported[t.Name] }

// Stored implements Watching.
func (r *recently) Stored(t ObjectKey) client.Object {
	if pod := r.store[t.Name]; pod != nil && t.Kind == "Pod" {
		return pod
	}
	return nil
}

// Wants implements Watching.
func (r *recently) Wants(t ObjectKey, as client.Object) {
	r.wanted = append(r.wanted, t.Name+" "+as.GetResourceVersion())
}

func recent(t *testing.T, objects ...client.Object) *recently {
	t.Helper()
	r := &recently{Recent: NewRecent(), now: time.Unix(1000, 0), covered: true}
	r.cluster = fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).Build()
	c := interceptor.NewClient(r.cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			r.requests = append(r.requests, "get "+key.Name)
			err := c.Get(ctx, key, o, opts...)
			if r.before != nil {
				r.before()
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			r.requests = append(r.requests, "list")
			if r.err != nil {
				return r.err
			}
			return c.List(ctx, l, slices.DeleteFunc(slices.Clone(opts), func(o client.ListOption) bool { _, only := o.(Only); return only })...)
		},
	})
	r.Keep(func() time.Time {
		r.now = r.now.Add(time.Microsecond)
		return r.now
	}, r)
	r.on = r.Clients(&plans.Plan{}, Clusters{plans.Source: c})[plans.Source]
	return r
}

func (r *recently) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	err := r.on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &pod
}

// asked compares the requests since the last call.
func (r *recently) asked(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.requests); diff != "" && len(want)+len(r.requests) > 0 {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	r.requests = nil
}

func onePod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func podKey(name string) ObjectKey { return ObjectKey{plans.Source, "Pod", "shop", name} }

func TestAnAnswerIsKeptUntilItMayBeOutdated(t *testing.T) {
	r := recent(t, onePod("web-0"))
	for range 3 {
		r.get(t, "web-0").Name = "changed" // the next reader must not see that
		if r.get(t, "web-1") != nil {
			t.Error("there is a web-1")
		}
	}
	r.asked(t, "get web-0", "get web-1")
	r.Changed(podKey("web-0"), Change{Version: "2000"})
	r.get(t, "web-0")
	r.asked(t, "get web-0")
	r.Changed(podKey("web-1"), Change{Version: "3000", Turned: true})
	r.get(t, "web-1")
	r.asked(t, "get web-1")
	r.now = r.now.Add(FreshFor)
	r.get(t, "web-0")
	r.asked(t, "get web-0")
	r.now = r.now.Add(-time.Minute) // the clock was set back
	r.get(t, "web-0")
	r.asked(t, "get web-0")
	r.Forget()
	r.get(t, "web-0")
	r.asked(t, "get web-0")
}

// A watch may say that there is no such object: to a caller who would create it, of an object that this process has
// never met, and once the watch has reported all that there is.
func TestAWatchSaysThatAnObjectDoesNotExist(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*testing.T, *recently)
		read   asking
		asks   bool
	}{
		"it is not there":              {read: by(Clusters.MayBeMissing)},
		"others must know it":          {read: plain, asks: true},
		"what follows is for good":     {read: live(Clusters.MayBeMissing), asks: true},
		"the watch has reported it":    {read: by(Clusters.MayBeMissing), asks: true, before: func(_ *testing.T, r *recently) { r.reported = map[string]bool{"web-7": true} }},
		"the watch is not complete":    {read: by(Clusters.MayBeMissing), asks: true, before: func(_ *testing.T, r *recently) { r.covered = false }},
		"it was written":               {read: by(Clusters.MayBeMissing), asks: true, before: func(t *testing.T, r *recently) { t.Helper(); r.make(t, "web-7") }},
		"it was read, and is gone now": {read: by(Clusters.MayBeMissing), asks: true, before: func(t *testing.T, r *recently) { t.Helper(); r.meet(t, "web-7") }},
		"nothing was heard for long":   {read: by(Clusters.MayBeMissing), asks: true, before: func(_ *testing.T, r *recently) { r.now = r.now.Add(heardFor) }},
		"all is forgotten":             {read: by(Clusters.MayBeMissing), asks: true, before: func(_ *testing.T, r *recently) { r.Forget() }},
		"only other watches are heard": {read: by(Clusters.MayBeMissing), asks: true, before: func(_ *testing.T, r *recently) { r.others(heardFor) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := recent(t)
			r.Changed(podKey("web-0"), Change{Version: "1"})
			if c.before != nil {
				c.before(t, r)
			}
			r.requests = nil
			r.now = r.now.Add(FreshFor)
			err := c.read(t.Context(), r.on, client.ObjectKey{Namespace: "shop", Name: "web-7"}, &corev1.Pod{})
			if asks := len(r.requests) > 0; asks != c.asks || !asks && !apierrors.IsNotFound(err) {
				t.Errorf("asked %t (%v), expected %t", asks, err, c.asks)
			}
		})
	}
}

// make creates a pod.
func (r *recently) make(t *testing.T, name string) {
	t.Helper()
	if err := r.on.Create(t.Context(), onePod(name)); err != nil {
		t.Fatal(err)
	}
}

// meet lets the process read a pod that another one creates and deletes.
func (r *recently) meet(t *testing.T, name string) {
	t.Helper()
	if err := r.cluster.Create(t.Context(), onePod(name)); err != nil {
		t.Fatal(err)
	}
	if r.get(t, name) == nil {
		t.Fatal("it is not read")
	}
	if err := r.cluster.Delete(t.Context(), onePod(name)); err != nil {
		t.Fatal(err)
	}
}

// What is too old is removed only now and then, and does not count before that either.
func TestAnOldAnswerDoesNotCount(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.get(t, "other")
	r.now = r.now.Add(FreshFor / 2)
	r.get(t, "web-0")
	r.now = r.now.Add(FreshFor * 6 / 10)
	r.get(t, "other") // removes what is too old now
	r.now = r.now.Add(FreshFor * 6 / 10)
	r.requests = nil
	r.get(t, "web-0")
	r.asked(t, "get web-0")
}

// A read while a write is under way may have either answer.
func TestAReadDuringAWriteIsNotKept(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.get(t, "web-0")
	r.requests = nil
	c := interceptor.NewClient(r.cluster, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			r.get(t, "web-0")
			r.asked(t, "get web-0") // what was read before the write does not count during it
			return c.Delete(ctx, o, opts...)
		},
	})
	if err := r.Clients(&plans.Plan{}, Clusters{plans.Source: c})[plans.Source].Delete(t.Context(), onePod("web-0")); err != nil {
		t.Fatal(err)
	}
	if r.get(t, "web-0") != nil {
		t.Error("it is there after its deletion")
	}
}

func TestAnAnswerIsForgottenWithAWrite(t *testing.T) {
	ctx := t.Context()
	for name, write := range map[string]func(client.Client, *corev1.Pod) error{
		"create": func(c client.Client, _ *corev1.Pod) error { return c.Create(ctx, onePod("web-1")) },
		"update": func(c client.Client, o *corev1.Pod) error { return c.Update(ctx, o) },
		"patch":  func(c client.Client, o *corev1.Pod) error { return c.Patch(ctx, o, client.MergeFrom(onePod("web-0"))) },
		"delete": func(c client.Client, o *corev1.Pod) error { return c.Delete(ctx, o) },
	} {
		t.Run(name, func(t *testing.T) {
			r := recent(t, onePod("web-0"))
			o := r.get(t, "web-0")
			r.get(t, "web-1")
			if err := write(r.on, o); err != nil {
				t.Fatal(err)
			}
			r.requests = nil
			r.get(t, "web-0")
			r.get(t, "web-1")
			if name == "create" {
				r.asked(t) // the answer to the write is kept instead
				return
			}
			r.asked(t, "get web-0")
		})
	}
	r := recent(t, onePod("web-0"))
	if err := r.on.Delete(ctx, r.get(t, "web-0"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	r.requests = nil
	r.get(t, "web-0")
	r.asked(t) // nothing was written
}

// The answer to a read that was under way when the object changed may be the older one.
func TestAnAnswerFromBeforeAChangeIsNotKept(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.before = func() { r.Changed(podKey("web-0"), Change{Version: "2000"}) }
	r.get(t, "web-0")
	r.before = nil
	r.get(t, "web-0")
	r.asked(t, "get web-0", "get web-0")
	r.before = func() { r.now = r.now.Add(2 * FreshFor); r.get0(t) }
	r.Changed(podKey("web-0"), Change{Version: "3000"})
	r.get(t, "web-0")
	r.before = nil
	r.requests = nil
	r.get(t, "web-0") // the slow answer is too old, however lately it came
	r.asked(t, "get web-0")
}

// An API server answers a read with what is stored, and a watch may be behind: what it reports late is no news.
func TestALateReportOutdatesNoAnswer(t *testing.T) {
	late := Change{Version: "1"}
	end := Change{Gone: true, Turned: true}
	for name, c := range map[string]struct {
		pod    string
		report Change
		asks   bool
	}{
		"an earlier version":                 {"web-0", late, false},
		"a later version":                    {"web-0", Change{Version: "2000"}, true},
		"the end of one that is there":       {"web-0", end, true},
		"the end of one that is not there":   {"web-1", end, false},
		"a version of one that is not there": {"web-1", late, true},
	} {
		for when, report := range map[string]func(*recently){
			"after the answer": func(r *recently) { r.get(t, c.pod); r.Changed(podKey(c.pod), c.report) },
			"before the answer": func(r *recently) {
				r.before = func() { r.Changed(podKey(c.pod), c.report); r.before = nil }
				r.get(t, c.pod)
			},
		} {
			r := recent(t, onePod("web-0"))
			report(r)
			r.requests = nil
			r.get(t, c.pod)
			if asks := len(r.requests) > 0; asks != c.asks {
				t.Errorf("%s, reported %s: asked again %t, expected %t", name, when, asks, c.asks)
			}
			r.now = r.now.Add(FreshFor) // a watch that is behind hides no more than that
			r.requests = nil
			r.get(t, c.pod)
			r.asked(t, "get "+c.pod)
		}
	}
}

// get0 reads another object, which removes what is too old to matter.
func (r *recently) get0(t *testing.T) {
	t.Helper()
	r.before = nil
	r.get(t, "other")
}

func TestALiveReadAsks(t *testing.T) {
	r := recent(t, onePod("web-0"))
	seen := &ReadCache{}
	seen.Clear()
	through := seen.Clients(&plans.Plan{}, Clusters{plans.Source: r.on})[plans.Source]
	for _, read := range []asking{plain, plain, live(same), live(same)} {
		if err := read(t.Context(), through, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
	r.asked(t, "get web-0", "get web-0", "get web-0")
}

// A check that warns early reads what a watch has not reported as changed, for a few seconds.
func TestAnOlderAnswerCountsWhileAWatchLooksOn(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*recently)
		read  asking
		asks  bool
	}{
		"nothing has changed":       {func(*recently) {}, by(Clusters.Watched), false},
		"it is for a look":          {func(*recently) {}, plain, true},
		"it must be live":           {func(*recently) {}, live(Clusters.Watched), true},
		"it has changed":            {func(r *recently) { r.Changed(podKey("web-0"), Change{Version: "2000"}) }, by(Clusters.Watched), true},
		"no watch looks on":         {func(r *recently) { r.covered = false }, by(Clusters.Watched), true},
		"it was read some time ago": {func(r *recently) { r.now = r.now.Add(watchedFor) }, by(Clusters.Watched), true},
		"a slow read is from before a change": {func(r *recently) {
			r.Forget()
			r.before = func() {
				r.Changed(podKey("web-0"), Change{Version: "2000"})
				r.now = r.now.Add(2 * FreshFor)
				r.get0(t)
			}
			r.get(t, "web-0")
		}, by(Clusters.Watched), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := recent(t, onePod("web-0"))
			r.get(t, "web-0")
			r.now = r.now.Add(2 * FreshFor)
			c.spoil(r)
			r.get0(t) // removes what is too old now
			r.requests = nil
			if err := c.read(t.Context(), r.on, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); err != nil {
				t.Fatal(err)
			}
			if asks := len(r.requests) > 0; asks != c.asks {
				t.Errorf("asked %t, expected %t", asks, c.asks)
			}
		})
	}
}

// Who uses the spec alone is not concerned by a change of the status, which leaves the generation as it is.
func TestAChangeOfTheStatusOutdatesNoSpec(t *testing.T) {
	for name, c := range map[string]struct {
		change Change
		read   asking
		asks   bool
	}{
		"the status has changed":      {Change{Version: "2000", UID: "u", Generation: 3}, by(Clusters.SpecOnly), false},
		"all of it is needed":         {Change{Version: "2000", UID: "u", Generation: 3}, plain, true},
		"the spec has changed":        {Change{Version: "2000", UID: "u", Generation: 4}, by(Clusters.SpecOnly), true},
		"it was recreated":            {Change{Version: "2000", UID: "v", Generation: 3}, by(Clusters.SpecOnly), true},
		"it is gone":                  {Change{Gone: true, UID: "u", Generation: 3}, by(Clusters.SpecOnly), true},
		"the watch has no generation": {Change{Version: "2000", UID: "u"}, by(Clusters.SpecOnly), true},
	} {
		pod := onePod("web-0")
		pod.UID, pod.Generation = "u", 3
		r := recent(t, pod)
		r.get(t, "web-0")
		r.Changed(podKey("web-0"), c.change)
		r.Changed(podKey("web-0"), c.change)
		r.requests = nil
		if err := c.read(t.Context(), r.on, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		if asks := len(r.requests) > 0; asks != c.asks {
			t.Errorf("%s: asked %t, expected %t", name, asks, c.asks)
		}
		r.get(t, "web-0")
		r.requests = nil
		r.get(t, "web-0")
		r.asked(t) // read again, all of it counts
	}
}

// One list answers the reads of single claims that follow it, unless something has changed meanwhile.
func TestOneListServesManyReads(t *testing.T) {
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "of-" + name}}
	}
	r := recent(t, claim("data-0"), claim("data-1"))
	kind := corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	r.ReadAll(t.Context(), r.on, kind, "shop")
	r.asked(t, "list")
	r.Changed(ObjectKey{Cluster: plans.Source, Kind: kind.Kind, Namespace: "shop", Name: "data-1"}, Change{Version: "2000"})
	for _, name := range []string{"data-0", "data-1"} {
		var got corev1.PersistentVolumeClaim
		if err := r.on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &got); err != nil || got.Spec.VolumeName != "of-"+name {
			t.Errorf("%+v, %v", got, err)
		}
	}
	r.asked(t, "get data-1")
	r.err = errors.New("no answer")
	r.Forget()
	r.ReadAll(t.Context(), r.on, kind, "shop")
	r.ReadAll(t.Context(), r.cluster, kind, "shop") // does not read through it
	if err := r.on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data-0"}, &corev1.PersistentVolumeClaim{}); err != nil {
		t.Fatal(err)
	}
	r.asked(t, "list", "get data-0")
}

func TestNothingIsKeptBeforeKeep(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.Recent.now = nil
	r.get(t, "web-0")
	r.get(t, "web-0")
	r.asked(t, "get web-0", "get web-0")
}

// Volumes and claims are read with all fields once, for both forms. Kinds that the watches call otherwise are not kept
// with all fields.
func TestOneReadServesBothForms(t *testing.T) {
	r := recent(t, onePod("web-0"), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: map[string]string{"a": "b"}},
		Spec:       corev1.PersistentVolumeSpec{Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	})
	whole := func(kind, namespace, name string) *unstructured.Unstructured {
		t.Helper()
		var u unstructured.Unstructured
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
		if err := r.on.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &u); err != nil {
			t.Fatal(err)
		}
		return &u
	}
	typed := func(on client.Client) *corev1.PersistentVolume {
		t.Helper()
		var pv corev1.PersistentVolume
		if err := on.Get(t.Context(), client.ObjectKey{Name: "pv"}, &pv); err != nil {
			t.Fatal(err)
		}
		return &pv
	}
	for range 2 {
		if diff := cmp.Diff(typed(r.cluster), typed(r.on)); diff != "" {
			t.Errorf("the typed form (-want +got):\n%s", diff)
		}
		whole("PersistentVolume", "", "pv").SetName("changed") // the next reader must not see that
	}
	r.asked(t, "get pv")
	r.Changed(ObjectKey{Cluster: plans.Source, Kind: "PersistentVolume", Name: "pv"}, Change{Version: "2000"})
	whole("PersistentVolume", "", "pv")
	whole("Pod", "shop", "web-0")
	whole("Pod", "shop", "web-0")
	r.asked(t, "get pv", "get web-0", "get web-0")
}

// annotated changes the annotations of web-0 as it was read.
func (r *recently) annotated(t *testing.T, on client.Client, annotations map[string]string) *corev1.Pod {
	t.Helper()
	was := r.get(t, "web-0")
	next := was.DeepCopy()
	next.Annotations = annotations
	if err := writes.Change(t.Context(), on, was, next); err != nil {
		t.Fatal(err)
	}
	r.requests = nil
	return next
}

func TestTheAnswerToAWriteIsKept(t *testing.T) {
	pod := onePod("web-0")
	pod.Annotations = map[string]string{"old": "1", "stays": "2"}
	r := recent(t, pod)
	next := r.annotated(t, r.on, map[string]string{"stays": "2", "new": "3"})
	if diff := cmp.Diff(next, r.get(t, "web-0")); diff != "" || len(next.Annotations) != 2 || next.ResourceVersion == "999" {
		t.Errorf("what was written, and is read (-want +got):\n%s\n%v", diff, next)
	}
	r.asked(t)
	r.Changed(podKey("web-0"), Change{Version: next.ResourceVersion}) // the watch reports what was written
	r.get(t, "web-0")
	r.asked(t)
	r.Changed(podKey("web-0"), Change{Version: "1"}) // and, late, what was there before
	r.get(t, "web-0")
	r.asked(t)
	r.Changed(podKey("web-0"), Change{Version: "2000"})
	r.get(t, "web-0")
	r.asked(t, "get web-0")
}

func TestTheAnswerToAWriteIsNotKept(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *recently){
		"if a watch has reported another version": func(_ *testing.T, r *recently) { r.Changed(podKey("web-0"), Change{Version: "2000"}) },
		"if a watch has reported an end":          func(_ *testing.T, r *recently) { r.Changed(podKey("web-0"), Change{Gone: true}) },
		"if this process has written it besides": func(t *testing.T, r *recently) {
			t.Helper()
			o := onePod("web-0")
			o.Labels = map[string]string{"who": "other"}
			if err := r.on.Patch(t.Context(), o, client.MergeFrom(onePod("web-0"))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := recent(t, onePod("web-0"))
			c := interceptor.NewClient(r.cluster, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					err := c.Patch(ctx, o, p, opts...)
					meanwhile(t, r)
					return err
				},
			})
			r.annotated(t, r.Clients(&plans.Plan{}, Clusters{plans.Source: c})[plans.Source], map[string]string{"a": "b"})
			r.get(t, "web-0")
			r.asked(t, "get web-0")
		})
	}
}

// A volume that is written is kept with all fields, also those that the types of this program do not have.
func TestTheAnswerToAWriteIsKeptWhole(t *testing.T) {
	r := recent(t, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       corev1.PersistentVolumeSpec{Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	})
	var was corev1.PersistentVolume
	if err := r.on.Get(t.Context(), client.ObjectKey{Name: "pv"}, &was); err != nil {
		t.Fatal(err)
	}
	next := was.DeepCopy()
	next.Annotations = map[string]string{"a": "b"}
	if err := writes.Change(t.Context(), r.on, &was, next); err != nil {
		t.Fatal(err)
	}
	r.requests = nil
	var typed, stored corev1.PersistentVolume
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"})
	for _, into := range []client.Object{&typed, u} {
		if err := r.on.Get(t.Context(), client.ObjectKey{Name: "pv"}, into); err != nil {
			t.Fatal(err)
		}
	}
	r.asked(t)
	if err := r.cluster.Get(t.Context(), client.ObjectKey{Name: "pv"}, &stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored, typed); diff != "" || cmp.Diff(stored, *next) != "" || u.GetAnnotations()["a"] != "b" {
		t.Errorf("what is stored, and is read (-want +got):\n%s\n%v\n%v", diff, next, u)
	}
}

// A claim that is created is kept with all fields, as the API server has stored it.
func TestTheAnswerToACreationIsKeptWhole(t *testing.T) {
	r := recent(t)
	key := client.ObjectKey{Namespace: "shop", Name: "data-web-0"}
	made := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{"a": "b"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
	}
	if err := r.on.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	var read, stored corev1.PersistentVolumeClaim
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"})
	for _, into := range []client.Object{&read, u} {
		if err := r.on.Get(t.Context(), key, into); err != nil {
			t.Fatal(err)
		}
	}
	r.asked(t)
	if err := r.cluster.Get(t.Context(), key, &stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored, read); diff != "" || cmp.Diff(stored, *made) != "" || stored.Spec.VolumeName != "pv" || u.GetAnnotations()["a"] != "b" {
		t.Errorf("what is stored, and is read (-want +got):\n%s\n%v\n%v", diff, made, u)
	}
}

// Readers of one object at the same time send one request. One that needs a live answer sends its own.
func TestReadersAtTheSameTimeShareARequest(t *testing.T) {
	for name, c := range map[string]struct {
		read    asking
		changed bool
		want    int
	}{
		"they share it":                            {plain, false, 1},
		"a live read does not":                     {live(same), false, 2},
		"an answer that is outdated is not shared": {plain, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := recent(t, onePod("web-0"))
				reading, goOn, over := make(chan struct{}, 2), make(chan struct{}), make(chan error, 2)
				var asked atomic.Int32
				cluster := interceptor.NewClient(r.cluster, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					asked.Add(1)
					reading <- struct{}{}
					<-goOn
					return err
				}})
				on := r.Clients(&plans.Plan{}, Clusters{plans.Source: cluster})[plans.Source]
				read := func(as asking) {
					over <- as(t.Context(), on, client.ObjectKey{Namespace: "shop", Name: "web-0"}, &corev1.Pod{})
				}
				go read(plain)
				<-reading
				if c.changed {
					r.Changed(podKey("web-0"), Change{Version: "2000"})
				}
				go read(c.read)
				if c.want > 1 && !c.changed {
					<-reading
				}
				close(goOn)
				for range 2 {
					if err := <-over; err != nil {
						t.Fatal(err)
					}
				}
				if n := int(asked.Load()); n != c.want {
					t.Errorf("%d requests, expected %d", n, c.want)
				}
			})
		})
	}
}

// named selects the pods of a set.
func named(prefix string) Only {
	return Only{Of: prefix, Fixed: true, Keep: func(o client.Object) client.Object {
		if len(o.GetName()) < len(prefix) || o.GetName()[:len(prefix)] != prefix {
			return nil
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion()}}
	}}
}

func (r *recently) list(t *testing.T, only Only) (names []string) {
	t.Helper()
	var pods corev1.PodList
	if err := r.on.List(t.Context(), &pods, client.InNamespace("shop"), only); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// turned creates or deletes a pod behind the back of the Recent, and lets the watch report it.
func (r *recently) turned(t *testing.T, name string, there bool) {
	t.Helper()
	if !there {
		if err := r.cluster.Delete(t.Context(), onePod(name)); err != nil {
			t.Fatal(err)
		}
		r.Changed(podKey(name), Change{Gone: true, Turned: true})
		return
	}
	pod := onePod(name)
	if err := r.cluster.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	r.Changed(podKey(name), Change{Version: pod.ResourceVersion, Turned: true})
}

func TestOfAListOnlyWhatChangesIsRead(t *testing.T) {
	r := recent(t, onePod("web-0"), onePod("web-1"), onePod("batch-0"))
	r.Changed(podKey("batch-0"), Change{Version: "1"}) // the watch is heard
	for range 2 {
		if diff := cmp.Diff([]string{"web-0", "web-1"}, r.list(t, named("web"))); diff != "" {
			t.Error(diff)
		}
	}
	r.asked(t, "list")
	r.turned(t, "web-2", true)
	r.turned(t, "batch-1", true)
	r.turned(t, "web-0", false)
	r.Changed(podKey("batch-0"), Change{Version: "1000"}) // of another set, and always was
	if diff := cmp.Diff([]string{"web-1", "web-2"}, r.list(t, named("web"))); diff != "" {
		t.Error(diff)
	}
	slices.Sort(r.requests)
	r.asked(t, "get batch-1", "get web-0", "get web-2")
	r.Changed(podKey("web-1"), Change{Version: "999"}) // what was read
	r.list(t, named("web"))
	r.asked(t)
	r.Changed(podKey("web-1"), Change{Version: "1"}) // older: the cluster may have been restored from a backup
	r.list(t, named("web"))
	r.asked(t, "get web-1")
	r.list(t, named("batch")) // another selection
	r.asked(t, "list")
}

// needing selects all pods, and needs those of some names.
func needing(names ...string) Only {
	out := named("")
	out.For, out.Needs = fmt.Sprint(names), func(o client.Object) bool { return slices.Contains(names, o.GetName()) }
	return out
}

// What is not needed yet is kept for later, and not read when it changes. Several objects that have come since are read
// with one list.
func TestOfAListOnlyWhatIsNeededIsRead(t *testing.T) {
	r := recent(t, onePod("web-0"), onePod("web-1"), onePod("web-2"))
	r.Changed(podKey("web-0"), Change{Version: "1"}) // the watch is heard
	r.list(t, needing("web-0"))
	r.list(t, needing("web-1"))
	r.asked(t, "list")
	r.Changed(podKey("web-0"), Change{Version: "1000"})
	r.Changed(podKey("web-1"), Change{Version: "1000"})
	r.turned(t, "web-2", false)
	r.list(t, needing("web-1"))
	r.asked(t, "get web-1")
	if got := r.list(t, needing("web-2")); slices.Contains(got, "web-2") {
		t.Errorf("%v, and web-2 is gone", got)
	}
	r.asked(t, "get web-2")
	r.turned(t, "web-3", true)
	if got := r.list(t, needing("web-0")); !slices.Contains(got, "web-3") {
		t.Errorf("%v, expected web-3, which may be needed", got)
	}
	r.asked(t, "get web-0", "get web-3")
	r.turned(t, "web-4", true)
	r.turned(t, "web-5", true)
	if got := r.list(t, needing("web-5")); !slices.Contains(got, "web-5") {
		t.Errorf("%v, expected web-5", got)
	}
	r.asked(t, "list")
	r.now = r.now.Add(laterFor)
	r.Changed(podKey("web-0"), Change{Version: "1"})
	r.list(t, needing("web-5"))
	r.asked(t, "list") // the watch may have died silently
}

// Where there are too many objects to keep, each need reads the list.
func TestOfALongListOnlyWhatIsNeededIsKept(t *testing.T) {
	var pods []client.Object
	for k := range maxForLater + 1 {
		pods = append(pods, onePod(fmt.Sprint("web-", k)))
	}
	r := recent(t, pods...)
	r.Changed(podKey("web-0"), Change{Version: "1"})
	for _, want := range [][]string{{"list"}, nil} {
		if got := r.list(t, needing("web-7")); !slices.Equal(got, []string{"web-7"}) {
			t.Errorf("%v, expected web-7 alone", got)
		}
		r.asked(t, want...)
	}
	r.Changed(podKey("web-7"), Change{Version: "1000"})
	r.list(t, needing("web-7"))
	r.asked(t, "get web-7")
	if got := r.list(t, needing("web-8")); !slices.Equal(got, []string{"web-8"}) {
		t.Errorf("%v, expected web-8 alone", got)
	}
	r.asked(t, "list")
}

// A plan that waits for an hour, while the volumes of a thousand others change, holds nothing of what it has read.
func TestAWaitingPlanHoldsNoAnswers(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.get(t, "web-0")
	for k := range 1000 {
		r.now = r.now.Add(time.Second)
		r.Changed(ObjectKey{Cluster: plans.Source, Kind: "PersistentVolume", Name: fmt.Sprint("pv-", k)}, Change{Version: fmt.Sprint(100 + k)})
	}
	if len(r.known) > 0 || len(r.outdated) > int(watchedFor/time.Second)+1 {
		t.Errorf("%d answers and %d reports are held, expected none and those of the last %s", len(r.known), len(r.outdated), watchedFor)
	}
}

// A list that a check brings up to date serves looks too: it gets no older answers than theirs.
func TestOfAListNoOldAnswerIsKept(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.Changed(podKey("web-0"), Change{Version: "1"})
	r.list(t, named("web"))
	r.get(t, "web-0")
	r.now = r.now.Add(2 * FreshFor)
	r.Changed(podKey("web-0"), Change{Version: "1"}) // the cluster may have been restored from a backup
	r.requests = nil
	if err := (Clusters{plans.Source: r.on}).Watched()[plans.Source].List(t.Context(), &corev1.PodList{}, client.InNamespace("shop"), named("web")); err != nil {
		t.Fatal(err)
	}
	r.asked(t, "get web-0")
}

// A watch may report the end of an object after a list has shown another one of its name.
func TestALateReportOfAnEndRemovesNoSuccessor(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.Changed(podKey("web-0"), Change{Version: "1"})
	r.list(t, named("web"))
	r.Changed(podKey("web-0"), Change{Gone: true, Turned: true})
	if got := r.list(t, named("web")); len(got) != 1 {
		t.Errorf("%v, expected web-0", got)
	}
}

func TestAListIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*recently)
		want  []string
	}{
		"not": {func(*recently) {}, nil},
		"while no watch covers it": {func(r *recently) {
			r.covered = false
		}, []string{"list"}},
		"when all is forgotten": {func(r *recently) {
			r.Forget()
			r.Changed(podKey("web-0"), Change{Version: "1"})
		}, []string{"list"}},
		"when nothing was heard for long":   {func(r *recently) { r.now = r.now.Add(heardFor) }, []string{"list"}},
		"when only other watches are heard": {func(r *recently) { r.others(heardFor) }, []string{"list"}},
		"not, when its watch says that nothing has changed": {func(r *recently) {
			r.now = r.now.Add(heardFor)
			r.Heard(listOf(podKey("web-0")))
		}, nil},
		"after many changes": {func(r *recently) {
			for k := range maxOneByOne + 1 {
				r.Changed(podKey(fmt.Sprint("web-", k)), Change{Version: "1000", Turned: true})
			}
		}, []string{"list"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := recent(t, onePod("web-0"))
			r.Changed(podKey("web-0"), Change{Version: "1"})
			r.list(t, named("web"))
			r.requests = nil
			c.spoil(r)
			r.list(t, named("web"))
			r.asked(t, c.want...)
		})
	}
}

// others lets time pass in which the watches of all other lists report something.
func (r *recently) others(d time.Duration) {
	for end := r.now.Add(d); !r.now.After(end); r.now = r.now.Add(d / 10) {
		r.Changed(ObjectKey{Cluster: plans.Source, Kind: "Node", Name: "n"}, Change{Version: "9", Idle: true})
		r.Changed(ObjectKey{plans.Source, "Pod", "mall", "web-0"}, Change{Version: "9"})
		r.Changed(ObjectKey{plans.Source, "PersistentVolumeClaim", "shop", "data-web-0"}, Change{Version: "9"})
		r.Changed(ObjectKey{plans.Destination, "Pod", "shop", "web-0"}, Change{Version: "9"})
	}
}

// A list whose watch hangs is as old as the last time that it was read, and no older: it is read once in that time, and
// shows what has happened.
func TestAListWhoseWatchHangsGrowsNoOlder(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.Changed(podKey("web-0"), Change{Version: "1"})
	r.list(t, named("web"))
	if err := r.cluster.Create(t.Context(), onePod("web-1")); err != nil { // its watch does not tell
		t.Fatal(err)
	}
	r.requests = nil
	for range 3 {
		r.others(heardFor)
		for range 4 {
			if got := r.list(t, named("web")); len(got) != 2 {
				t.Errorf("the list has %v, expected two pods", got)
			}
		}
	}
	r.asked(t, "list", "list", "list")
}

// A list is read for every look until its watch has reported anything, whatever others report.
func TestAWatchThatHasReportedNothingKeepsNoList(t *testing.T) {
	r := recent(t, onePod("web-0"))
	for range 2 {
		r.Changed(ObjectKey{Cluster: plans.Source, Kind: "Node", Name: "n"}, Change{Version: "9"})
		r.list(t, named("web"))
	}
	r.asked(t, "list", "list")
}

// Changes are not forgotten with a read that fails, and neither are those that come while a list is read.
func TestAListThatFailedIsReadAgain(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.Changed(podKey("web-0"), Change{Version: "1"})
	r.err = errors.New("no answer")
	if err := r.on.List(t.Context(), &corev1.PodList{}, client.InNamespace("shop"), named("web")); !errors.Is(err, r.err) {
		t.Fatal(err)
	}
	r.err = nil
	r.list(t, named("web"))
	r.asked(t, "list", "list")
	r.turned(t, "web-1", true)
	r.before = func() { r.turned(t, "web-2", true); r.before = nil }
	r.list(t, named("web"))
	if got := r.list(t, named("web")); len(got) != 3 {
		t.Errorf("%v, expected three pods", got)
	}
}

// A watch calls Changed with its own lock held, and the function that reports what is covered waits for that lock.
func TestAReadWaitsForNoWatchWhileAWatchWaitsForIt(t *testing.T) {
	r := recent(t, onePod("web-0"))
	r.covers = func() {
		told := make(chan struct{})
		go func() {
			r.Changed(podKey("web-0"), Change{Version: "2"})
			close(told)
		}()
		select {
		case <-told:
		case <-time.After(10 * time.Second):
			t.Error("the watch waits for the reader, which waits for the watch")
		}
	}
	var pods corev1.PodList
	if err := r.on.List(t.Context(), &pods, client.InNamespace("shop"), Only{Of: "all", Keep: func(o client.Object) client.Object { return o }}); err != nil {
		t.Fatal(err)
	}
}

// A pod that was not selected is gone after an interrupted watch, and one of its name is there that is selected.
func TestAnotherPodOfTheSameNameIsRead(t *testing.T) {
	mounting := Only{Of: "the pods that mount a claim", Fixed: true, Keep: func(o client.Object) client.Object {
		if pod, ok := o.(*corev1.Pod); ok && len(pod.Spec.Volumes) > 0 {
			return pod.DeepCopy()
		}
		return nil
	}}
	r := recent(t, onePod("backup"))
	w := &watched{versions: map[types.NamespacedName]reported{}}
	w.join(listener{tell: func(key types.NamespacedName, c Change) { r.Changed(podKey(key.Name), c) }})
	lists := func(uid, version string) {
		t.Helper()
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup", UID: types.UID(uid), ResourceVersion: version}}
		if err := w.Replace([]any{o}, ""); err != nil {
			t.Fatal(err)
		}
	}
	lists("first", "1")
	if got := r.list(t, mounting); len(got) > 0 {
		t.Fatalf("%q", got)
	}
	if err := r.cluster.Delete(t.Context(), onePod("backup")); err != nil {
		t.Fatal(err)
	}
	next := onePod("backup")
	next.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-0"}}}}
	if err := r.cluster.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	lists("second", "1000")
	if got := r.list(t, mounting); len(got) != 1 {
		t.Errorf("%q mount a claim, expected backup", got)
	}
}
