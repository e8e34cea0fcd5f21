//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/witness"
)

// between returns a fixture in two clusters. within returns a fixture in two namespaces of one cluster.
func between(t *testing.T, namespace string) fixture {
	t.Helper()
	b := clusters(t)
	namespace += suite.suffix
	return fixture{set: "web", from: b.East, to: b.West, source: namespace, destination: namespace, replicas: 3, d: 1}
}

func within(t *testing.T, namespace string) fixture {
	t.Helper()
	b := clusters(t)
	namespace += suite.suffix
	return fixture{set: "web", from: b.East, to: b.East, source: namespace, destination: namespace + "-new", replicas: 3, d: 1}
}

// This part of the suite is fast enough for every change: claims, volumes and their data (3335-22,
// 3335-33).
func TestSmokeDataMovesBetweenClusters(t *testing.T) {
	s := between(t, "smoke")
	s.moveData(t, "data, two clusters", s.dataSet(cluster.SharedClass))
}

// 3335-33: the volume is unbound from one claim and bound to the other.
func TestDataMovesBetweenNamespacesInOrder(t *testing.T) {
	s := within(t, "ordered")
	set := s.dataSet(cluster.SharedClass)
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	s.moveData(t, "data, two namespaces, OrderedReady", set)
}

func TestDataOnAttachedVolumesMovesBetweenClusters(t *testing.T) {
	s := between(t, "attached")
	s.moveData(t, "data, attached volumes", s.dataSet(cluster.AttachedClass))
}

func TestAnOrdinalCountsOnlyAfterMinReadySeconds(t *testing.T) {
	s := between(t, "patient")
	set := s.dataSet(cluster.SharedClass)
	set.Spec.MinReadySeconds = 4
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	report := s.moveData(t, "data, minReadySeconds 4", set)
	for o := range s.replicas - 1 {
		ready, next := report.Spans[o+1].DestinationReady, report.Spans[o].SourceDeleting
		if next.Sub(ready) < 3*time.Second { // the condition's time has whole seconds
			t.Errorf("ordinal %d left %s after %d was ready, expected 4 s", o, next.Sub(ready), o+1)
		}
	}
}

func TestAPodThatIgnoresSIGTERMIsWaitedFor(t *testing.T) {
	s := within(t, "stubborn")
	set := s.dataSet(cluster.AttachedClass, "-stubborn")
	report := s.moveData(t, "data, SIGTERM ignored for 8 s", set)
	for o, span := range report.Spans {
		if span.SourceGone.Sub(span.SourceDeleting) < 7*time.Second || span.DestinationCreated.Before(span.SourceGone) {
			t.Errorf("ordinal %d: deleted %s, gone %s, on the destination %s: expected 8 s, and never both", o, span.SourceDeleting, span.SourceGone, span.DestinationCreated)
		}
	}
}

func TestWhatThePodNeedsComesAlong(t *testing.T) {
	s := between(t, "needy")
	own := metav1.ObjectMeta{Namespace: s.source, Name: "needs"}
	set := s.dataSet(cluster.WaitClass)
	pod := &set.Spec.Template.Spec
	pod.ServiceAccountName = own.Name
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: own.Name}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "secret", MountPath: "/secret"})
	c.Env = append(c.Env, corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: own.Name}, Key: "key"}}})
	s.moveData(t, "data, ConfigMap, Secret, ServiceAccount", set,
		&corev1.ServiceAccount{ObjectMeta: own},
		&corev1.ConfigMap{ObjectMeta: own, Data: map[string]string{"key": "value"}},
		&corev1.Secret{ObjectMeta: own, Data: map[string][]byte{"key": []byte("value")}})
}

func TestAPodThatNeverBecomesReadyIsReported(t *testing.T) {
	s := within(t, "hopeless")
	s.started(t, s.dataSet(cluster.AttachedClass, "-unready-in", s.destination))
	watch := s.listen(t.Context())
	w := s.witness(t)
	began := time.Now()
	file := s.plan(t)
	out := s.overdue(t, "apply", file, "--yes", "--step-timeout", "10s")
	if !strings.Contains(out, "web-2") {
		t.Errorf("the message does not name the pod:\n%s", out)
	}
	whenFailed(t, out)
	whenFailed(t, s.run(t, 0, "abort", "web", "--yes"))
	observed := watch()
	s.available(t, s.places()[0])
	r := row{scenario: "data, never ready: rolled back", ordinals: int(s.replicas), d: 1, wall: time.Since(began), gap: observed.gap}
	r.hear(t, w)
	s.judge(t, &r, observed)
	var left appsv1.StatefulSetList
	if err := s.to.Client.List(t.Context(), &left, client.InNamespace(s.destination)); err != nil || len(left.Items) > 0 {
		t.Errorf("sets of the destination after the abort: %v, %v", left.Items, err)
	}
	s.nothingDestroyed(t)
}

// moveData moves the data application and checks the observations of its members.
func (s fixture) moveData(t *testing.T, name string, set *appsv1.StatefulSet, needs ...client.Object) *witness.Report {
	t.Helper()
	s.started(t, set, needs...)
	return s.moveUnder(t, name, new(int))
}

