package pdb

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Whatever a user's budget says: it allows none of the pods, all of them, or some, and what replaces it while ordinals
// are away allows no more than is to be allowed (S3).
func FuzzBudgets(f *testing.F) {
	f.Add("1", false, false, int32(5), int32(1))
	f.Add("30%", true, false, int32(5), int32(2))
	f.Add("100%", true, true, int32(3), int32(0))
	f.Add("-5%", true, true, int32(10000), int32(10000))
	f.Add("99999999999%", true, false, int32(1), int32(1))
	f.Fuzz(bounded)
}

// A fuzz test may take long to find values that are wrong only together.
func TestEveryBudgetIsBounded(t *testing.T) {
	for _, text := range []string{"0", "1", "2", "3", "4", "5", "-1", "0%", "1%", "30%", "50%", "99%", "100%", "101%", "-5%", "99999999999%", "2147483647", "2147483648", "%", "", "1.5%", "x"} {
		for _, kind := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			for pods := range int32(7) {
				for allowance := range int32(8) {
					if bounded(t, text, kind[0], kind[1], pods, allowance); t.Failed() {
						t.Fatalf("budget %q (words %v, minAvailable %v) of %d pods, at most %d down", text, kind[0], kind[1], pods, allowance)
					}
				}
			}
		}
	}
}

// bounded checks what a budget allows, and what replaces it while ordinals are away.
func bounded(t *testing.T, text string, words, least bool, pods, allowance int32) {
	t.Helper()
	pods, allowance = min(max(pods, 0), 10000), min(max(allowance, 0), 10000)
	value := intstr.Parse(text)
	if words {
		value = intstr.FromString(text)
	}
	spec := policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &value}
	if least {
		spec = policyv1.PodDisruptionBudgetSpec{MinAvailable: &value}
	}
	if n, err := Budget(spec, pods); err == nil && (n < 0 || n > pods) {
		t.Errorf("%s allows %d of %d pods", Words(spec), n, pods)
	}
	for name, bound := range map[string]func(*policyv1.PodDisruptionBudgetSpec){
		"departing": func(s *policyv1.PodDisruptionBudgetSpec) { departing(s, pods, allowance) },
		"arriving":  func(s *policyv1.PodDisruptionBudgetSpec) { arriving(s, allowance) },
	} {
		next := *spec.DeepCopy()
		bound(&next)
		if n := allows(next, pods); n > allowance {
			t.Errorf("%s: %s allows %d of %d pods, at most %d are to be allowed", name, Words(next), n, pods, allowance)
		}
		if next.MinAvailable != nil && next.MaxUnavailable != nil {
			t.Errorf("%s: %s", name, Words(next))
		}
	}
	here, there := Split(allowance, pods, max(pods-allowance, 0))
	if here < 0 || there < 0 || here+there > allowance || here > pods {
		t.Errorf("Split(%d, %d, %d) = %d, %d", allowance, pods, max(pods-allowance, 0), here, there)
	}
}
