package pdb

import (
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestSplitDividesAnAllowanceByTheNumberOfOrdinals(t *testing.T) {
	tests := []struct{ allowance, source, destination, onSource, onDestination int32 }{
		{0, 5, 0, 0, 0},
		{1, 5, 0, 1, 0},
		{1, 4, 1, 1, 0},
		{1, 3, 2, 1, 0},
		{1, 2, 3, 0, 1}, // the single unit changes sides once, in the middle
		{1, 0, 5, 0, 1},
		{2, 4, 1, 1, 1}, // both sides can be drained
		{2, 1, 4, 1, 1},
		{2, 0, 5, 0, 2},
		{3, 4, 1, 2, 1},
		{3, 1, 4, 1, 2},
		{5, 1, 1, 1, 1}, // never more than the number of ordinals of a side
		{-1, 3, 3, 0, 0},
	}
	for _, tt := range tests {
		s, d := Split(tt.allowance, tt.source, tt.destination)
		if s != tt.onSource || d != tt.onDestination {
			t.Errorf("Split(%d, %d, %d) = %d, %d, expected %d, %d", tt.allowance, tt.source, tt.destination, s, d, tt.onSource, tt.onDestination)
		}
	}
}

// 3335-17
func TestSplitNeverGivesMoreThanTheAllowance(t *testing.T) {
	for allowance := int32(0); allowance <= 12; allowance++ {
		for source := int32(0); source <= 12; source++ {
			for destination := int32(0); destination <= 12; destination++ {
				s, d := Split(allowance, source, destination)
				if s < 0 || d < 0 || s+d > allowance || s > source || d > destination {
					t.Fatalf("Split(%d, %d, %d) = %d, %d", allowance, source, destination, s, d)
				}
			}
		}
	}
}

func TestBudgetReadsWhatAPodDisruptionBudgetAllows(t *testing.T) {
	value := func(s string) *intstr.IntOrString { v := intstr.Parse(s); return &v }
	tests := []struct {
		spec policyv1.PodDisruptionBudgetSpec
		pods int32
		want int32
	}{
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value("1")}, 5, 1},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value("30%")}, 5, 2}, // rounds up
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value("0")}, 5, 0},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value("9")}, 5, 5},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: value("4")}, 5, 1},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: value("50%")}, 5, 2}, // 2.5 rounds up to 3
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: value("9")}, 5, 0},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: value("85899345920%")}, 5, 0}, // of 5 that is 1<<32
		{policyv1.PodDisruptionBudgetSpec{}, 5, 0},                                    // Kubernetes expects no pods then, and allows nothing
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s of %d", Words(tt.spec), tt.pods), func(t *testing.T) {
			got, err := Budget(tt.spec, tt.pods)
			if err != nil || got != tt.want {
				t.Errorf("got %d, %v, expected %d", got, err, tt.want)
			}
		})
	}
	if _, err := Budget(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: value("lots")}, 5); err == nil {
		t.Error("a budget that is no number was accepted")
	}
}
