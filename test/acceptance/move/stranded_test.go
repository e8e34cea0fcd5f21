package move_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// nobody are the fields of a pod that no scheduler places.
const nobody = "Object{spec: Object.spec{schedulerName: 'nobody'}}"

// The controller of a set with an order deletes no pod outside the range while one of the range is not available. An abort
// ends all the same, whichever pods of the destination are broken, also with kills.
func TestAbortGetsPastPodsThatNeverBecomeReady(t *testing.T) {
	for n, c := range []struct {
		name     string
		pods     []int
		pending  bool // else they crash
		parallel bool
		kills    int
	}{
		{name: "the lowest", pods: []int{0}},
		{name: "one between healthy ones", pods: []int{2}, kills: 6},
		{name: "the highest, which no scheduler places", pods: []int{4}, pending: true},
		{name: "two side by side, which no scheduler places", pods: []int{2, 3}, pending: true, kills: 6},
		{name: "two with a healthy one between", pods: []int{1, 3}},
		{name: "all", pods: []int{0, 1, 2, 3, 4}, kills: 6},
		{name: "all, which no scheduler places", pods: []int{0, 1, 2, 3, 4}, pending: true},
		{name: "two, without an order", pods: []int{1, 3}, pending: true, parallel: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options{}
			if c.parallel {
				o.set = func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }
			}
			inOneMode(t, n+day, o, func(s *migration) {
				t := s.t
				before, there := s.state(s.source), s.names("destination")
				s.planned()
				run(t, s.applyArgs()...).expect(t, done, "moved: 5 ordinals")
				s.breaks(c.pods, c.pending)
				args := s.args("abort", "--max-unavailable", "5")
				if c.kills > 0 {
					seed := rand.Uint64()
					t.Logf("seed %d", seed)
					t.Logf("%d kills", s.killed(rand.New(rand.NewPCG(seed, seed)), c.kills, args))
				} else {
					words := []string{"aborted"}
					if first := c.pods[len(c.pods)-1]; first > 0 && !c.parallel {
						words = append(words, "delete pod web-0, which is outside the range of its set: the set's controller waits, as pod web-")
					}
					run(t, args...).expect(t, done, words...)
				}
				s.asBefore(before, there)
			})
		})
	}
}

// breaks lets pods of the destination never become ready again: they run and are not ready, or are placed nowhere.
func (s *migration) breaks(pods []int, pending bool) {
	s.t.Helper()
	if pending {
		var names []string
		for _, o := range pods {
			names = append(names, fmt.Sprintf("web-%d", o))
		}
		s.made(nobody, names...)
	}
	for _, o := range slices.Backward(pods) { // in order, a set makes no pod above one that is broken
		name := fmt.Sprintf("web-%d", o)
		if !pending {
			s.change(s.destination, &corev1.Pod{}, name, `{"metadata":{"annotations":{"`+cluster.NeverReady+`":"true"}}}`)
		}
		s.eventually(name+" is broken", func(ctx context.Context) bool {
			var pod corev1.Pod
			if s.destination.Get(ctx, s.destination.key(name), &pod) != nil {
				return false
			}
			if pending && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				_ = s.destination.Delete(ctx, &pod) // the next one is made as the policy says, once it is in force
			}
			return !pending && !isReady(&pod) || pending && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Spec.SchedulerName == "nobody"
		})
	}
}
