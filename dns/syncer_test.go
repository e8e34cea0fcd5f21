package dns

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

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
		p := &plans.Plan{ID: "x", Source: plans.Ref{Name: "web"}, Count: 1, Names: plans.Names{Service: "web"}}
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
