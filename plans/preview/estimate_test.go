package preview

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// podOf returns a pod that was Ready after some seconds.
func podOf(seconds int, change ...func(*corev1.Pod)) *corev1.Pod {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &corev1.Pod{Status: corev1.PodStatus{
		StartTime:  &metav1.Time{Time: began},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: began.Add(time.Duration(seconds) * time.Second)}}},
	}}
	for _, c := range change {
		c(p)
	}
	return p
}

func restarted(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{}, {RestartCount: 1}}
}
func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func scheduled(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: p.Status.StartTime.Add(-20 * time.Second)}})
}
func fresh(p *corev1.Pod) { p.Status.StartTime = nil }

func TestTheEstimateIsThatOfTheSetsOwnPods(t *testing.T) {
	inOrder := &appsv1.StatefulSet{}
	parallel, grace := &appsv1.StatefulSet{}, int64(60)
	parallel.Spec.PodManagementPolicy, parallel.Spec.MinReadySeconds = appsv1.ParallelPodManagement, 10
	parallel.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	for name, c := range map[string]struct {
		set    *appsv1.StatefulSet
		pods   []*corev1.Pod
		window int32
		gates  int
		want   string
	}{
		"a median": {
			inOrder,
			[]*corev1.Pod{podOf(40), podOf(300), podOf(38)},
			1, 0,
			"about 4 min, up to 6 min if every pod needs its whole grace period: 5 waves, each with about 40 s to start (median of 3 pods) and up to 30 s to stop; detaching and attaching its volumes and scheduling come on top. The first wave will show how long one really takes",
		},
		"only pods that tell": {
			inOrder,
			[]*corev1.Pod{podOf(4000, restarted), podOf(9000, unready), podOf(1, fresh), podOf(-5), podOf(2)},
			1, 1,
			"about 10 s, up to 3 min if every pod needs its whole grace period: 5 waves, each with about 2 s to start (median of 1 pod) and up to 30 s to stop; detaching and attaching its volumes and scheduling come on top, and so do gates and pauses. The first wave will show how long one really takes",
		},
		"from the time of its node": {
			inOrder,
			[]*corev1.Pod{podOf(40, scheduled)},
			1, 0,
			"about 5 min, up to 8 min if every pod needs its whole grace period: 5 waves, each with about 60 s to start (median of 1 pod) and up to 30 s to stop; detaching its volumes and scheduling come on top. The first wave will show how long one really takes",
		},
		"waves of a parallel set": {
			parallel,
			[]*corev1.Pod{podOf(30)},
			2, 0,
			"about 2 min, up to 5 min if every pod needs its whole grace period: 3 waves, each with about 40 s to start (median of 1 pod) and up to 60 s to stop; detaching and attaching its volumes and scheduling come on top. The first wave will show how long one really takes",
		},
		"waves of a set in order": {
			inOrder,
			[]*corev1.Pod{podOf(30)},
			2, 0,
			"about 3 min, up to 5 min if every pod needs its whole grace period: 3 waves, 5 ordinals one after the other, each with about 30 s to start (median of 1 pod) and up to 30 s to stop; detaching and attaching its volumes and scheduling come on top. The first wave will show how long one really takes",
		},
		"hours":        {inOrder, []*corev1.Pod{podOf(3600)}, 1, 0, "about 5 h: 5 waves, each with about 60 min to start (median of 1 pod) and up to 30 s to stop; detaching and attaching its volumes and scheduling come on top. The first wave will show how long one really takes"},
		"no such pods": {inOrder, []*corev1.Pod{podOf(40, restarted)}, 1, 0, ""},
		"no set":       {nil, []*corev1.Pod{podOf(40)}, 1, 0, ""},
	} {
		p := planstest.Three()
		p.Count, p.Start, p.MaxUnavailable, p.Window, p.Gates = 5, 0, 2, c.window, make([]plans.Gate, c.gates)
		e, ok := EstimateOf(p, p.FirstLeg(), c.set, c.pods)
		if got := e.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %v %s, expected %s", name, ok, got, c.want)
		}
	}
}
