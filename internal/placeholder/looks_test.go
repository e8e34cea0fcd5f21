package placeholder

import (
	"context"
	"testing"

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
