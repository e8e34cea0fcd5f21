package dns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// fixture is a cluster whose watches break and whose lists fail when a test requests it.
type fixture struct {
	*fake.Clientset
	*Cluster
	t *testing.T
	// away are the kinds that can be neither listed nor watched; mute are the kinds that cannot be watched.
	away, mute map[string]bool
	// pods are the watches of pods that were opened, the last one last.
	pods []*watch.FakeWatcher
}

func newScene(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	told := utilruntime.ErrorHandlers // one handler waits on the clock of another bubble
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = told })
	s := &fixture{Clientset: fake.NewClientset(objects...), t: t, away: map[string]bool{}, mute: map[string]bool{}}
	s.Cluster = clusterOf(s.Clientset)
	s.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return s.away[a.GetResource().Resource], nil, syscall.ECONNREFUSED
	})
	s.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if s.away[a.GetResource().Resource] || s.mute[a.GetResource().Resource] {
			return true, nil, syscall.ECONNREFUSED
		}
		if a.GetResource().Resource != ofPods || a.GetNamespace() != "shop" {
			return false, nil, nil
		}
		w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
		s.pods = append(s.pods, w)
		return true, w, nil
	})
	return s
}

// keep starts a Syncer and waits until it is idle.
func (s *fixture) keep(p *plans.Plan) *Syncer {
	s.t.Helper()
	k := Start(s.t.Context(), p, map[plans.Side]*Cluster{plans.Source: s.Cluster, plans.Destination: s.Cluster},
		func(context.Context, bool) error { return nil }, func(err error) { s.t.Error(err) })
	synctest.Wait()
	return k
}

// set makes a kind away or mute, or reachable again.
func (s *fixture) set(how map[string]bool, kind string, is bool) {
	s.Lock()
	defer s.Unlock()
	how[kind] = is
}

// later waits until everything that failed has been retried.
func later() {
	<-time.After(10 * time.Minute) // in the bubble's time
	synctest.Wait()
}

// cut ends the watch of pods with an error that requires a new list.
func (s *fixture) cut() {
	expired := apierrors.NewResourceExpired("too old").Status()
	s.pods[len(s.pods)-1].Error(&expired)
	synctest.Wait()
}

// change gives the pod of the street another address, without a watch event.
func (s *fixture) change(ip string) *corev1.Pod {
	s.t.Helper()
	o := of("web", pod("web-0", nil, ip))
	if err := s.Tracker().Update(corev1.SchemeGroupVersion.WithResource(ofPods), o, "shop"); err != nil {
		s.t.Fatal(err)
	}
	return o
}

// answers requires the address under which a plan's first pod is found in namespace mall.
func (s *fixture) answers(p *plans.Plan, want string) {
	s.t.Helper()
	have, err := s.DiscoveryV1().EndpointSlices("mall").Get(s.t.Context(), "stsmigrate-"+p.ID+"-ipv4-0", metav1.GetOptions{})
	if err != nil || len(have.Endpoints) != 1 || have.Endpoints[0].Addresses[0] != want {
		s.t.Errorf("plan %s: %v (%v), expected %s", p.ID, have.Endpoints, err, want)
	}
}

// writes returns the write requests, and clears the recorded ones.
func (s *fixture) writes() (out []string) {
	for _, a := range s.Actions() {
		if !slices.Contains([]string{"list", "watch", "get"}, a.GetVerb()) {
			out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	s.ClearActions()
	return slices.Compact(out) // its own write may not have come back before it looks again
}

// of makes a set of namespace shop the owner of a pod.
func of(set string, p *corev1.Pod) *corev1.Pod {
	yes := true
	p.Namespace, p.OwnerReferences = "shop", []metav1.OwnerReference{{Name: set, Controller: &yes}}
	return p
}

// street returns a set web with one pod, and the Services on both sides.
func street() []runtime.Object {
	out := []runtime.Object{of("web", pod("web-0", nil, "10.0.0.1"))}
	for _, namespace := range []string{"shop", "mall"} {
		out = append(out, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peers"}})
	}
	return out
}

// answer returns the slice that a plan has for the pod of the street.
func answer(p *plans.Plan, ip string) *discoveryv1.EndpointSlice {
	pods := map[plans.Side][]*corev1.Pod{plans.Source: {pod("web-0", nil, ip)}}
	return Want(p, plans.Directory{On: plans.Destination, Namespace: "mall", Lists: plans.Destination}, &corev1.Service{}, pods, nil)["stsmigrate-"+p.ID+"-ipv4-0"]
}

// An object that is not listed yet looks like a deleted one. So nothing is created, changed or deleted before
// every list has arrived.
func TestNothingIsWrittenBeforeAllHasCome(t *testing.T) {
	for _, late := range []string{ofPods, ofServices, ofSlices} {
		synctest.Test(t, func(t *testing.T) {
			p := bridge()
			s := newScene(t, append(street(), answer(p, "10.0.0.7"))...)
			s.set(s.away, late, true)
			s.keep(p)
			later()
			if wrote := s.writes(); len(wrote) > 0 {
				t.Errorf("%s have not come: %v", late, wrote)
			}
			s.set(s.away, late, false)
			later()
			s.answers(p, "10.0.0.1")
			if wrote := s.writes(); !slices.Equal(wrote, []string{"update " + ofSlices}) {
				t.Errorf("%s have come: %v", late, wrote)
			}
		})
	}
}

// A Syncer that joins others while their API server is away waits for it: the cached objects may be old.
// Changes that happened meanwhile reach all Syncers.
func TestWhoJoinsWhileNobodyIsHeardWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := bridge(), bridge()
		second.ID = "web-def"
		s := newScene(t, append(street(), answer(second, "10.0.0.2"))...)
		s.keep(first)
		s.answers(first, "10.0.0.1")
		s.writes()
		s.set(s.away, ofPods, true)
		s.cut()
		s.change("10.0.0.2")
		s.keep(second) // another writer has brought its slice up to date
		later()
		if wrote := s.writes(); len(wrote) > 0 {
			t.Errorf("while nobody is heard: %v", wrote)
		}
		s.set(s.away, ofPods, false)
		later()
		s.answers(first, "10.0.0.2")
		s.answers(second, "10.0.0.2")
		if wrote := s.writes(); !slices.Equal(wrote, []string{"update " + ofSlices}) {
			t.Errorf("once it is heard: %v", wrote)
		}
	})
}

