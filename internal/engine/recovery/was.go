package recovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ReadWas reads the values from before a plan, as the user supplies them with --was.
func ReadWas(values []string) (plans.Saved, error) {
	var out plans.Saved
	for _, v := range values {
		key, value, _ := strings.Cut(v, "=")
		side, what, _ := strings.Cut(key, "-")
		if !slices.Contains(plans.Sides(), plans.Side(side)) {
			return out, fmt.Errorf("--was %s: expected source-... or destination-...", v)
		}
		next, ok := was(plans.Side(side), what, value)
		if !ok {
			return out, fmt.Errorf("--was %s: expected SIDE-retention=Retain/Delete, SIDE-budget=maxUnavailable=1 or minAvailable=50%%, or destination-range=0/0", v)
		}
		out = out.With(next)
	}
	return out, nil
}

// was reads one value. ok is false if the value is invalid.
func was(side plans.Side, what, value string) (out plans.Saved, ok bool) {
	switch what {
	case "retention":
		deleted, scaled, _ := strings.Cut(value, "/")
		known := []string{string(appsv1.RetainPersistentVolumeClaimRetentionPolicyType), string(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)}
		out.Retention = map[plans.Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{side: {
			WhenDeleted: appsv1.PersistentVolumeClaimRetentionPolicyType(deleted), WhenScaled: appsv1.PersistentVolumeClaimRetentionPolicyType(scaled),
		}}
		return out, slices.Contains(known, deleted) && slices.Contains(known, scaled)
	case "budget":
		name, text, _ := strings.Cut(value, "=")
		number := intstr.Parse(text)
		spec := policyv1.PodDisruptionBudgetSpec{}
		switch name {
		case "minAvailable":
			spec.MinAvailable = &number
		case "maxUnavailable":
			spec.MaxUnavailable = &number
		}
		out.Budgets = map[plans.Side]policyv1.PodDisruptionBudgetSpec{side: spec}
		_, err := intstr.GetScaledValueFromIntOrPercent(&number, 100, true)
		return out, err == nil && number.IntVal >= 0 && (spec.MinAvailable != nil || spec.MaxUnavailable != nil)
	case "range":
		start, replicas, _ := strings.Cut(value, "/")
		first, err1 := strconv.ParseInt(start, 10, 32)
		count, err2 := strconv.ParseInt(replicas, 10, 32)
		out.Slice = &plans.Slice{Start: int32(first), Replicas: int32(count)}
		return out, side == plans.Destination && err1 == nil && err2 == nil && first >= 0 && count >= 0
	}
	return out, false
}
