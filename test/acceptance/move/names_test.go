package move_test

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// 3335-24, 3335-30, 3335-32
func TestEveryPodIsFoundUnderBothItsNames(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		words := []string{"bridge (every pod is found under its old and its new name on both sides, until the end)"}
		if s.source.namespace != s.destination.namespace { // else both names are the same
			words = append(words, "OLD NAME", "web-2.web."+s.source.namespace+".svc", "web-2.web."+s.destination.namespace+".svc")
		}
		run(t, s.planArgs()...).expect(t, done, words...)
		run(t, s.applyArgs("--pause-after", "1")...).expect(t, done, "paused before web-1 Tighten")
		s.found(s.source, s.destination) // one pod has moved

		keeper := start(t, s.args("names", "-w")...)
		keeper.until("keeps both names on both sides")
		for pod, on := range map[string]*end{"web-0": s.source, "web-2": s.destination} {
			s.restarted(on, pod)
			s.found(s.source, s.destination)
		}
		run(t, s.args("resume")...).expect(t, failed, "are kept by", "end that command with Ctrl-C first")
		keeper.signal(syscall.SIGINT)
		keeper.end().expect(t, done)

		run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
		s.found(s.source, s.destination) // all have moved
		run(t, s.args("finalize")...).expect(t, done)
		s.unbridged()
		run(t, s.args("names", "-w")...).expect(t, failed, "its names are gone")
	})
}

// Clients may need the old names for longer than the source exists.
func TestNamesOutliveTheSourceOnRequest(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		s.planned()
		run(t, s.applyArgs()...).expect(t, done)
		run(t, s.args("names", "--remove", "--yes")...).expect(t, failed, "is under way")
		run(t, s.args("finalize", "--keep-names")...).expect(t, done, "finalized", "still answered", "names", "--remove")
		s.found(s.source, s.destination)

		keeper := start(t, s.args("names", "-w")...)
		keeper.until("keeps both names on both sides")
		s.restarted(s.destination, "web-1")
		s.found(s.source, s.destination)
		run(t, s.args("names", "--remove", "--yes")...).expect(t, failed, "are kept by", "end that command with Ctrl-C first")
		keeper.signal(syscall.SIGINT)
		keeper.end().expect(t, done)

		if s.mode == reimport { // by a kubeconfig without the source's cluster, as if it were switched off
			var system corev1.Namespace
			if err := s.source.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
				t.Fatal(err)
			}
			keeper := start(t, "names", "web", "-w", "--source-gone", string(system.UID), "-n", s.destination.namespace, "--kubeconfig", s.destination.cluster.Kubeconfig)
			keeper.until("keeps both names on both sides")
			s.restarted(s.destination, "web-1")
			s.found(s.destination)
			keeper.signal(syscall.SIGINT)
			keeper.end().expect(t, done)
		}

		// A second move of the set would yield two answers for one name.
		back := []string{
			"plan", "web", "--name", "back", "-n", s.destination.namespace, "--kubeconfig", s.destination.cluster.Kubeconfig,
			"--to-kubeconfig", s.source.cluster.Kubeconfig, "--to-namespace", s.source.namespace,
		}
		run(t, back...).expect(t, blocked, "it keeps the names of plan web-", "--remove")

		run(t, s.args("names", "--remove", "--yes")...).expect(t, done, "delete EndpointSlice")
		s.unbridged()
		run(t, s.args("names", "--remove", "--yes")...).expect(t, done, "nothing to do")
		run(t, back...).expect(t, done)
	})
}

// With two namespaces in two clusters, each cluster has to answer a name that no Service of its own answers.
func TestNamesOfTheOtherClusterAreAnsweredToo(t *testing.T) {
	t.Parallel()
	s := newMigration(t, reimport, options{replicas: 2})
	s.destination = newEnd(t, bed.West, s.source.namespace+"-new")
	run(t, s.planArgs()...).expect(t, blocked, "names", "namespace "+s.source.namespace+"-new on the source", "it does not exist")
	// The west already has a namespace with the source's name.
	east, west := newEnd(t, bed.East, s.destination.namespace), &end{Client: s.destination.Client, cluster: bed.West, namespace: s.source.namespace}
	s.planned()
	before, there := s.state(s.source), s.names("destination")
	run(t, s.applyArgs()...).expect(t, done, "moved: 2 ordinals")
	s.found(s.source, s.destination, east, west)
	run(t, s.args("abort")...).expect(t, done)
	s.asBefore(before, there)
	s.unbridged()
	for _, on := range []*end{east, west} {
		if !s.gone(on, &corev1.Service{}, "web") {
			t.Errorf("the Service that stood in in %s is still there", on.namespace)
		}
	}
}

