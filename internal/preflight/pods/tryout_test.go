package pods

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Before a wave, room is checked for its claims alone: the claims that have arrived exist already, and room
// for the others is checked before their waves.
func TestBetweenWavesOnlyTheNextClaimsAreRead(t *testing.T) {
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme())
	for _, name := range []string{"data-web-0", "data-web-1", "data-web-2", "media", "other"} {
		home = home.WithObjects(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name}})
	}
	p := &plans.Plan{
		Source: plans.Ref{Namespace: "blue", Name: "web"}, Destination: plans.Ref{Namespace: "green", Name: "web"}, Count: 3,
		Claims: []plans.ClaimMove{{Template: "data"}}, Shared: []plans.SharedVolume{{Claim: "media"}},
	}
	api := home.Build()
	for _, c := range []struct {
		midway bool
		of     plans.Slice
		want   []string
	}{
		{false, p.Ordinals(), []string{"data-web-0", "data-web-1", "data-web-2", "media"}},
		{true, plans.Slice{Start: 1, Replicas: 1}, []string{"data-web-1"}},
	} {
		i := check.Inspect(p, clusters.Clusters{plans.Source: api, plans.Destination: api})
		i.Midway, i.Ordinals = c.midway, c.of
		claims, err := moving(t.Context(), i)
		var got []string
		for _, claim := range claims {
			got = append(got, claim.Name)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("midway %t: %q (%v), expected %q", c.midway, got, err, c.want)
		}
	}
}
