package plans

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Inputs holds everything from which a plan is made.
type Inputs struct {
	Name, ID            string
	Source, Destination Ref
	Set                 *appsv1.StatefulSet
	Existing            *appsv1.StatefulSet // nil when the destination has none
	// The one budget over the pods of each side; nil if there is none.
	SourceBudget, DestinationBudget *policyv1.PodDisruptionBudget
	MaxUnavailable                  int32
	Window                          int32 // 0 means 1
	Names                           Names
	Storage                         Storage
	Shared                          []SharedVolume
	// Empty names the claim templates whose ordinals start without data.
	Empty []string
	// Versions are the versions that the API servers report.
	Versions map[Side]string
	// Ignored names the checks whose findings are accepted.
	Ignored []string
	// Patches are applied to the destination's set, in their order.
	Patches []Patch
	// Dependencies are those of the patched set, together with the controllers that are known to make
	// them; nil derives them from the set alone.
	Dependencies []Dependency
	Gates        []Gate
}

// SliceOf returns the range of ordinals that a set has by its spec.
func SliceOf(set *appsv1.StatefulSet) Slice {
	s := Slice{Replicas: 1}
	if set.Spec.Replicas != nil {
		s.Replicas = *set.Spec.Replicas
	}
	if set.Spec.Ordinals != nil {
		s.Start = set.Spec.Ordinals.Start
	}
	return s
}

// Build makes a plan. It is pure: the checks before the first write decide whether the plan may be
// carried out.
func Build(in Inputs) (*Plan, error) {
	destined, err := in.DestinationSet()
	if err != nil {
		return nil, err
	}
	p, err := in.plan(destined)
	if err != nil {
		return nil, err
	}
	if err := p.Seal(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := in.refuse(destined); err != nil {
		return nil, err
	}
	return p, nil
}

// plan collects the promise of the plan, whether or not it can be kept.
func (in Inputs) plan(destined *appsv1.StatefulSet) (*Plan, error) {
	slice := SliceOf(in.Set)
	p := &Plan{
		APIVersion: APIVersion, Kind: PlanKind, Name: in.Name, ID: in.Name + "-" + in.ID,
		Source: in.Source, Destination: in.Destination,
		Start: slice.Start, Count: slice.Replicas,
		MaxUnavailable: in.MaxUnavailable, Window: in.Window,
		Dependencies: in.Dependencies, Names: in.Names, Patches: in.Patches, Storage: in.Storage, Shared: in.Shared,
		Versions: in.Versions, Ignored: in.Ignored, Gates: fill(in.Gates), Budget: in.budget(),
	}
	if p.Window == 0 {
		p.Window = 1
	}
	if p.Dependencies == nil {
		p.Dependencies = Dependencies(destined)
	}
	p.Claims = in.claimMoves(p.mode())
	var err error
	if p.Changes, err = Changes(in.Set, destined); err != nil {
		return nil, err
	}
	p.Seen, err = Fingerprints(in.Set, in.Existing, in.SourceBudget)
	return p, err
}

// refuse returns the reasons against a plan that only the sets show. Every gate is checked against
// both sets, because it may be evaluated on either side, during a move or an abort.
func (in Inputs) refuse(destined *appsv1.StatefulSet) error {
	for _, name := range in.Empty {
		if !slices.Contains(templateNames(in.Set.Spec), name) {
			return fmt.Errorf("empty: %s has no claim template %q", in.Source, name)
		}
	}
	if err := refuseFor(in.Gates, in.Set, ""); err != nil {
		return err
	}
	return refuseFor(in.Gates, destined, " on the destination")
}

func (in Inputs) budget() Budget {
	b := Budget{Source: in.Set.Name + "-stsmigrate"}
	if in.SourceBudget != nil {
		b.Source, b.SourceExisted = in.SourceBudget.Name, true
	}
	b.Destination = b.Source
	if in.DestinationBudget != nil {
		b.Destination, b.DestinationExisted = in.DestinationBudget.Name, true
	}
	return b
}

// Fingerprints returns the fingerprint that binds a plan to these objects.
func Fingerprints(set, existing *appsv1.StatefulSet, budget *policyv1.PodDisruptionBudget) (Fingerprint, error) {
	f := Fingerprint{SourceUID: set.UID}
	var errs [3]error
	f.SourceSpec, errs[0] = Fingerprinted(set.Spec)
	if budget != nil {
		f.BudgetUID = budget.UID
		f.BudgetSpec, errs[1] = Fingerprinted(budget.Spec)
	}
	if existing != nil {
		f.DestinationUID = existing.UID
		f.DestinationSpec, errs[2] = Fingerprinted(existing.Spec)
	}
	return f, errors.Join(errs[:]...)
}

// Changed describes each difference from the time when the plan was made.
func (f Fingerprint) Changed(now Fingerprint) []string {
	var out []string
	add := func(differs bool, what string) {
		if differs {
			out = append(out, what)
		}
	}
	add(f.SourceUID != now.SourceUID, "the source set was deleted and recreated")
	add(f.SourceUID == now.SourceUID && f.SourceSpec != now.SourceSpec, "the spec of the source set")
	add(f.BudgetUID != now.BudgetUID, "the PodDisruptionBudget of the source (another object, or none)")
	add(f.BudgetUID == now.BudgetUID && f.BudgetSpec != now.BudgetSpec, "the spec of the source's PodDisruptionBudget")
	add(f.DestinationUID != now.DestinationUID, presence(f.DestinationUID, now.DestinationUID))
	add(f.DestinationUID == now.DestinationUID && f.DestinationSpec != now.DestinationSpec, "the spec of the destination set")
	return out
}

// SameSource reports whether a set has the spec for which the plan was made, whatever its range and
// its retention policy are now: the plan itself changes these two.
func (f Fingerprint) SameSource(set *appsv1.StatefulSet, p *Plan, saved Saved) (bool, error) {
	spec := *set.Spec.DeepCopy()
	spec.Replicas = &p.Count
	policies := []*appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{nil}
	if policy, ok := saved.Retention[Source]; ok {
		policies = append(policies, &policy)
	}
	ranges := []*appsv1.StatefulSetOrdinals{{Start: p.Start}}
	if p.Start == 0 {
		ranges = append(ranges, nil)
	}
	for _, spec.PersistentVolumeClaimRetentionPolicy = range policies {
		for _, spec.Ordinals = range ranges {
			if now, err := Fingerprinted(spec); err != nil || now == f.SourceSpec {
				return err == nil, err
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
