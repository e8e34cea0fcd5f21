package controller_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

const (
	withoutMany = "--feature-gates=MaxUnavailableStatefulSet=false"
	elect       = "--leader-elect=true"
	many        = "  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}"
)

// gate returns the flags for a process with or without maxUnavailable.
func gate(on bool, more ...string) []string {
	if on {
		return more
	}
	return append(more, withoutMany)
}

// atOnce returns the maximum number of pods that an update had taken down at once.
func atOnce(trace []string) int {
	down, most := 0, 0
	for _, e := range trace {
		if e[0] == '-' {
			down++
		} else {
			down--
		}
		most = max(most, down)
	}
	return most
}

// roll updates the set and returns how many pods were down at once.
func (s *side) roll(t *testing.T, n int32, to string) int {
	t.Helper()
	s.taken()
	s.template(t, "roll", fmt.Sprintf("%q", to))
	s.until(t, "the update begins", func(context.Context) bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		return len(s.trace) > 0
	})
	s.updated(t, n)
	return atOnce(s.taken())
}

// 961-43, 961-56: the webhook and the controller each run with and without the feature. If two replicas
// disagree, the leader decides about pods, before and after the other replica becomes the leader. Any
// of them validates new slices.
func TestReplicasThatDoNotAgreeAboutAFeature(t *testing.T) {
	s := away(t)
	home := newSide(t, bed.East, "stsmigrate")
	home.listen(t, &coordinationv1.LeaseList{})
	installed, err := wild()
	if err != nil {
		t.Fatal(err)
	}
	size := map[bool]int{true: 2, false: 1}
	for k, c := range []struct{ answers, leads bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		leader := start(t, gate(c.leads, elect)...)
		home.until(t, "it leads", func(ctx context.Context) bool {
			var l coordinationv1.Lease
			err := home.Get(ctx, client.ObjectKey{Namespace: home.namespace, Name: "slicecontroller.apps.stsmigrate.dev"}, &l)
			return err == nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
		})
		if k == 0 {
			if err := s.Create(t.Context(), s.written(t, "  replicas: 4\n"+many)); err != nil {
				t.Fatal(err)
			}
		}
		s.updated(t, 4)
		follower := start(t, gate(c.answers, append(slices.Clone(installed.Webhook), elect)...)...)
		if err := installed.Answers(t.Context()); err != nil {
			t.Fatal(err)
		}
		another := s.written(t, "  replicas: 0\n"+many)
		another.SetName(fmt.Sprintf("another-%d", k))
		if err := s.Create(t.Context(), another); (err == nil) != c.answers {
			t.Errorf("%+v: another slice that uses it: %v", c, err)
		}
		if got := s.roll(t, 4, fmt.Sprintf("%d by the leader", k)); got != size[c.leads] {
			t.Errorf("%+v: the leader took %d down at once", c, got)
		}
		if err := leader.Stop(); err != nil {
			t.Fatal(err)
		}
		if got := s.roll(t, 4, fmt.Sprintf("%d by the other", k)); got != size[c.answers] {
			t.Errorf("%+v: the other took %d down at once", c, got)
		}
		if err := follower.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// 961-32, 961-45, 2599-31: an upgrade, a downgrade and an upgrade, for sets that use the
// feature and one that does not.
func TestUpgradeDowngradeUpgrade(t *testing.T) {
	sets := map[string]struct {
		spec string
		down map[bool]int // by whether the feature is on
	}{
		"ordered":  {"  updateStrategy: {rollingUpdate: {maxUnavailable: 3}}", map[bool]int{true: 3, false: 1}},
		"parallel": {"  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {maxUnavailable: 3}}", map[bool]int{true: 3, false: 1}},
		"plain":    {"", map[bool]int{true: 1, false: 1}},
	}
	sides := map[string]*side{}
	for phase, on := range []bool{true, false, true} {
		p := start(t, gate(on)...)
		for name, set := range sets {
			s := sides[name]
			if s == nil {
				s = away(t, name)
				sides[name] = s
				if err := s.Create(t.Context(), s.written(t, "  replicas: 6\n"+set.spec)); err != nil {
					t.Fatal(err)
				}
			}
			s.updated(t, 6)
		}
		for name, set := range sets {
			if got := sides[name].roll(t, 6, fmt.Sprint(phase)); got != set.down[on] {
				t.Errorf("%s, with the feature %t: %d down at once", name, on, got)
			}
		}
		p.Kill()
	}
}

// 961-50, 961-46 to 961-48: the metrics that users watch are served, under the names of the KEPs.
func TestMetricsAreServed(t *testing.T) {
	s := away(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, "--metrics-bind-address="+address, "--metrics-secure=false", "--state-metrics")
	if err := s.Create(t.Context(), s.written(t, "  replicas: 2\n  updateStrategy: {type: EnforcedRollingUpdate}")); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 2)
	s.template(t, cluster.NeverReady, `"true"`)
	s.until(t, "the canary is broken", s.has("web-0", "web-1!"))
	s.until(t, "and running", func(ctx context.Context) bool {
		var p corev1.Pod
		return s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "web-1"}, &p) == nil && p.Status.Phase == corev1.PodRunning && p.Annotations[cluster.NeverReady] == "true"
	})
	if err := s.patch(t.Context(), fmt.Sprintf(`{"template":{"metadata":{"annotations":{%q:null,"mended":"yes"}}}}`, cluster.NeverReady)); err != nil {
		t.Fatal(err)
	}
	s.updated(t, 2)
	of := fmt.Sprintf(`{pod_management_policy="OrderedReady",statefulset_name="web",statefulset_namespace=%q}`, s.namespace)
	want := []string{
		`workqueue_depth{controller="statefulset",name="statefulset"`, `workqueue_adds_total{controller="statefulset",name="statefulset"}`,
		`workqueue_queue_duration_seconds_bucket{controller="statefulset",name="statefulset"`, `workqueue_work_duration_seconds_bucket{controller="statefulset",name="statefulset"`,
		"rest_client_requests_total{", "statefulset_reconcile_delay_bucket{",
		"statefulset_controller_statefulset_max_unavailable" + of + " 1\n", "statefulset_controller_statefulset_unavailable_replicas" + of + " 0\n",
		fmt.Sprintf("statefulset_forced_pod_replacements_total{name=\"web\",namespace=%q,result=\"success\"} 1\n", s.namespace),
		"statefulset_enforced_rolling_updates_total{result=\"completed\"} ", "statefulset_stuck_pod_duration_seconds_count 1\n",
	}
	var said string
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(want), func(line string) bool { return strings.Contains(said, "\n"+line) })
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) { // the status is written before its metrics are counted
		var err error
		said, err = scrape(ctx, address)
		return len(missing()) == 0, err
	})
	if err != nil {
		t.Errorf("there is no %q: %v\n%s", missing(), err, said)
	}
}

// scrape reads the metrics of a program.
func scrape(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	return string(raw), err
}