// started creates the data application with what it needs, and waits until its members have found one another.
func (s fixture) started(t *testing.T, set *appsv1.StatefulSet, needs ...client.Object) {
	t.Helper()
	s.create(t, append(append(s.around(false, 8080), needs...), set)...)
	s.available(t, s.places()[0])
	s.acquainted(t)
}

// moveUnder moves the data application under faults and finalizes the move. The faults count in lost
// the ordinals that they take down, which may be down in addition to d.
func (s fixture) moveUnder(t *testing.T, name string, lost *int, faults ...fault) *witness.Report {
	t.Helper()
	watch := s.listen(t.Context())
	report, r := s.move(t, faults)
	observed := watch()
	r.scenario, r.gap = name, observed.gap
	if report.MaxUnavailable > s.d+*lost {
		t.Errorf("witness: %d ordinals were down at once, expected %d at most: %d by faults", report.MaxUnavailable, s.d+*lost, *lost)
	}
	s.judge(t, &r, observed)
	s.run(t, 0, "finalize", s.set, "--yes")
	err := s.from.Client.Get(t.Context(), client.ObjectKey{Namespace: s.source, Name: s.set}, &appsv1.StatefulSet{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the source set after finalize: %v, expected that it is gone", err)
	}
	s.available(t, s.places()[1])
	s.nothingDestroyed(t)
	return report
}

// judge compares the current state of the members with their earlier states, and adds the row to
// the summary.
func (s fixture) judge(t *testing.T, r *row, observed observed) {
	t.Helper()
	after := s.states(t.Context())
	for pod, state := range after {
		observed.take(pod, state)
		for _, n := range state.Records {
			r.acknowledged += n
		}
	}
	r.lost = observed.lost
	for w := range observed.wrong {
		t.Error(w)
	}
	if len(after) != int(s.replicas) {
		t.Errorf("%d members answer, expected %d", len(after), s.replicas)
	}
	suite.rows = append(suite.rows, *r)
}

// nothingDestroyed checks that the storage destroyed no volume.
func (s fixture) nothingDestroyed(t *testing.T) {
	t.Helper()
	if gone, err := clusters(t).Backend.Destroyed(); err != nil || len(gone) > 0 {
		t.Errorf("volumes whose data is gone: %v, %v", gone, err)
	}
}

// acquainted waits until every member has found every other member under its old name.
func (s fixture) acquainted(t *testing.T) {
	t.Helper()
	eventually(t, 5*time.Minute, "the members have found one another", func(ctx context.Context) error {
		states := s.states(ctx)
		if len(states) != int(s.replicas) {
			return fmt.Errorf("%d members answer", len(states))
		}
		for pod, state := range states {
			for name, n := range state.Names {
				if strings.Contains(name, "."+s.source+".svc") && n.Answers == 0 {
					return fmt.Errorf("%s has not found %s: %s", pod, name, n.Last)
				}
			}
		}
		return nil
	})
}

// memberState is the state that a member of the data application reports.
type memberState struct {
	Records map[string]int
	Wrong   []string
	Names   map[string]*history.Name
}

// states reads the states of the members on both sides.
func (s fixture) states(ctx context.Context) map[string]memberState {
	out := map[string]memberState{}
	for _, pod := range s.members() {
		for _, p := range s.places() {
			var state memberState
			ctx, cancel := context.WithTimeout(ctx, time.Second) // a pod that is just gone never responds
			if p.ask(ctx, "GET", pod, "state", nil, &state) == nil {
				out[pod] = state
			}
			cancel()
		}
	}
	return out
}

// heard holds what the members have reported over a time.
type observed struct {
	from    string // the namespace of the old names
	records map[string]map[string]int
	wrong   map[string]bool
	lost    int           // records that existed earlier
	gap     time.Duration // the longest time between two answers for one old name
}

func (h *observed) take(pod string, state memberState) {
	if h.records[pod] == nil {
		h.records[pod] = map[string]int{}
	}
	for dir, n := range state.Records {
		if was := h.records[pod][dir]; n < was {
			h.lost += was - n
			h.wrong[fmt.Sprintf("%s %s: %d records, but %d existed earlier", pod, dir, n, was)] = true
		}
		h.records[pod][dir] = n
	}
	for _, w := range state.Wrong {
		h.wrong[w] = true
	}
	for name, n := range state.Names {
		if strings.Contains(name, "."+h.from+".svc") {
			h.gap = max(h.gap, n.Gap)
		}
	}
}

// listen reads the states of the members repeatedly, because a member that restarts loses its
// results for names. The returned function ends this and returns what was collected.
func (s fixture) listen(ctx context.Context) func() observed {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	h := observed{from: s.source, records: map[string]map[string]int{}, wrong: map[string]bool{}}
	go func() {
		defer close(ended)
		for tick := time.NewTicker(500 * time.Millisecond); ; {
			for pod, state := range s.states(ctx) {
				h.take(pod, state)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() observed {
		cancel()
		<-ended
		return h
	}
}
