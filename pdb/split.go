package pdb

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Split divides an allowance between two sides in proportion to their numbers of ordinals. No side gets more
// than it has ordinals. From two units on, each side that has ordinals gets at least one, so that nodes of
// both can be drained. The two results never add up to more than the allowance.
func Split(allowance, source, destination int32) (onSource, onDestination int32) {
	all := source + destination
	if allowance <= 0 || all <= 0 {
		return 0, 0
	}
	// Rounded half up to the destination: a single unit changes sides once.
	onDestination = (2*allowance*destination + all) / (2 * all)
	if allowance > 1 && source > 0 {
		onDestination = min(onDestination, allowance-1)
	}
	if allowance > 1 && destination > 0 {
		onDestination = max(onDestination, 1)
	}
	onDestination = min(onDestination, destination)
	return min(allowance-onDestination, source), onDestination
}

// Budget returns how many of n pods a PodDisruptionBudget allows to be unavailable, computed as the
// disruption controller does: percentages round up. It fails for a value that is neither a number nor a
// percentage.
func Budget(spec policyv1.PodDisruptionBudgetSpec, n int32) (int32, error) {
	switch {
	case spec.MaxUnavailable != nil:
		v, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, int(n), true)
		return int32(min(max(v, 0), int(n))), wrap("maxUnavailable", spec.MaxUnavailable, err) //nolint:gosec // no more than n
	case spec.MinAvailable != nil:
		v, err := intstr.GetScaledValueFromIntOrPercent(spec.MinAvailable, int(n), true)
		return int32(min(max(int(n)-v, 0), int(n))), wrap("minAvailable", spec.MinAvailable, err) //nolint:gosec // no more than n
	default: // without both fields the disruption controller expects no pods, and allows nothing
		return 0, nil
	}
}

func wrap(field string, v *intstr.IntOrString, err error) error {
	if err != nil {
		return fmt.Errorf("%s %q: %w", field, v.String(), err)
	}
	return nil
}

// departing bounds the side that is about to lose a pod, by minAvailable. A maxUnavailable is counted from
// the set's replicas, and between the moment these shrink and the moment the pod is deleted it would allow
// one eviction too many.
func departing(spec *policyv1.PodDisruptionBudgetSpec, pods, allowance int32) {
	v := intstr.FromInt32(max(pods-allowance, 0))
	spec.MinAvailable, spec.MaxUnavailable = &v, nil
}

// arriving bounds the side that is about to get a pod, by maxUnavailable: it counts the pod that does not
// exist yet as unavailable, and so never allows more.
func arriving(spec *policyv1.PodDisruptionBudgetSpec, allowance int32) {
	v := intstr.FromInt32(allowance)
	spec.MinAvailable, spec.MaxUnavailable = nil, &v
}

// allows returns how many of n available pods a spec allows to be unavailable. The specs are those that
// departing and arriving make, or a user's; a spec that cannot be parsed counts as one that allows n.
func allows(spec policyv1.PodDisruptionBudgetSpec, n int32) int32 {
	v, err := Budget(spec, n)
	if err != nil {
		return n
	}
	return v
}
