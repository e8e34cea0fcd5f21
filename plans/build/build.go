// Package build makes a plan from the objects that were seen: the set as the destination gets it, with the patches
// applied, what that changes, and what the pods depend on. It is pure, as package plans is.
package build

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Inputs holds everything from which a plan is made.
type Inputs struct {
	Name, ID            string
	Source, Destination plans.Ref
	Set                 *appsv1.StatefulSet
	Existing            *appsv1.StatefulSet // nil when the destination has none
	// The one budget over the pods of each side; nil if there is none.
	SourceBudget, DestinationBudget *policyv1.PodDisruptionBudget
	MaxUnavailable                  int32
	Window                          int32 // 0 means 1
	Names                           plans.Names
	Storage                         plans.Storage
	Shared                          []plans.SharedVolume
	// Empty names the claim templates whose ordinals start without data.
	Empty []string
	// Versions are the versions that the API servers report.
	Versions map[plans.Side]string
	// Ignored names the checks whose findings are accepted.
	Ignored []string
	// Patches are applied to the destination's set, in their order.
	Patches []plans.Patch
	// Dependencies are those of the patched set, together with the controllers that are known to make
	// them; nil derives them from the set alone.
	Dependencies []plans.Dependency
	Gates        []plans.Gate
	Placeholder  plans.Placeholder
}

// Plan makes a plan. It is pure: the checks before the first write decide whether the plan may be
// carried out.
func Plan(in Inputs) (*plans.Plan, error) {
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
func (in Inputs) plan(destined *appsv1.StatefulSet) (*plans.Plan, error) {
	slice := plans.SliceOf(in.Set)
	p := &plans.Plan{
		APIVersion: plans.APIVersion, Kind: plans.PlanKind, Name: in.Name, ID: in.Name + "-" + in.ID,
		Source: in.Source, Destination: in.Destination,
		Start: slice.Start, Count: slice.Replicas,
		MaxUnavailable: in.MaxUnavailable, Window: in.Window,
		Dependencies: in.Dependencies, Names: in.Names, Placeholder: in.Placeholder, Patches: in.Patches, Storage: in.Storage, Shared: in.Shared,
		Versions: in.Versions, Ignored: in.Ignored, Gates: plans.GatesWithDefaults(in.Gates), Requires: plans.Requirements(in.Gates, in.Placeholder), Budget: in.budget(),
	}
	if p.Window == 0 {
		p.Window = 1
	}
	if p.Dependencies == nil {
		p.Dependencies = Dependencies(destined)
	}
	p.Claims = in.claimMoves(p.DefaultMode())
	var err error
	if p.Changes, err = Changes(in.Set, destined); err != nil {
		return nil, err
	}
	p.Seen, err = plans.Fingerprints(in.Set, in.Existing, in.SourceBudget)
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

func (in Inputs) budget() plans.Budget {
	b := plans.Budget{Source: in.Set.Name + "-stsmigrate"}
	if in.SourceBudget != nil {
		b.Source, b.SourceExisted = in.SourceBudget.Name, true
	}
	b.Destination = b.Source
	if in.DestinationBudget != nil {
		b.Destination, b.DestinationExisted = in.DestinationBudget.Name, true
	}
	return b
}

// claimMoves returns how each claim template moves.
func (in Inputs) claimMoves(mode plans.Mode) []plans.ClaimMove {
	var out []plans.ClaimMove
	for _, t := range in.Set.Spec.VolumeClaimTemplates {
		c := plans.ClaimMove{Template: t.Name, Mode: mode}
		if slices.Contains(in.Empty, t.Name) {
			c.Mode = plans.Empty
		}
		out = append(out, c)
	}
	return out
}

// refuseFor returns an error for the first gate that can never be evaluated on the set. where names
// the set for the message.
func refuseFor(gates []plans.Gate, set *appsv1.StatefulSet, where string) error {
	for _, g := range gates {
		if g.Exec != nil && g.Exec.Container != "" && !hasContainer(set, g.Exec.Container) {
			return fmt.Errorf("gate %s: the pods of the set have no container %q%s", g.Name, g.Exec.Container, where)
		}
		if g.HTTPGet != nil {
			if _, known := plans.Port(g.HTTPGet.Port, set.Spec.Template.Spec); !known {
				return fmt.Errorf("gate %s: no container of the set has a port named %q%s", g.Name, g.HTTPGet.Port.StrVal, where)
			}
		}
	}
	return nil
}

func hasContainer(set *appsv1.StatefulSet, name string) bool {
	pod := set.Spec.Template.Spec
	return slices.ContainsFunc(slices.Concat(pod.Containers, pod.InitContainers), func(c corev1.Container) bool { return c.Name == name })
}
