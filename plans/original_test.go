package plans

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The first value is the user's. A process that starts again sees what the migration has written since.
func TestOldValuesOnAnObjectAreNotReplaced(t *testing.T) {
	var o corev1.ConfigMap
	for _, value := range []string{"30%", "0%"} {
		number := intstr.FromString(value)
		NumbersOf(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &number}).Put(&o)
	}
	if before, err := OriginalOf(&o); err != nil || before == nil || before.MaxUnavailable.String() != "30%" {
		t.Errorf("%+v, %v, expected maxUnavailable 30%%", before, err)
	}
}
