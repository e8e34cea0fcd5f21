package clusters

import (
	"context"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A watch of a resource without a name follows nothing, and fails for ever without a word.
func TestWhateverIsWatchedHasAName(t *testing.T) {
	p := planstest.Named(t, "abc")
	for name, watch := range map[string]struct {
		begin func(context.Context, *ChangeSignal, *Watches)
		want  []string
	}{
		"a step": {func(ctx context.Context, s *ChangeSignal, on *Watches) {
			s.Watch(ctx, p, map[plans.Side]*Watches{plans.Source: on, plans.Destination: on})
		}, []string{"nodes", "pods", "persistentvolumeclaims", "statefulsets", "poddisruptionbudgets"}},
		"drains": {func(ctx context.Context, s *ChangeSignal, on *Watches) {
			s.WatchDrains(ctx, p, map[plans.Side]*Watches{plans.Source: on, plans.Destination: on})
		}, []string{"nodes", "pods", "statefulsets", "poddisruptionbudgets"}},
		"sets":    {func(ctx context.Context, s *ChangeSignal, on *Watches) { s.WatchSets(ctx, on, "shop") }, []string{"pods", "statefulsets"}},
		"records": {func(ctx context.Context, s *ChangeSignal, on *Watches) { s.WatchRecords(ctx, on, "shop") }, []string{"configmaps", "leases"}},
	} {
		on := &Watches{Of: fake.NewSimpleMetadataClient(runtime.NewScheme()), open: map[subject]*watched{}}
		ctx, cancel := context.WithCancel(t.Context())
		watch.begin(ctx, NewChangeSignal(), on)
		got := map[string]bool{}
		on.lock.Lock()
		for s := range on.open {
			got[s.resource.Resource] = true
		}
		on.lock.Unlock()
		cancel()
		on.Wait()
		if got[""] {
			t.Errorf("%s: something without a name is watched beside %v", name, slices.Sorted(maps.Keys(got)))
		}
		for _, resource := range watch.want {
			if !got[resource] {
				t.Errorf("%s: %s are not watched, only %v", name, resource, slices.Sorted(maps.Keys(got)))
			}
		}
	}
}
