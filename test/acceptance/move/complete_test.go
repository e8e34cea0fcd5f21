package move_test

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Between namespaces and between clusters (3335-11, 3335-12), ordinal by ordinal until the destination has
// all (3335-18, 3335-25). The witness requires that the budgets follow (3335-21) and that no more ordinals
// are down than the plan allows (3335-14). It also requires that every ordinal leaves the top of the source
// and arrives at the lower end of the destination (3335-19, 3335-23). The retention policy would delete the
// claims with the set, but they stay (3335-35). At the end the source is gone, with everything of its own
// (3335-26).
func TestMovesASetToTheEnd(t *testing.T) {
	inBothModes(t, options{}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		s.planned()
		out := run(t, s.applyArgs()...).expect(t, done, "moved: 5 ordinals")
		s.arrived(before)
		s.shows(done, "Moved", "unavailable=0", "finalize")
		final := run(t, s.args("finalize")...).expect(t, done, "finalized")
		report := proper(t, w, 2)
		s.settled(before)
		s.destroysAgain(before)
		for _, r := range []result{out, final} {
			if strings.Contains(r.stdout+r.stderr, "canary") {
				t.Errorf("a Secret's value is in the output of %s", r.args[0])
			}
		}
		for o, span := range report.Spans {
			t.Logf("ordinal %d was unavailable for %s", o, span.DestinationReady.Sub(span.SourceDeleting).Round(time.Millisecond))
		}
	})
}

// 3335-28: no ordinal is on both sides, whenever the process dies.
func TestSurvivesTwentyKillsOnTheWay(t *testing.T) {
	inBothModes(t, options{}, func(s *migration) {
		t := s.t
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, seed))
		before := s.state(s.source)
		w := s.watched()
		s.planned()
		kills := s.killed(random, 17, s.applyArgs())
		s.arrived(before)
		kills += s.killed(random, 20-kills, s.args("finalize"))
		t.Logf("%d kills", kills)
		if kills < 10 {
			t.Errorf("the process lived through it with %d kills only", kills)
		}
		proper(t, w, 2)
		s.settled(before)
		s.destroysAgain(before)
	})
}

// killed runs a command and kills it, at most most times, until it succeeds. It returns how often the command
// was killed.
func (s *migration) killed(random *rand.Rand, most int, args []string) int {
	s.t.Helper()
	for kills := range most {
		p := start(s.t, args...)
		if random.IntN(4) > 0 {
			p.line() // so that it makes progress; otherwise it may die during the takeover
		}
		select {
		case <-p.ended:
		case <-time.After(20*time.Millisecond + time.Duration(random.Int64N(int64(380*time.Millisecond)))):
			p.signal(syscall.SIGKILL)
		}
		if r := p.end(); r.code != killed {
			r.expect(s.t, done)
			return kills
		}
		if !s.gone(s.destination, &corev1.ConfigMap{}, "stsmigrate-web") { // it may die before the plan is stored
			s.verified()
		}
	}
	run(s.t, args...).expect(s.t, done)
	return most
}

// arrived checks that every ordinal is on the destination with its own disks.
func (s *migration) arrived(before state) {
	s.t.Helper()
	s.ready(s.destination)
	s.sliceIs(s.source, s.start, 0)
	s.sliceIs(s.destination, s.start, s.replicas)
	same(s.t, "disks of the destination", before.handles(), s.state(s.destination).handles())
	var left corev1.PodList
	s.list(s.source, &left)
	if len(left.Items) != 0 {
		s.t.Errorf("%d pods are left on the source", len(left.Items))
	}
	nothingLost(s.t, before)
	s.verified()
}

// verified checks that both clusters are as the plan and its journal say.
func (s *migration) verified() {
	s.t.Helper()
	run(s.t, s.args("verify")...).expect(s.t, done, "facts are as the plan and its journal say")
}

// sliceIs checks the range of ordinals of a side. An empty range may start anywhere.
func (s *migration) sliceIs(on *end, start, replicas int32) {
	s.t.Helper()
	var set appsv1.StatefulSet
	s.read(on, &set)
	first := int32(0)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	if *set.Spec.Replicas != replicas || replicas > 0 && first != start {
		s.t.Errorf("set in %s has %d ordinals from %d on, want %d from %d on", on.namespace, *set.Spec.Replicas, first, replicas, start)
	}
}

// settled checks the end of a finalized move: the destination is as the source was, and nothing of the move
// is left.
func (s *migration) settled(before state) {
	s.t.Helper()
	after := s.state(s.destination)
	same(s.t, "volumes", before.Volumes, after.Volumes)
	same(s.t, "budgets of the destination", before.Budgets, after.Budgets)
	want := before.Set
	if want.Ordinals == nil {
		want.Ordinals = after.Set.Ordinals // the API may show a start of 0 explicitly
	}
	same(s.t, "set", want, after.Set)
	s.unmarked()
	s.verified()
	nothingLost(s.t, before)
	if !s.gone(s.source, &appsv1.StatefulSet{}, "web") {
		s.t.Error("the source set is still there")
	}
	for _, name := range s.names("source") {
		if strings.HasPrefix(name, "PersistentVolume") || strings.HasPrefix(name, "Pod/") {
			s.t.Errorf("the source still has %s", name)
		}
	}
}

// destroysAgain checks that the retention policies are back. When the highest ordinal is scaled down, its
// claims are deleted with their data, and nothing else is.
func (s *migration) destroysAgain(before state) {
	s.t.Helper()
	s.change(s.destination, &appsv1.StatefulSet{}, "web", `{"spec":{"replicas":4}}`)
	for _, claim := range []string{"data-web-4", "logs-web-4"} {
		s.destroyed(before.Volumes[claim].Handle)
		delete(before.Volumes, claim)
	}
	nothingLost(s.t, before)
}

// shows checks the status of the plan.
func (s *migration) shows(code int, words ...string) {
	s.t.Helper()
	run(s.t, s.args("status")...).expect(s.t, code, words...)
}
