package plans

import (
	"errors"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Fingerprints returns the fingerprint that binds a plan to these objects.
func Fingerprints(set, existing *appsv1.StatefulSet, budget *policyv1.PodDisruptionBudget) (Fingerprint, error) {
	f := Fingerprint{SourceUID: set.UID}
	if set.Status.ObservedGeneration == set.Generation { // else its status is about an earlier template
		f.SourceRevision = set.Status.UpdateRevision
	}
	var errs [5]error
	f.SourceSpec, errs[0] = Fingerprinted(set.Spec)
	f.SourceFields, errs[3] = seenOf(set.Spec)
	if budget != nil {
		f.BudgetUID = budget.UID
		f.BudgetSpec, errs[1] = Fingerprinted(budget.Spec)
		f.BudgetFields, errs[4] = Fields(budget.Spec)
	}
	if existing != nil {
		f.DestinationUID = existing.UID
		f.DestinationSpec, errs[2] = Fingerprinted(existing.Spec)
	}
	return f, errors.Join(errs[:]...)
}

// seenOf returns what a plan keeps of a spec: a pod template may have passwords in it, and a plan is shown to many.
func seenOf(spec appsv1.StatefulSetSpec) (map[string]string, error) {
	all, err := Fields(spec)
	for path := range all {
		if strings.HasPrefix(path, "template.") && !image.MatchString(path) {
			delete(all, path)
		}
	}
	return all, err
}

var image = regexp.MustCompile(`^template\.spec\.(initContainers|containers)\[[^]]+\]\.image$`)

// Changed describes each difference from the time when the plan was made.
func (f Fingerprint) Changed(now Fingerprint) []string {
	var out []string
	add := func(differs bool, what string) {
		if differs {
			out = append(out, what)
		}
	}
	add(f.SourceUID != now.SourceUID, "the source set was deleted and recreated")
	add(f.SourceUID == now.SourceUID && f.SourceSpec != now.SourceSpec, "the spec of the source set"+from(f.SourceFields, now.SourceFields))
	add(f.BudgetUID != now.BudgetUID, "the PodDisruptionBudget of the source (another object, or none)")
	add(f.BudgetUID == now.BudgetUID && f.BudgetSpec != now.BudgetSpec, "the spec of the source's PodDisruptionBudget"+from(f.BudgetFields, now.BudgetFields))
	add(f.DestinationUID != now.DestinationUID, presence(f.DestinationUID, now.DestinationUID))
	add(f.DestinationUID == now.DestinationUID && f.DestinationSpec != now.DestinationSpec, "the spec of the destination set")
	return out
}

// from says what has changed, as far as a plan has kept it. One of an earlier release has kept nothing.
func from(was, is map[string]string) string {
	changed := FieldsChanged(was, is)
	if len(was) == 0 || len(changed) == 0 {
		return ""
	}
	return " (" + strings.Join(changed, ", ") + ")"
}

// SameSource reports whether a set has the spec for which the plan was made, whatever its range and
// its retention policy are now, and whether it is pinned: the plan itself changes these.
func (f Fingerprint) SameSource(set *appsv1.StatefulSet, p *Plan, saved Saved) (bool, error) {
	spec := *Unpinned(set).Spec.DeepCopy()
	spec.Replicas = &p.Count
	policies := []*appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{nil}
	if policy, ok := saved.Retention[Source]; ok {
		policies = append(policies, &policy)
	}
	ranges := []*appsv1.StatefulSetOrdinals{{Start: p.Start}}
	if p.Start == 0 {
		ranges = append(ranges, nil)
	}
	strategies := []appsv1.StatefulSetUpdateStrategy{spec.UpdateStrategy}
	if PinLost(set) { // an API server fills in 0
		zero := spec.UpdateStrategy.DeepCopy()
		if zero.RollingUpdate == nil {
			zero.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
		zero.RollingUpdate.Partition = new(int32)
		strategies = append(strategies, *zero)
	}
	for _, spec.UpdateStrategy = range strategies {
		for _, spec.PersistentVolumeClaimRetentionPolicy = range policies {
			for _, spec.Ordinals = range ranges {
				if now, err := Fingerprinted(spec); err != nil || now == f.SourceSpec {
					return err == nil, err
				}
			}
		}
	}
	return false, nil
}

func presence(was, is types.UID) string {
	switch {
	case was == "":
		return "the destination set, which was absent, exists"
	case is == "":
		return "the destination set is gone"
	default:
		return "the destination set was deleted and recreated"
	}
}
