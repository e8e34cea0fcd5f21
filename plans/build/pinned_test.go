package build

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A destination that is made, or made again, while the source is pinned has the partition of the user.
func TestADestinationIsMadeWithTheOwnPartition(t *testing.T) {
	set := &appsv1.StatefulSet{}
	plans.Pin(set)
	made, err := DestinationSet(set, &plans.Plan{})
	if err != nil || made.Spec.UpdateStrategy.RollingUpdate != nil || len(made.Annotations) != 0 {
		t.Errorf("%+v, %v, %v", made.Spec.UpdateStrategy, made.Annotations, err)
	}
}
