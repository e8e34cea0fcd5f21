package placeholder

import (
	"cmp"
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// What a look has proven is not lost by what gives the places free before it.
func TestTheProofOfALookIsKept(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	for _, proof := range []plans.Proof{plans.NoProof, plans.Warm} {
		p := &plans.Plan{Name: "web", Count: 3, Source: plans.Ref{Namespace: "shop", Name: "web"}, Destination: plans.Ref{Namespace: "mall", Name: "web"}, Placeholder: plans.Placeholder{Proof: proof}}
		steps := Steps{Pair: clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: c, plans.Destination: c}}}
		look := steps.First(func(context.Context, plans.StepContext) (plans.Observation, error) {
			return plans.Observation{Standing: plans.After, Reason: "proven", Undo: plans.Undo{Flight: &plans.Flight{}}}, nil
		})
		got, err := look(t.Context(), plans.StepContext{Step: plans.Step{Op: plans.Vacate, From: plans.Source, Ordinals: plans.Slice{Start: 2, Replicas: 1}}})
		if err != nil || got.Reason != "proven" || got.Undo.Flight == nil {
			t.Errorf("%s: %+v, %v", proof, got, err)
		}
	}
}

// A placeholder that was given the labels of the set, as a webhook does that labels every pod, is no place.
func TestAPlaceholderWithTheLabelsOfTheSetIsSaid(t *testing.T) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{Label: "p"}}}
	if why := member(pod, set); why != "" {
		t.Error(why)
	}
	pod.Labels["app"] = "web"
	if why := member(pod, set); why != "was given labels by which the pods of the set are selected (app=web)" {
		t.Error(why)
	}
}

// A placeholder goes with the set of its side, of whichever kind that is, on both ways.
func TestAPlaceholderGoesWithTheSetOfItsSide(t *testing.T) {
	for _, from := range plans.Sides() {
		for kind, version := range map[string]string{"": "apps/v1", plans.SliceKind: "apps.stsmigrate.dev/v1alpha1"} {
			s := staged(t, from, agrees)
			s.plan.Source.Kind, s.plan.Destination.Kind = kind, kind
			s.pass(t, s.process())
			owner := s.pod(t).OwnerReferences
			if len(owner) != 1 || owner[0].Kind != cmp.Or(kind, "StatefulSet") || owner[0].APIVersion != version || owner[0].UID != "u" || owner[0].Controller != nil {
				t.Errorf("from the %s, %q: %+v", from, kind, owner)
			}
		}
	}
}
