package orchestrator

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestABudgetThatAllowsNothingIsRefused(t *testing.T) {
	replicas, zero := int32(5), intstr.FromInt32(0)
	for name, spec := range map[string]policyv1.PodDisruptionBudgetSpec{
		"maxUnavailable 0": {MaxUnavailable: &zero},
		"neither minAvailable nor maxUnavailable, which allows nothing": {},
	} {
		in := plans.Inputs{
			Set:          &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas}},
			SourceBudget: &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: spec},
		}
		if d, err := allowance(in, 0); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "raise it first") {
			t.Errorf("%s: d is %d, %v", name, d, err)
		}
	}
}