// A list that no watch follows is outdated as soon as it is read.
func TestWhoJoinsWaitsForAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := bridge(), bridge()
		second.ID = "web-def"
		s := newScene(t, append(street(), answer(second, "10.0.0.2"))...)
		s.set(s.mute, ofPods, true)
		s.keep(first)
		later()
		s.writes()
		s.change("10.0.0.2")
		s.keep(second)
		later()
		if wrote := s.writes(); len(wrote) > 0 {
			t.Errorf("while pods are not watched: %v", wrote)
		}
	})
}

// A watch that ends is resumed where it stopped. A Syncer that joins then waits for nothing else.
func TestAWatchThatEndsIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := bridge(), bridge()
		second.ID = "web-def"
		s := newScene(t, street()...)
		s.keep(first)
		s.set(s.away, ofPods, true)
		s.pods[0].Stop()
		synctest.Wait()
		s.set(s.away, ofPods, false)
		later()
		if len(s.pods) != 2 {
			t.Fatalf("%d watches of pods, expected a second one", len(s.pods))
		}
		s.keep(second)
		s.answers(second, "10.0.0.1")
		s.pods[1].Modify(s.change("10.0.0.2"))
		synctest.Wait()
		s.answers(first, "10.0.0.2")
		s.answers(second, "10.0.0.2")
	})
}

// The watches continue when the plan that opened them leaves, end with the last plan, and are opened again
// for the next one.
func TestWatchesEndWithTheLastPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := bridge(), bridge()
		second.ID = "web-def"
		s := newScene(t, street()...)
		begins, stays := s.keep(first), s.keep(second)
		begins.Stop()
		synctest.Wait()
		s.pods[0].Modify(s.change("10.0.0.2"))
		synctest.Wait()
		s.answers(first, "10.0.0.1")
		s.answers(second, "10.0.0.2")
		stays.Stop()
		synctest.Wait()
		if len(s.pods) != 1 || !s.pods[0].IsStopped() || len(s.open) != 0 {
			t.Errorf("%d watches of pods, the first ended: %t; %d shelves are kept", len(s.pods), s.pods[0].IsStopped(), len(s.open))
		}
		s.change("10.0.0.3")
		s.keep(first)
		s.answers(first, "10.0.0.3")
	})
}

// A change of another plan's set wakes no Syncer. Neither does a change of a field that no slice contains.
func TestAKeeperHearsOfItsOwnSetOnly(t *testing.T) {
	s := newShelf()
	var rung []string
	for _, who := range []string{"web", "db"} {
		s.join(who, func() { rung = append(rung, who) })
	}
	hears := func(what string, err error, want ...string) {
		t.Helper()
		if err != nil || !slices.Equal(rung, want) {
			t.Errorf("%s: %v (%v), expected %v", what, rung, err, want)
		}
		rung = nil
	}
	web := func(change func(*corev1.Pod)) *corev1.Pod { return of("web", pod("web-0", change, "10.0.0.1")) }
	hears("the first list", s.Replace([]any{web(nil), of("other", pod("other-0", nil, "10.0.0.9"))}, ""), "web")
	hears("the same once more", s.Replace([]any{web(nil), of("other", pod("other-0", nil, "10.0.0.9"))}, ""))
	hears("a probe was run again", s.Update(web(func(p *corev1.Pod) {
		p.ResourceVersion, p.Status.Conditions[0].LastProbeTime = "2", metav1.Time{Time: time.Unix(2, 0)}
	})))
	hears("it is not ready", s.Update(web(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })), "web")
	hears("another pod", s.Add(of("other", pod("other-1", nil, "10.0.0.9"))))
	hears("it is another set's", s.Update(of("db", pod("web-0", nil, "10.0.0.1"))), "web", "db")
	hears("it is gone", s.Delete(of("db", pod("web-0", nil, "10.0.0.1"))), "db")
	hears("it comes back while nobody is heard", s.Replace([]any{web(nil)}, ""), "web")
	hears("and goes", s.Replace(nil, ""), "web")
}

