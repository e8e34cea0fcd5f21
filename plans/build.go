package plans

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Inputs is everything a plan is made from.
type Inputs struct {
	Name, ID            string
	Source, Destination Ref
	Set                 *appsv1.StatefulSet
	Existing            *appsv1.StatefulSet // nil when the destination has none
	// The one budget over the pods of each side; nil when there is none.
	SourceBudget, DestinationBudget *policyv1.PodDisruptionBudget
	MaxUnavailable                  int32
	Window                          int32 // 0 means 1
	Names                           Names
	Storage                         Storage
	Shared                          []SharedVolume
	// Empty are the claim templates whose ordinals start without data.
	Empty []string
	// Versions is what the API servers say of themselves.
	Versions map[Side]string
	// Ignored are the checks whose findings are accepted.
	Ignored []string
	// Patches are over the destination's set, in their order.
	Patches []Patch
	// Dependencies are those of the patched set, with what is known about
	// who makes them; nil takes them from the set alone.
	Dependencies []Dependency
	Gates        []Gate
}

// SliceOf returns the range of ordinals a set has by its spec.
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

// Build makes a plan. It is pure: whether the plan may be carried out is found
// out by the checks before the first write.
func Build(in Inputs) (*Plan, error) {
	if err := in.refuse(); err != nil {
		return nil, err
	}
	destined, err := in.Destined()
	if err != nil {
		return nil, err
	}
	if err := refuseFor(in.Gates, destined, " on the destination"); err != nil {
		return nil, err // every gate is asked there too, on the way or on the way back
	}
	slice := SliceOf(in.Set)
	p := &Plan{
		APIVersion: APIVersion, Kind: PlanKind, Name: in.Name, ID: in.Name + "-" + in.ID,
		Source: in.Source, Destination: in.Destination,
		Start: slice.Start, Count: slice.Replicas,
		MaxUnavailable: in.MaxUnavailable, Window: max(in.Window, 1),
		Dependencies: in.Dependencies, Names: in.Names, Patches: in.Patches, Storage: in.Storage, Shared: in.Shared,
		Versions: in.Versions, Ignored: in.Ignored, Gates: fill(in.Gates),
	}
	if p.Dependencies == nil {
		p.Dependencies = Dependencies(destined)
	}
	p.Budget = in.budget()
	if p.Claims, err = in.claimMoves(p); err != nil {
		return nil, err
	}
	if p.Changes, err = in.changes(destined); err != nil {
		return nil, err
	}
	if p.Seen, err = Fingerprints(in.Set, in.Existing, in.SourceBudget); err != nil {
		return nil, err
	}
	return p, p.seal()
}

// maxWindow bounds the journal, which knows the volumes of a whole wave.
const maxWindow = 64

func badWindow(w, d int32) error {
	return fmt.Errorf("window %d: expected 1 to %d ordinals per wave, since all ordinals of a wave are unavailable together and at most %d may be", w, min(d, maxWindow), d)
}

func (in Inputs) refuse() error {
	if in.Source.Cluster == in.Destination.Cluster && in.Source.Namespace == in.Destination.Namespace {
		return fmt.Errorf("source and destination are both %s: give --to-namespace or --to-context; two sets of one name cannot be in one namespace", in.Source)
	}
	if err := RefuseName(in.Name); err != nil {
		return err
	}
	if SliceOf(in.Set).Replicas < 1 {
		return fmt.Errorf("%s has 0 replicas: there is nothing to move", in.Source)
	}
	if in.MaxUnavailable < 1 {
		return errors.New("the budget is 0: at least one ordinal must be allowed to be unavailable")
	}
	if w := in.Window; w < 0 || w > in.MaxUnavailable || w > maxWindow {
		return badWindow(w, in.MaxUnavailable)
	}
	if err := refuseGates(in.Gates); err != nil {
		return err
	}
	return refuseFor(in.Gates, in.Set, "")
}

// RefuseName gives the reason why a plan cannot have a name. Its ConfigMaps are stsmigrate-NAME and
// stsmigrate-NAME-journal, and others of that form are not of plans.
func RefuseName(name string) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 || len(name) > 40 {
		return fmt.Errorf("plan name %q: expected a DNS label of at most 40 characters; give one with --name", name)
	}
	if name == "consent" || strings.HasSuffix(name, "-journal") || strings.HasPrefix(name, "adopt-") {
		return fmt.Errorf("plan name %q: ConfigMap stsmigrate-%s would be that of a consent, of another plan's journal or of an adoption; give another one with --name", name, name)
	}
	return nil
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

// Fingerprints is what a plan over these objects is bound to.
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

// Changed lists in words what is no longer as it was when the plan was made.
func (f Fingerprint) Changed(now Fingerprint) []string {
	var out []string
	add := func(differs bool, what string) {
		if differs {
			out = append(out, what)
		}
	}
	add(f.SourceUID != now.SourceUID, "the source set was deleted and made again")
	add(f.SourceUID == now.SourceUID && f.SourceSpec != now.SourceSpec, "the spec of the source set")
	add(f.BudgetUID != now.BudgetUID, "the PodDisruptionBudget of the source (another object, or none)")
	add(f.BudgetUID == now.BudgetUID && f.BudgetSpec != now.BudgetSpec, "the spec of the source's PodDisruptionBudget")
	add(f.DestinationUID != now.DestinationUID, presence(f.DestinationUID, now.DestinationUID))
	add(f.DestinationUID == now.DestinationUID && f.DestinationSpec != now.DestinationSpec, "the spec of the destination set")
	return out
}

// SameSource reports whether a set has the spec that the plan was made for, whatever its range and
// its retention policy are now: these are what the plan itself changes.
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
		return "the destination set was deleted and made again"
	}
}
