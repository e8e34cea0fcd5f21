//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/e2e/bed"
	"github.com/stsmigrate/stsmigrate/test/e2e/history"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// TestEtcdMovesUnderItsClients takes one etcd of five members through four moves. The etcd is never
// recreated: every write that it acknowledged in the first move must exist after the last one. It
// has its quorum at all times (3335-50), and its members find each other across namespaces and
// clusters (3335-12, 3335-30).
func TestEtcdMovesUnderItsClients(t *testing.T) {
	b := clusters(t)
	s := fixture{set: "etcd", from: b.East, to: b.East, source: "db" + suite.suffix, destination: "db-new" + suite.suffix, replicas: 5, d: 1}
	s.create(t, append(s.around(true, 2379, 2380), s.etcdSet())...)
	s.available(t, s.places()[0])
	if !t.Run("to a namespace, a pod crashes", func(t *testing.T) {
		s.moveEtcd(t, []fault{{2, s.crash(0)}})
	}) {
		return
	}
	s, s.d = s.back(), 2
	s.budget(t)
	if !t.Run("back, the process is killed", func(t *testing.T) {
		s.moveEtcd(t, nil, 1, 3, 4)
	}) {
		return
	}
	s.source, s.to = s.destination, b.West
	s.create(t)
	s.budget(t)
	if !t.Run("to a cluster, a node is drained", func(t *testing.T) {
		s.moveEtcd(t, []fault{{1, s.drain(s.places()[0], b.East.Name+"-worker")}})
	}) {
		return
	}
	s, s.d = s.back(), 1
	s.budget(t)
	t.Run("and back, a pod crashes and the process is killed", func(t *testing.T) {
		s.moveEtcd(t, []fault{{3, s.crash(1)}}, 2)
	})
}

func (s fixture) etcdSet() *appsv1.StatefulSet {
	var members []string
	peer := func(name string) string {
		return fmt.Sprintf("http://%s.%s.%s.svc.cluster.local:2380", name, s.set, s.source)
	}
	for i := range s.replicas {
		name := fmt.Sprintf("%s-%d", s.set, i)
		members = append(members, name+"="+peer(name))
	}
	return s.statefulSet(corev1.Container{Name: "etcd", Image: bed.Image("etcd"), Args: []string{
		"--name=$(POD_NAME)", "--data-dir=/data/etcd", "--initial-cluster-state=new", "--initial-cluster=" + strings.Join(members, ","),
		"--listen-peer-urls=http://0.0.0.0:2380", "--listen-client-urls=http://0.0.0.0:2379", "--initial-advertise-peer-urls=" + peer("$(POD_NAME)"),
		fmt.Sprintf("--advertise-client-urls=http://$(POD_NAME).%s.%s.svc.cluster.local:2379", s.set, s.source),
	}}, "/readyz", 2379, claim("data", cluster.AttachedClass))
}

// budget sets maxUnavailable of the set's PodDisruptionBudget to the fixture's d.
func (s fixture) budget(t *testing.T) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"maxUnavailable":%d}}`, s.d)
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.source, Name: s.set}}
	if err := s.from.Client.Patch(t.Context(), pdb, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// moveEtcd moves the set under a client on the source's side. If the destination is in another
// cluster, a second client there looks up the names.
func (s fixture) moveEtcd(t *testing.T, faults []fault, kills ...int32) {
	t.Helper()
	writer := s.client(t, s.places()[0], 4)
	watchers := []caller{writer}
	if s.from != s.to {
		watchers = append(watchers, s.client(t, s.places()[1], 0))
	}
	report, r := s.move(t, faults, kills...)
	if limit := s.d + len(faults); report.MaxUnavailable > limit || report.MaxUnavailable > 2 {
		t.Errorf("witness: %d ordinals were down at once, expected %d at most, and a quorum of three", report.MaxUnavailable, min(limit, 2))
	}
	calls := writer.judge(t, s, report, &r)
	if verdict := history.Linearizable(calls, 2*time.Minute); verdict != porcupine.Ok {
		t.Errorf("the history of %d calls is not linearizable: %s", len(calls), verdict)
	}
	for _, w := range watchers {
		s.rightNames(t, w)
	}
	r.scenario = "etcd, " + strings.ReplaceAll(t.Name()[strings.IndexByte(t.Name(), '/')+1:], "_", " ")
	suite.rows = append(suite.rows, r)
	// Only now do the members get their new peer addresses.
	suffix := fmt.Sprintf("%s.%s.svc.cluster.local", s.set, s.destination)
	if err := writer.ask(t.Context(), "POST", "client", "rename", map[string]string{"suffix": suffix, "port": "2380"}, nil); err != nil {
		t.Error(err)
	}
	whenFailed(t, s.run(t, 0, "finalize", s.set, "--yes"))
	s.available(t, s.places()[1])
	s.nothingDestroyed(t)
	for _, w := range watchers {
		w.gone(t)
	}
}

// client starts a client in a place, and waits until it works.
func (s fixture) client(t *testing.T, p place, workers int) caller {
	t.Helper()
	var endpoints []string
	for _, h := range s.hosts() {
		if strings.Contains(h, "."+s.source+".svc") {
			endpoints = append(endpoints, h+":2379")
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "client"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "client", Image: bed.Image("etcdclient"), ImagePullPolicy: corev1.PullNever,
		Args: []string{"-endpoints", strings.Join(endpoints, ","), "-names", strings.Join(s.hosts(), ","), "-workers", fmt.Sprint(workers)},
	}}}}
	if err := p.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Minute, "the client works", func(ctx context.Context) error {
		var state history.State
		if err := p.ask(ctx, "GET", "client", "state", nil, &state); err != nil {
			return err
		}
		if workers > 0 && state.Calls-state.Failures < 50 {
			return fmt.Errorf("%d calls, %d failed: %s", state.Calls, state.Failures, state.Last)
		}
		return nil
	})
	return caller{p, "client"}
}

// rightNames fails the test on a wrong answer for a name, and on a name that was never answered.
func (s fixture) rightNames(t *testing.T, p caller) {
	t.Helper()
	var state history.State
	if err := p.ask(t.Context(), "GET", p.pod, "state", nil, &state); err != nil {
		t.Fatal(err)
	}
	for name, n := range state.Names {
		switch {
		case n.Wrong != "":
			t.Errorf("in %s: %s", p.Name, n.Wrong)
		case n.Answers == 0:
			t.Errorf("in %s: %s was never answered: %s", p.Name, name, n.Last)
		}
		whenFailed(t, fmt.Sprintf("in %s: %s: %d answers, %d without, longest gap %s, last %s", p.Name, name, n.Answers, n.Failures, n.Gap.Round(time.Millisecond), n.Last))
	}
}

// crash kills the process of a member that is still on the source.
func (s fixture) crash(ordinal int32) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		name := fmt.Sprintf("%s-%d", s.set, ordinal)
		var pod corev1.Pod
		if err := s.from.Client.Get(t.Context(), client.ObjectKey{Namespace: s.source, Name: name}, &pod); err != nil {
			t.Errorf("crash: %v", err)
			return ""
		}
		nodes, err := clusters(t).Nodes(s.from)
		if err != nil {
			t.Errorf("crash: %v", err)
			return ""
		}
		for _, n := range nodes {
			if n.String() == pod.Spec.NodeName {
				if err := n.Command("pkill", "-KILL", "-f", "--", "--name="+name+" ").Run(); err != nil {
					t.Errorf("crash of %s on %s: %v", name, n, err)
				}
			}
		}
		return name + ": its process was killed on the source"
	}
}
