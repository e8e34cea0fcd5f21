package move_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// The controller of a set with an order deletes no pod outside the range while one of the range is not available. An abort
// ends all the same, whichever pods of the destination are broken, also with kills.
func TestAbortGetsPastPodsThatNeverBecomeReady(t *testing.T) {
	for n, c := range []struct {
		name  string
		pods  []int
		kills int
	}{
		{name: "the lowest", pods: []int{0}},
		{name: "one between healthy ones", pods: []int{2}, kills: 6},
		{name: "two with a healthy one between", pods: []int{1, 3}},
		{name: "all", pods: []int{0, 1, 2, 3, 4}, kills: 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			inOneMode(t, n+day, options{}, func(s *migration) {
				t := s.t
				before, there := s.state(s.source), s.names("destination")
				s.planned()
				run(t, s.applyArgs()...).expect(t, done, "moved: 5 ordinals")
				s.breaks(c.pods)
				args := s.args("abort", "--max-unavailable", "5")
				if c.kills > 0 {
					seed := rand.Uint64()
					t.Logf("seed %d", seed)
					t.Logf("%d kills", s.killed(rand.New(rand.NewPCG(seed, seed)), c.kills, args))
				} else {
					words := []string{"aborted"}
					if first := c.pods[len(c.pods)-1]; first > 0 {
						words = append(words, "delete pod web-0, which is outside the range of its set: the set's controller waits, as pod web-")
					}
					run(t, args...).expect(t, done, words...)
				}
				s.asBefore(before, there)
			})
		})
	}
}

// breaks lets pods of the destination run and never become ready again.
func (s *migration) breaks(pods []int) {
	s.t.Helper()
	for _, o := range pods {
		name := fmt.Sprintf("web-%d", o)
		s.change(s.destination, &corev1.Pod{}, name, `{"metadata":{"annotations":{"`+cluster.NeverReady+`":"true"}}}`)
		s.eventually(name+" is broken", func(ctx context.Context) bool {
			var pod corev1.Pod
			return s.destination.Get(ctx, s.destination.key(name), &pod) == nil && !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
		})
	}
}
