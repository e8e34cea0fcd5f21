package move_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Clients of a Service of the old side and of its twin on the new one always have every ordinal but the one that moves,
// on the way there and back.
func TestClientsHaveEveryOrdinalButTheOneThatMoves(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		for _, on := range []*end{s.source, s.destination} {
			s.create(on, entryOf(on, "web-clients", map[string]string{"app": "web"}))
			s.create(on, entryOf(on, "web-2-external", map[string]string{"statefulset.kubernetes.io/pod-name": "web-2"}))
		}
		before := s.follow(s.source, "web-clients")
		s.eventually("the control plane lists every pod", func(context.Context) bool { return before.now() == 3 })
		run(t, s.planArgs()...).expect(t, done)
		old := s.follow(s.source, "web-clients")
		s.eventually("clients know every pod", func(context.Context) bool { return old.now() == 3 })
		old.forget()
		run(t, s.applyArgs("--pause-after", "2")...).expect(t, done, "paused before web-0 Tighten")
		next, single := s.follow(s.destination, "web-clients"), s.follow(s.source, "web-2-external")
		s.eventually("every pod is known on both sides", func(context.Context) bool { return old.now() == 3 && next.now() == 3 && single.now() == 1 })
		next.forget()
		run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
		s.eventually("every pod is known on both sides", func(context.Context) bool { return old.now() == 3 && next.now() == 3 })
		run(t, s.args("abort")...).expect(t, done)
		s.eventually("only the control plane lists for the Services", func(context.Context) bool { return old.now() == 3 && next.now() == 0 })
		if least := old.least(); least < 2 {
			t.Errorf("clients of the old side had %d endpoints at a time, expected 2 or more of 3", least)
		}
		s.unbridged()
	})
}

// A Service that nothing but the bridge serves holds a finalize, which keeps it served on request.
func TestAFinalizeKeepsWhatClientsHaveLeft(t *testing.T) {
	inBothModes(t, options{replicas: 1}, func(s *migration) {
		t := s.t
		s.create(s.source, entryOf(s.source, "web-clients", map[string]string{"app": "web"}))
		run(t, s.planArgs()...).expect(t, done, "Service web-clients: 1, 0 endpoints of its own", "the destination has no such Service")
		run(t, s.applyArgs()...).expect(t, done, "moved: 1 ordinals")
		old := s.follow(s.source, "web-clients")
		s.eventually("clients know the pod", func(context.Context) bool { return old.now() == 1 })
		run(t, s.args("finalize")...).expect(t, failed, "Service "+s.source.namespace+"/web-clients would have no endpoint", "--keep-names", "--ignore clients")
		run(t, s.args("finalize", "--keep-names")...).expect(t, done, "finalized")
		if old.now() != 1 {
			t.Errorf("clients find %d pods after finalize, expected 1", old.now())
		}
		run(t, s.args("names", "--remove", "--yes")...).expect(t, done, "delete EndpointSlice")
		s.unbridged()
	})
}

// entryOf returns a Service of clients with an address of its own.
func entryOf(on *end, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: on.namespace, Name: name},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// follower is a client that follows the EndpointSlices of a Service, as kube-proxy does.
type follower struct {
	lock   sync.Mutex
	slices map[string]int // the ready endpoints of each
	fewest int
}

// follow returns a follower, until the test ends.
func (s *migration) follow(on *end, service string) *follower {
	s.t.Helper()
	c, err := client.NewWithWatch(on.cluster.Config(), client.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := c.Watch(s.t.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace(on.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		s.t.Fatal(err)
	}
	f := &follower{slices: map[string]int{}}
	go func() {
		for event := range w.ResultChan() {
			f.learn(event)
		}
	}()
	return f
}

func (f *follower) learn(event watch.Event) {
	slice, ok := event.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.slices[slice.Name] = 0
	for _, e := range slice.Endpoints {
		if event.Type != watch.Deleted && e.Conditions.Ready != nil && *e.Conditions.Ready {
			f.slices[slice.Name]++
		}
	}
	f.fewest = min(f.fewest, f.sum())
}

func (f *follower) sum() (n int) {
	for _, ready := range f.slices {
		n += ready
	}
	return n
}

// now returns how many ready endpoints there are, and least how few there ever were since forget.
func (f *follower) now() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.sum()
}

func (f *follower) least() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.fewest
}

func (f *follower) forget() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.fewest = f.sum()
}