// A pod that its peers cannot find counts as down: the next one stays up.
func TestAnOrdinalHasNotArrivedBeforeItIsFound(t *testing.T) {
	inBothModes(t, options{replicas: 2}, func(s *migration) {
		t := s.t
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.source.namespace, Name: "no-slices"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/endpointslices.discovery.k8s.io": resource.MustParse("1")}},
		}
		s.create(s.source, quota)
		s.eventually("the quota counts", func(ctx context.Context) bool {
			return s.source.Get(ctx, client.ObjectKeyFromObject(quota), quota) == nil && len(quota.Status.Used) > 0
		})
		s.planned()
		p := start(t, s.applyArgs("--step-timeout", "3s")...)
		p.until("overdue", "web-1.web."+s.source.namespace+".svc resolves to its address")
		p.insists(syscall.SIGINT)
		p.end().expect(t, inFlight, "will try again", "exceeded quota", "stopped in flight: ")
		s.sliceIs(s.source, 0, 1)
		s.sliceIs(s.destination, 1, 1)
		if err := s.source.Delete(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
		run(t, s.args("resume")...).expect(t, done, "moved: 2 ordinals")
		s.found(s.source, s.destination)
	})
}

func TestNamesAreLeftAloneOnRequest(t *testing.T) {
	inBothModes(t, options{replicas: 1}, func(s *migration) {
		t := s.t
		run(t, s.planArgs("--names", "none")...).expect(t, done, "names        not changed: each side finds only its own pods")
		p := start(t, s.applyArgs()...)
		p.until("web-0 Grow", "available")
		s.unbridged()
		p.end().expect(t, done)
		run(t, s.args("names", "-w")...).expect(t, failed, "leaves names alone")
	})
}

// found waits until each of the ends has exactly every pod under its hostname and its address, on whichever
// side the pod runs.
func (s *migration) found(in ...*end) {
	s.t.Helper()
	for _, on := range in {
		s.eventually("every pod is found in "+on.namespace, func(ctx context.Context) bool {
			return maps.Equal(s.addresses(ctx), entries(ctx, on))
		})
	}
}

// addresses returns the addresses of the pods of both sides, by name, or nil if one is not known yet.
func (s *migration) addresses(ctx context.Context) map[string]string {
	out := map[string]string{}
	for _, on := range []*end{s.source, s.destination} {
		var pods corev1.PodList
		if on.List(ctx, &pods, client.InNamespace(on.namespace)) != nil {
			return nil
		}
		for _, p := range pods.Items {
			if p.Status.PodIP == "" {
				return nil
			}
			out[p.Name] = p.Status.PodIP
		}
	}
	return out
}

// entries returns the records that a DNS server would serve, by hostname.
func entries(ctx context.Context, on *end) map[string]string {
	var all discoveryv1.EndpointSliceList
	if on.List(ctx, &all, client.InNamespace(on.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "web"}) != nil {
		return map[string]string{"?": ""}
	}
	out := map[string]string{}
	for _, slice := range all.Items {
		for _, e := range slice.Endpoints {
			if e.Hostname == nil || e.Conditions.Ready == nil || !*e.Conditions.Ready {
				continue
			}
			if _, twice := out[*e.Hostname]; twice {
				out[*e.Hostname] = "twice"
			} else {
				out[*e.Hostname] = e.Addresses[0]
			}
		}
	}
	return out
}

// restarted deletes a pod and waits until it is back with another UID, has an address, and is Ready.
func (s *migration) restarted(on *end, name string) {
	s.t.Helper()
	var old, now corev1.Pod
	if err := on.Get(s.t.Context(), on.key(name), &old); err != nil {
		s.t.Fatal(err)
	}
	if err := on.Delete(s.t.Context(), &old); err != nil {
		s.t.Fatal(err)
	}
	s.eventually(name+" is back", func(ctx context.Context) bool {
		return on.Get(ctx, on.key(name), &now) == nil && now.UID != old.UID && now.Status.PodIP != "" &&
			slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
	})
}

// unbridged checks that no EndpointSlice of ours is left.
func (s *migration) unbridged() {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var left discoveryv1.EndpointSliceList
		if err := on.List(s.t.Context(), &left, client.MatchingLabels{discoveryv1.LabelManagedBy: "names.stsmigrate.dev"}); err != nil {
			s.t.Fatal(err)
		}
		for _, slice := range left.Items {
			if slice.Namespace == s.source.namespace || slice.Namespace == s.destination.namespace {
				s.t.Errorf("EndpointSlice %s/%s is left", slice.Namespace, slice.Name)
			}
		}
	}
}
