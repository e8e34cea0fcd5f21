package sets

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAnOrdinalStaysUpWhileAnotherPodMountsItsClaim(t *testing.T) {
	mounting := func(name, claim string) corev1.Pod {
		p := corev1.Pod{}
		p.Name = name
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	w := Steps{Pair: clusters.Pair{Plan: &plans.Plan{Source: plans.Ref{Namespace: "shop", Name: "web"}, Claims: []plans.ClaimMove{{Template: "data"}}}}}
	m := plans.StepContext{Step: plans.Step{Op: plans.Shrink, Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source}}
	own := mounting("web-4", "data-web-4")
	for _, c := range []struct {
		pods []corev1.Pod
		want string
	}{
		{[]corev1.Pod{own, mounting("web-3", "data-web-3")}, ""},
		{[]corev1.Pod{own, mounting("backup", "data-web-4")}, "data-web-4 of shop/web is also mounted by pod backup"},
		{[]corev1.Pod{mounting("backup", "data-web-4")}, "mounted by pod backup"},
	} {
		if got := w.shared(c.pods, m); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("said %q, expected %q", got, c.want)
		}
	}
}

// What the user has said of a node counts for the wave that it was said of, until a pod of the wave is Ready there: the
// node has come back then, and its end must be proven as that of any other (S1).
func TestAWordAboutANodeIsNotOfAPodThatIsReadyThere(t *testing.T) {
	wave := plans.Slice{Start: 2, Replicas: 1}
	m := plans.StepContext{Step: plans.Step{Op: plans.Shrink, Ordinals: wave, From: plans.Source}, NodesGone: []string{"b", "a"}, NodesGoneThere: []string{"c"}}
	m.Flight = &plans.Flight{Ordinals: wave, From: plans.Source, NodesGone: []string{"a", "d"}, NodesGoneThere: []string{"c", "e"}}
	pod := func(node string, ready corev1.ConditionStatus) corev1.Pod {
		p := corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return p
	}
	for name, c := range map[string]struct {
		pods        []corev1.Pod
		here, there []string
	}{
		"no pod is there":     {nil, []string{"a", "b", "d"}, []string{"c", "e"}},
		"one that is Ready":   {[]corev1.Pod{pod("b", corev1.ConditionTrue)}, []string{"a", "d"}, []string{"c", "e"}},
		"one that is not":     {[]corev1.Pod{pod("b", corev1.ConditionFalse)}, []string{"a", "b", "d"}, []string{"c", "e"}},
		"a node of that name": {[]corev1.Pod{pod("c", corev1.ConditionTrue)}, []string{"a", "b", "d"}, []string{"c", "e"}},
	} {
		here, there := vouched(m, c.pods)
		if !slices.Equal(here, c.here) || !slices.Equal(there, c.there) {
			t.Errorf("%s: %q, %q, expected %q, %q", name, here, there, c.here, c.there)
		}
	}
	m.Flight.From = plans.Destination // of an earlier wave
	if here, there := vouched(m, nil); !slices.Equal(here, []string{"a", "b"}) || !slices.Equal(there, []string{"c"}) {
		t.Errorf("%q, %q", here, there)
	}
}
