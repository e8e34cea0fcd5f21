package controller_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// shrinksADay is how many scripts are run, other ones every day.
const shrinksADay = 5

// A range shrinks and grows at both ends, as in a move and in an abort, while pods of it are broken. Both controllers keep
// and delete the same pods (OR-5 to OR-7, PA-1), also where a plan deletes a pod that they do not come to.
func TestRangesShrinkBesideBrokenPodsAsUnderTheBuiltInController(t *testing.T) {
	t.Parallel()
	minor := minorOf(t)
	for _, seed := range seeds(t)[:shrinksADay] {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3335))
			tw := newTwins(t, fmt.Sprintf("shrinks-%d", seed))
			tw.minor, tw.met = minor, new(sync.Map)
			tw.shrinks(r)
			tw.both(func(s *side) error {
				return s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
			})
		})
	}
}

func (tw *twins) shrinks(r *rand.Rand) {
	tw.t.Helper()
	set := randomSet(r)
	n := 3 + r.Int32N(2)
	set.Spec.Replicas, set.Spec.Ordinals, set.Spec.MinReadySeconds = &n, &appsv1.StatefulSetOrdinals{Start: 1}, 0
	tw.play("create "+words(set), func(s *side) error {
		set := set.DeepCopy()
		set.Namespace = s.namespace
		return s.Create(tw.t.Context(), set)
	})
	for range 10 {
		if tw.t.Failed() || tw.parted {
			return
		}
		_, pods, err := tw.sides[0].read(tw.t.Context())
		if err != nil {
			tw.t.Fatal(err)
		}
		tw.shrink(r, pods)
	}
}

// shrink changes the range by one ordinal, breaks some pods, heals all, or deletes a pod outside the range.
func (tw *twins) shrink(r *rand.Rand, pods []corev1.Pod) {
	tw.t.Helper()
	slice := plans.SliceOf(tw.set())
	outside, some := chosen(r, pods, slice)
	to := func(start, replicas int32) {
		tw.edit(fmt.Sprintf("range %d+%d", start, replicas), func(s *appsv1.StatefulSet) {
			s.Spec.Replicas, s.Spec.Ordinals = &replicas, &appsv1.StatefulSetOrdinals{Start: start}
		})
	}
	switch act := r.IntN(8); {
	case act < 2 && slice.Replicas > 0: // an abort
		to(slice.Start+1, slice.Replicas-1)
	case act == 2 && slice.Replicas > 0: // a move
		to(slice.Start, slice.Replicas-1)
	case act == 3 && slice.Start > 0: // a wave arrives, or comes back
		to(slice.Start-1, slice.Replicas+1)
	case act == 4:
		to(slice.Start, 0)
	case act == 5 && len(pods) > 0:
		tw.mark("heal all", pods, "null")
	case act == 6 && len(outside) > 0:
		tw.remove(pick(r, outside...))
	case len(some) > 0:
		tw.mark("break", some, `"true"`)
	}
}

// chosen returns the pods outside the range, and some of all pods.
func chosen(r *rand.Rand, pods []corev1.Pod, slice plans.Slice) (outside, some []corev1.Pod) {
	for _, p := range pods {
		if o, _ := core.Ordinal("web", p.Name); !slice.Has(o) {
			outside = append(outside, p)
		}
		if r.IntN(2) == 0 {
			some = append(some, p)
		}
	}
	return outside, some
}
