package sets

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A set with OnDelete keeps the current revision that it was created with: its pods show whether it is in the
// middle of an update (S13).
func TestASetWithOnDeleteIsJudgedByItsPods(t *testing.T) {
	for _, c := range []struct {
		strategy appsv1.StatefulSetUpdateStrategyType
		updated  int32
		settled  bool
	}{
		{appsv1.OnDeleteStatefulSetStrategyType, 3, true},
		{appsv1.OnDeleteStatefulSetStrategyType, 2, false},
		{appsv1.RollingUpdateStatefulSetStrategyType, 3, false},
	} {
		n, set := int32(3), &appsv1.StatefulSet{}
		set.Spec.Replicas, set.Spec.UpdateStrategy.Type = &n, c.strategy
		set.Status = appsv1.StatefulSetStatus{CurrentRevision: "a", UpdateRevision: "b", Replicas: 3, UpdatedReplicas: c.updated}
		if why := Unsettled(&plans.Plan{}, plans.Source, set); (why == "") != c.settled {
			t.Errorf("%s with %d of 3 pods updated: %q", c.strategy, c.updated, why)
		}
	}
}