// A cluster that the user has vouched to be gone receives no requests.
func TestASideThatIsGoneHasNoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bridge()
		p.Source.Cluster = "2"
		s := newScene(t, append(street(), answer(p, "10.0.0.1"))...)
		Start(t.Context(), p, map[plans.Side]*Cluster{plans.Destination: s.Cluster}, func(context.Context, bool) error { return nil }, func(err error) { t.Error(err) })
		synctest.Wait()
		if wrote := s.writes(); !slices.Equal(wrote, []string{"delete " + ofSlices}) {
			t.Errorf("%v, expected its pods to be answered no more", wrote)
		}
	})
}

// The control plane removes a pod from its slice later than the pod is gone. The name moves then, and not before.
func TestANameMovesWhenTheControlPlaneHasLetGoOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := "web-0"
		own := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "peers-x7k2p", Labels: map[string]string{discoveryv1.LabelServiceName: "peers", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}}}
		own.AddressType, own.Endpoints = discoveryv1.AddressTypeIPv4, []discoveryv1.Endpoint{{Hostname: &host, Addresses: []string{"10.0.9.9"}}}
		s, p := newScene(t, append(street(), own)...), bridge()
		k := s.keep(p)
		defer k.Stop()
		if got := s.writes(); len(got) > 0 {
			t.Errorf("it wrote %v while the control plane lists the name, expected nothing", got)
		}
		own = own.DeepCopy()
		own.Endpoints = nil
		if _, err := s.DiscoveryV1().EndpointSlices("mall").Update(t.Context(), own, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.answers(p, "10.0.0.1")
	})
}

// Another writer may take a slice of a plan over: it is the plan's all the same, and is brought back.
func TestASliceThatAnotherWriterTakesOverIsBroughtBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bridge()
		theirs := answer(p, "10.0.9.9")
		theirs.Labels[discoveryv1.LabelManagedBy] = "another"
		s := newScene(t, append(street(), theirs)...)
		k := s.keep(p)
		defer k.Stop()
		synctest.Wait()
		s.answers(p, "10.0.0.1")
	})
}

// Without its Service no name of a cluster is answered, whatever is listed for it. Before the Service was there, nothing
// is wrong.
func TestAServiceThatIsGoneIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScene(t, street()[:1]...), bridge()
		var said []string
		k := Start(t.Context(), p, map[plans.Side]*Cluster{plans.Source: s.Cluster, plans.Destination: s.Cluster},
			func(context.Context, bool) error { return nil }, func(err error) { said = append(said, err.Error()) })
		defer k.Stop()
		synctest.Wait()
		mall := s.CoreV1().Services("mall")
		for _, want := range []int{0, 1} {
			if len(said) != want || want > 0 && !strings.Contains(said[0], "Service mall/peers on the destination: it does not exist any more") {
				t.Fatalf("it reports %q, expected %d", said, want)
			}
			if _, err := mall.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "peers"}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			s.answers(p, "10.0.0.1")
			if err := mall.Delete(t.Context(), "peers", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
	})
}

// An update of a slice contains the whole slice. Of other objects, only the needed fields are kept.
func TestWhatIsKeptOfAnObject(t *testing.T) {
	p := usual("web", 0)
	kept, _ := slim(p)
	if text := fmt.Sprint(kept); strings.Contains(text, "SETTING") || strings.Contains(text, "f:status") {
		t.Errorf("a pod is kept with its settings: %s", text)
	}
	if again, _ := slim(kept); !equality.Semantic.DeepEqual(again, kept) {
		t.Errorf("cut down twice it is another one: %v, %v", again, kept)
	}
	service := &corev1.Service{}
	service.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80}}
	terms := func(ready bool) *discoveryv1.EndpointSlice {
		host := "web-0"
		e := discoveryv1.Endpoint{Hostname: &host, Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
		return &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{e}}
	}
	up, _ := slim(terms(true))
	if down, _ := slim(terms(false)); !equality.Semantic.DeepEqual(up, down) {
		t.Errorf("a slice of another writer rings whenever a pod becomes ready: %v, %v", up, down)
	}
	plan, there := bridge(), plans.Directory{Lists: plans.Destination}
	small, _ := kept.(*corev1.Pod)
	full := Want(plan, there, service, map[plans.Side][]*corev1.Pod{plans.Source: {p}}, nil)
	if got := Want(plan, there, service, map[plans.Side][]*corev1.Pod{plans.Source: {small}}, nil); len(got) != 1 || !same(got["stsmigrate-web-abc-ipv4-0"], full["stsmigrate-web-abc-ipv4-0"]) {
		t.Errorf("its slice is %v, expected %v", got, full)
	}
}
