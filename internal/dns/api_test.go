package dns

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/plans"
)

// api is an API server in which nothing changes. It counts the open watches, by kind and namespace.
type api struct {
	*httptest.Server
	objects map[string][]metav1.Object // by kind and namespace
	made    chan string
	shared  *Cluster
	lock    sync.Mutex
	watches map[string]int
	all     int
}

func newAPI(tb testing.TB) *api {
	tb.Helper()
	a := &api{objects: map[string][]metav1.Object{}, made: make(chan string, 1000), watches: map[string]int{}}
	a.Server = httptest.NewUnstartedServer(a)
	a.EnableHTTP2 = true // all watches go through one connection
	a.StartTLS()
	tb.Cleanup(a.Close)
	var err error
	if a.shared, err = NewCluster(&rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}); err != nil {
		tb.Fatal(err)
	}
	return a
}

// ServeHTTP serves lists, watches that begin with all existing objects, and creates.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, of, _ := strings.Cut(r.URL.Path, "/namespaces/")
	w.Header().Set("Content-Type", "application/json")
	tell := json.NewEncoder(w)
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost:
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(raw)
		a.made <- of
	case q.Get("watch") == "":
		_ = tell.Encode(map[string]any{"metadata": map[string]string{"resourceVersion": "1"}, "items": a.objects[of]})
	default:
		a.watched(of, 1)
		defer a.watched(of, -1)
		if q.Get("sendInitialEvents") == "true" {
			for _, o := range a.objects[of] {
				_ = tell.Encode(map[string]any{"type": watch.Added, "object": o})
			}
			end := &metav1.PartialObjectMetadata{TypeMeta: typeIn(of), ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
			_ = tell.Encode(map[string]any{"type": watch.Bookmark, "object": end})
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// typeIn returns the type of the objects of a kind and namespace.
func typeIn(of string) metav1.TypeMeta {
	_, kind, _ := strings.Cut(of, "/")
	return map[string]metav1.TypeMeta{
		ofPods:     {APIVersion: "v1", Kind: "Pod"},
		ofServices: {APIVersion: "v1", Kind: "Service"},
		ofSlices:   {APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
	}[kind]
}

func (a *api) watched(of string, n int) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.watches[of] += n
	a.all += n
}

func (a *api) add(of string, o metav1.Object) {
	o.SetResourceVersion("1")
	a.objects[of] = append(a.objects[of], o)
}

// usual returns a pod of typical size.
func usual(set string, n int) *corev1.Pod {
	yes := true
	p := pod(fmt.Sprintf("%s-%d", set, n), nil, fmt.Sprintf("10.0.%d.%d", n/250, n%250+1))
	p.TypeMeta, p.Namespace, p.UID = typeIn("shop/pods"), "shop", types.UID(p.Name)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: "u", Controller: &yes}}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":"` + strings.Repeat("x", 4000) + `"}`)}}
	for k := range 30 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", k), Value: strings.Repeat("v", 40)})
	}
	return p
}

// many sets up a namespace with many sets, each with a plan that bridges its names. It starts a Syncer for
// each plan.
func many(tb testing.TB, sets, pods int) (*api, []*Syncer) {
	tb.Helper()
	a := newAPI(tb)
	var all []*plans.Plan
	for n := range sets {
		p := bridge()
		p.Source.Name = fmt.Sprintf("web%d", n)
		p.Destination.Name, p.ID, p.Names.Service, p.Count = p.Source.Name, p.Source.Name+"-abc", p.Source.Name, int32(pods)
		for k := range pods {
			a.add("shop/pods", usual(p.Source.Name, k))
		}
		for _, namespace := range []string{"shop", "mall"} {
			s := &corev1.Service{TypeMeta: typeIn(namespace + "/services"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Names.Service}}
			s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
			a.add(namespace+"/services", s)
		}
		all = append(all, p)
	}
	var keepers []*Syncer
	for _, p := range all {
		keepers = append(keepers, Start(tb.Context(), p, map[plans.Side]*Cluster{plans.Source: a.shared, plans.Destination: a.shared},
			func(context.Context, bool) error { return nil }, func(err error) { tb.Error(err) }))
	}
	for range keepers { // each has seen all objects
		<-a.made
	}
	return a, keepers
}

func TestThePlansOfANamespaceShareTheirWatches(t *testing.T) {
	a, _ := many(t, 50, 3)
	a.lock.Lock()
	defer a.lock.Unlock()
	for of, n := range a.watches {
		if n != 1 {
			t.Errorf("%d watches of %s", n, of)
		}
	}
	if a.all != 6 {
		t.Errorf("%d watches, expected one of pods, Services and EndpointSlices in each of two namespaces", a.all)
	}
}

// BenchmarkFiftyPlansOfANamespace reports the cost of fifty Syncers: the number of open watches, and their
// heap, including the other end of their connections.
func BenchmarkFiftyPlansOfANamespace(b *testing.B) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		before := heap()
		a, keepers := many(b, 50, 10)
		after := heap()
		a.lock.Lock()
		b.ReportMetric(float64(a.all), "watches")
		a.lock.Unlock()
		b.ReportMetric(float64(after-before)/(1<<10), "KiB")
		for _, k := range keepers {
			k.Stop()
		}
	}
}
