package dns

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typeddiscoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A Syncer that has been replaced recreates no object that was deleted for good, and deletes an object that
// it created too late: its objects carry no epoch.
func TestWhatWasTakenAwayIsNotMadeAgain(t *testing.T) {
	unknown := errors.New("nobody answers")
	for _, c := range []struct {
		name   string
		before error // the result of leave before it creates an object
		after  error // and after that
		want   int
	}{
		{"it may", nil, nil, 1},
		{"it may not", ErrOver, nil, 0},
		{"the node of the pod is unknown", unknown, nil, 0},
		{"it slept before its write", nil, ErrOver, 0},
		{"nobody can tell any more", nil, unknown, 1},
	} {
		p := &plans.Plan{ID: "x", Source: plans.Ref{Name: "web"}, Destination: plans.Ref{Name: "web"}, Count: 1, Names: plans.Names{Service: "web"}}
		api := fake.NewClientset()
		asked := 0
		d := pendingWrites{
			Directory: plans.Directory{Namespace: "shop", On: plans.Source}, client: api,
			services: view{cache: newShelf(), who: "web"}, slices: view{cache: newShelf(), who: "x"}, others: view{cache: newShelf(), who: "x"},
			leave: func(_ context.Context, anew bool) error {
				if asked++; !anew {
					t.Errorf("%s: it is not asked whether it may make something", c.name)
				}
				if asked == 1 {
					return c.before
				}
				return c.after
			},
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "u"}}
		pod.Status.PodIPs, pod.Status.Conditions = []corev1.PodIP{{IP: "10.0.0.1"}}, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pods := map[plans.Side][]*corev1.Pod{plans.Destination: {pod}}
		model := &corev1.Service{}
		if err := d.sync(t.Context(), p, pods, model); !errors.Is(err, c.before) && !errors.Is(err, c.after) {
			t.Errorf("%s: %v", c.name, err)
		}
		services, err := api.CoreV1().Services("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(services.Items) != c.want {
			t.Errorf("%s: Services %v, %v", c.name, services.Items, err)
		}
		asked = 0
		if err := d.services.cache.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		_ = d.sync(t.Context(), p, pods, model) // it returns the same error as above
		slices, err := api.DiscoveryV1().EndpointSlices("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(slices.Items) != c.want {
			t.Errorf("%s: EndpointSlices %v, %v", c.name, slices.Items, err)
		}
	}
}

// slow is a client whose requests about slices take long.
type slow struct {
	kubernetes.Interface
	after time.Duration
}

func (s slow) DiscoveryV1() typeddiscoveryv1.DiscoveryV1Interface {
	<-time.After(s.after)
	return s.Interface.DiscoveryV1()
}

// IsWatchListSemanticsUnSupported says what the fake client says.
func (slow) IsWatchListSemanticsUnSupported() bool { return true }

// A cluster that refuses writes, or does not answer, stops the names of no other one. A slice that is refused stops no
// other slice. What has failed is retried with pauses.
func TestARefusalStopsNoOtherNames(t *testing.T) {
	const first, second = "stsmigrate-web-abc-ipv4-0", "stsmigrate-web-abc-ipv4-1"
	refused := errors.New("a webhook does not answer")
	for name, c := range map[string]struct {
		source bool          // writes to the source fail, else those to the destination
		slice  string        // of this slice, or of all
		after  time.Duration // they take so long
		want   []string      // the slices that are written on the destination within a second
	}{
		"a cluster refuses":           {source: true, want: []string{first, second}},
		"a cluster does not answer":   {source: true, after: time.Minute, want: []string{first, second}},
		"the first slice is refused":  {slice: first, want: []string{second}},
		"the second slice is refused": {slice: second, want: []string{first}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := bridge()
				p.Destination.Cluster = "2"
				at := func(name, ip string) *corev1.Pod {
					o := of("web", pod(name, nil, ip))
					o.Namespace = "mall"
					return o
				}
				source, destination := newScene(t, street()[1:]...), newScene(t, append(street()[1:], at("web-2", "10.1.0.2"), at("web-102", "10.1.0.102"))...)
				var tries, errs atomic.Int32
				bad := destination
				if c.source {
					bad = source
				}
				bad.PrependReactor("update", ofSlices, func(a clienttesting.Action) (bool, runtime.Object, error) {
					next, _ := a.(clienttesting.UpdateAction)
					if c.slice != "" && next.GetObject().(metav1.Object).GetName() != c.slice { //nolint:forcetypeassert // of slices only
						return false, nil, nil
					}
					tries.Add(1)
					return true, nil, refused
				})
				bad.client = slow{bad.client, c.after}
				k := Start(t.Context(), p, map[plans.Side]*Cluster{plans.Source: source.Cluster, plans.Destination: destination.Cluster},
					func(context.Context, bool) error { return nil }, func(error) { errs.Add(1) })
				defer k.Stop()
				<-time.After(10 * time.Minute)
				for _, moved := range []*corev1.Pod{at("web-2", "10.1.1.2"), at("web-102", "10.1.1.102")} {
					if _, err := destination.CoreV1().Pods("mall").Update(t.Context(), moved, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				<-time.After(time.Second)
				for _, slice := range c.want {
					have, err := destination.DiscoveryV1().EndpointSlices("shop").Get(t.Context(), slice, metav1.GetOptions{})
					if err != nil || !strings.HasPrefix(have.Endpoints[0].Addresses[0], "10.1.1.") {
						t.Errorf("%s has not the new address: %v (%v)", slice, have.Endpoints, err)
					}
				}
				later()
				if errs.Load() == 0 || errs.Load() > 8 || tries.Load() > 300 {
					t.Errorf("%d tries and %d errors in 10 minutes, expected a back-off of 10 seconds, and a report for each outage", tries.Load(), errs.Load())
				}
			})
		})
	}
}

// Two Syncers with different views of the pods do not overwrite each other forever: only the one with
// permission writes.
func TestNothingIsChangedWithoutLeave(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-x-ipv4-0"}}
	for _, want := range []*discoveryv1.EndpointSlice{nil, {AddressType: discoveryv1.AddressTypeIPv4}} {
		api := fake.NewClientset(slice.DeepCopy())
		d := pendingWrites{client: api, leave: func(context.Context, bool) error { return ErrOver }}
		if err := d.bring(t.Context(), slice, want); !errors.Is(err, ErrOver) {
			t.Errorf("%v", err)
		}
		for _, a := range api.Actions() {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}
