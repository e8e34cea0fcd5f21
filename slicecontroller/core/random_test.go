package core

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomUpdate returns an update of all pods of a set, with any policy, range, partition and M.
func randomUpdate(t *testing.T, r *rand.Rand, more ...func(*Set)) (s *fixture, m int) {
	t.Helper()
	n, k := 1+r.Int32N(7), r.Int32N(3)
	m = 1 + r.IntN(3)
	change := append(is(replicas(n), unavailable(fmt.Sprint(m)), start(k), partition(r.Int32N(4))), more...)
	if r.IntN(2) == 0 {
		change = append(change, parallel)
	}
	var pods []string
	for o := k; o < k+n; o++ {
		pods = append(pods, fmt.Sprint(o)+"o")
	}
	return play(t, strings.Join(pods, " "), change...), m
}

// down reports for each ordinal of the range whether it is unavailable.
func (s *fixture) down() map[string]bool {
	out := map[string]bool{}
	for o := s.set.start(); s.set.has(o); o++ {
		p := s.pods[s.set.podName(o)]
		out[fmt.Sprint(o)] = p == nil || s.set.down(p, s.now)
	}
	return out
}

// failed reports for each ordinal whether its pod has stopped for good.
func (s *fixture) failed() map[string]bool {
	out := map[string]bool{}
	for name, p := range s.pods {
		out[strings.TrimPrefix(name, "web-")] = ended(p)
	}
	return out
}

// standing reports for each ordinal of the range whether its pod is ready, and whether it counts as down for
// an update. A pod that EnforcedRollingUpdate replaces anyway does not count as long as it is not ready
// (ER-7).
func (s *fixture) standing() (ready, counts map[string]bool) {
	ready, counts = map[string]bool{}, s.down()
	for o := s.set.start(); s.set.has(o); o++ {
		p := s.pods[s.set.podName(o)]
		if p == nil || terminating(p) {
			continue
		}
		_, is := readySince(p)
		ready[fmt.Sprint(o)] = is
		if s.set.strategy() == EnforcedRollingUpdate && !is && s.set.staged(o) && revisionOf(p) != s.set.Status.UpdateRevision {
			counts[fmt.Sprint(o)] = false
		}
	}
	return ready, counts
}

// stranger returns the name of a pod that has none of the ordinals, or "".
func (s *fixture) stranger(ordinals map[string]bool) string {
	for name := range s.pods {
		if _, known := ordinals[strings.TrimPrefix(name, "web-")]; !known {
			return name
		}
	}
	return ""
}

// takesDown returns the ready pods that a pass has deleted, and how many pods are down with them.
func takesDown(did string, ready, counts map[string]bool) (taken []string, down int) {
	for word := range strings.FieldsSeq(did) {
		if o, cut := strings.CutPrefix(word, "-"); cut && ready[o] {
			taken, counts[o] = append(taken, o), true
		}
	}
	for _, d := range counts {
		if d {
			down++
		}
	}
	return taken, down
}

// However pods break and recover, the controller's own deletions never take more than M down (961-16,
// 961-48). In order no pod is deleted while one is down (961-10), and the names stay (961-34).
func TestUpdatesNeverTakeDownTooMany(t *testing.T) {
	for _, strategy := range []func(*Set){func(*Set) {}, enforced} {
		for seed := range uint64(120) {
			r := rand.New(rand.NewPCG(seed, 1))
			s, m := randomUpdate(t, r, minReady(1800*r.Int32N(2)), strategy)
			for _, p := range sortedByName(s.pods) { // some are broken before the update begins
				if r.IntN(3) == 0 {
					s.breaks(p.Name, r)
				}
			}
			for range 60 {
				ready, counts := s.standing()
				_, before := takesDown("", ready, counts)
				did := s.sync()
				taken, after := takesDown(did, ready, counts)
				switch {
				case s.err != nil:
					t.Fatalf("seed %d: %v", seed, s.err)
				case len(taken) > 0 && after > m:
					t.Fatalf("seed %d, %s: %q takes %d down, M is %d", seed, s.set.strategy(), did, after, m)
				case len(taken) > 0 && s.set.strategy() != EnforcedRollingUpdate && s.set.ordered() && before > 0:
					t.Fatalf("seed %d: %q takes a pod down in order, with %d down", seed, did, before)
				case s.stranger(counts) != "":
					t.Fatalf("seed %d: %s is no pod of the range", seed, s.stranger(counts))
				}
				s.somethingHappens(r)
			}
		}
	}
}

// While the highest ordinal is not available, no other pod is deleted for an enforced update (3541-38).
func TestNobodyGoesBeforeTheCanaryIsBack(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 3541))
		s, _ := randomUpdate(t, r, enforced)
		last := fmt.Sprint(s.set.start() + s.set.replicas() - 1)
		for range 60 {
			before, failed := s.down(), s.failed()
			for word := range strings.FieldsSeq(s.sync()) {
				if o, cut := strings.CutPrefix(word, "-"); cut && o != last && before[last] && !failed[o] { // OR-3 is no update
					t.Fatalf("seed %d: %s is deleted while %s is not available", seed, o, last)
				}
			}
			s.somethingHappens(r)
		}
	}
}

// breaks makes a pod less than available.
func (s *fixture) breaks(name string, r *rand.Rand) {
	s.is(name, []string{"!", "?", "x", "r"}[r.IntN(4)])
}

// somethingHappens lets one pod become ready, disappear or break.
func (s *fixture) somethingHappens(r *rand.Rand) {
	pods := sortedByName(s.pods)
	if len(pods) == 0 {
		return
	}
	p := pods[r.IntN(len(pods))]
	switch {
	case terminating(p):
		delete(s.pods, p.Name)
	case r.IntN(6) == 0:
		s.breaks(p.Name, r)
	default:
		s.is(p.Name, "")
	}
}
