//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/e2e/history"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// entrance is the Service by which the clients find the members.
const entrance = "entrance"

// Clients that never pause, of a Service and of a proxy before it, on both sides, see no request fail but one at most that an
// ordinal had when it left, while a set moves and is aborted, and when its names are kept after the end.
func TestClientsAreServedBetweenNamespaces(t *testing.T) {
	within(t, "clients").underClients(t, "two namespaces")
}

func TestClientsAreServedBetweenClusters(t *testing.T) {
	between(t, "clients-far").underClients(t, "two clusters")
}

func (s fixture) underClients(t *testing.T, name string) {
	t.Helper()
	if err := clusters(t).Bring(t.Context(), "requester"); err != nil {
		t.Fatal(err)
	}
	set := s.dataSet(cluster.SharedClass)
	// A member that is deleted answers until it is not listed any more, as a server behind a Service must.
	set.Spec.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3}}}
	front := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.source, Name: entrance},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": s.set}, Ports: []corev1.ServicePort{{Port: 8080}}},
	}
	s.started(t, set, front)
	all := []caller{s.requester(t, s.places()[0]), s.requester(t, s.places()[1])}
	all[0].asks(t)

	began := time.Now()
	s.run(t, 0, "apply", s.twinned(t), "--yes")
	all[1].asks(t) // since the first write
	moved := time.Now()
	s.run(t, 0, "abort", s.set, "--yes")
	aborted := time.Now()
	s.run(t, 0, "apply", s.twinned(t), "--yes")
	again := time.Now()
	s.run(t, 0, "finalize", s.set, "--yes", "--keep-names")
	finalized := time.Now()
	for _, c := range all {
		c.answered(t, 200)
	}
	ended := time.Now()
	s.available(t, s.places()[1])

	r := row{scenario: "clients, " + name, ordinals: int(s.replicas), d: s.d, wall: moved.Sub(began)}
	for side, c := range all {
		var calls []history.Call
		if err := c.ask(t.Context(), "GET", c.pod, "history", nil, &calls); err != nil {
			t.Fatal(err)
		}
		for k, by := range []string{"the Service", "a proxy"} {
			by += []string{", old side", ", new side"}[side]
			for _, phase := range []struct {
				name     string
				from, to time.Time
				moves    bool
			}{{"move", began, moved, true}, {"abort", moved, aborted, true}, {"second move", aborted, again, true}, {"finalize --keep-names", again, finalized, false}, {"after it", finalized, ended, false}} {
				s := judged(calls, k, phase.from, phase.to, side == 1)
				r.note("%s, %s: %d requests, %d failed, longest gap %.2f s", phase.name, by, s.requests, s.failed, s.gap.Seconds())
				r.acknowledged += s.requests - s.failed
				r.lost += s.failed
				r.gap = max(r.gap, s.gap)
				if s.requests-s.failed < 50 {
					t.Errorf("%s, %s: %d of %d requests were answered", phase.name, by, s.requests-s.failed, s.requests)
				}
				if most := map[bool]int{true: r.ordinals}[phase.moves]; s.failed > most {
					t.Errorf("%s, %s: %d of %d requests failed, expected %d at most", phase.name, by, s.failed, s.requests, most)
				}
			}
		}
		c.gone(t)
	}
	suite.rows = append(suite.rows, r)
	s.nothingDestroyed(t)
}

// twinned plans the move, with the twin of the Service on the destination.
func (s fixture) twinned(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	whenFailed(t, s.run(t, 0, "plan", s.set, "--twins", "--max-unavailable", fmt.Sprint(s.d), "--out", file))
	return file
}

// figures are what the requests for one URL say about a span of time.
type figures struct {
	requests, failed int
	gap              time.Duration
}

// judged judges the requests for a URL that began in a span. On the new side there is no Service before the first write of
// a plan and after an abort: there, those between the first answer and the last one count.
func judged(calls []history.Call, url int, from, to time.Time, new bool) (f figures) {
	first, last := to.UnixNano(), from.UnixNano()
	var of []history.Call
	for _, c := range calls {
		if c.Worker != url || c.Begun < from.UnixNano() || c.Begun > to.UnixNano() {
			continue
		}
		of = append(of, c)
		if c.Ended != 0 {
			first, last = min(first, c.Begun), max(last, c.Begun)
		}
	}
	if !new {
		first, last = from.UnixNano(), to.UnixNano()
	}
	for _, c := range of {
		if c.Begun < first || c.Begun > last {
			continue
		}
		f.requests++
		if c.Ended == 0 {
			f.failed++
		}
	}
	if first < last {
		f.gap = history.Gap(of, time.Unix(0, first), time.Unix(0, last))
	}
	return f
}

// requester starts a client in a place, with a proxy beside it.
func (s fixture) requester(t *testing.T, p place) caller {
	t.Helper()
	c := caller{p, "requester"}
	host := fmt.Sprintf("%s.%s.svc.cluster.local.:8080", entrance, p.namespace)
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = c.namespace, c.pod
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	for container, args := range map[string][]string{
		"requester": {"http://" + host + "/ordinal", "http://127.0.0.1:9090/ordinal"},
		"proxy":     {"proxy", "127.0.0.1:9090", host},
	} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: bed.Image("requester"), ImagePullPolicy: corev1.PullNever, Args: args})
	}
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return c
}

// asks waits until the client has had answers.
func (c caller) asks(t *testing.T) {
	t.Helper()
	c.answered(t, 50)
}

// answered waits until the client has had this many more answers.
func (c caller) answered(t *testing.T, more int) {
	t.Helper()
	had := -1
	eventually(t, 5*time.Minute, "the client has answers", func(ctx context.Context) error {
		var state history.State
		if err := c.ask(ctx, "GET", c.pod, "state", nil, &state); err != nil {
			return err
		}
		now := state.Calls - state.Failures
		if had < 0 {
			had = now
		}
		if now-had < more {
			return errors.New(state.Last)
		}
		return nil
	})
}
