package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/cmd/internal/draft"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Verdict is the answer to the question whether a set could move as it is.
type Verdict string

// The verdicts, in the order of the output.
const (
	// No means that a check fails.
	No Verdict = "no"
	// Unknown means that no check fails, but not all that could were asked.
	Unknown Verdict = "unknown"
	// Here means yes, within its cluster only.
	Here Verdict = "here"
	// Yes means that no check fails.
	Yes Verdict = "yes"
)

// Set is what is said of one set.
type Set struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Kind is StatefulSet or StatefulSetSlice.
	Kind string `json:"kind"`
	// Pods is how many there are to be, and Size what the volumes that move have in all.
	Pods  int32   `json:"pods"`
	Size  string  `json:"size,omitempty"`
	Moves Verdict `json:"moves"`
	// About is how long a move may take, if every pod stops at once.
	About string `json:"about,omitempty"`
	// Within is why the set can move within its cluster only.
	Within string `json:"onlyHere,omitempty"`
	// Findings are those that fail, then those that warn.
	Findings []check.Finding `json:"findings,omitempty"`
	// Unasked are the checks that were not asked for want of a right.
	Unasked []string `json:"unasked,omitempty"`

	ref     plans.Ref
	report  *preflight.Report
	missing map[string][]clusters.Right
}

// examine looks at one set. It returns nil if the set does not exist.
func (p patient) examine(ctx context.Context, on client.Client, ref plans.Ref) (*Set, error) {
	if p.to != nil {
		return p.prepare(ctx, on, ref)
	}
	a, err := preflight.AskAlone(ctx, on, ref, check.Caller{Flags: reach.Ends{plans.Source: p.End}.Flags()})
	if a == nil || err != nil {
		return nil, err
	}
	s := of(ref, a.Report)
	s.Pods, s.Within, s.missing, s.Unasked = a.Pods, a.Within, a.Unasked, slices.Sorted(maps.Keys(a.Unasked))
	switch {
	case s.Moves == No:
	case a.Undecided():
		s.Moves = Unknown
	case a.Within != "":
		s.Moves = Here
	}
	return s, s.measure(ctx, a.Plan, a.On)
}

// prepare asks every check of a move to the destination.
func (p patient) prepare(ctx context.Context, on client.Client, ref plans.Ref) (*Set, error) {
	is, err := clusters.ReadSet(ctx, on, ref)
	if err != nil && !preflight.Refuses(err) || err == nil && is == nil {
		return nil, err
	}
	from, to := *p.End, *p.to
	from.Namespace, to.Namespace = ref.Namespace, cmp.Or(p.toNamespace, ref.Namespace)
	f := draft.Flags{}
	name, err := f.Request(nil, nil, []string{ref.Typed()})
	if err != nil {
		return nil, err
	}
	plan, both, err := f.Draft(ctx, name, nil, &from, &to, p.now())
	if preflight.Refuses(err) {
		s := of(ref, preflight.Refused(ref, plans.Ref{Context: to.Context, Namespace: to.Namespace, Name: ref.Name, Kind: ref.Kind}, err))
		if is != nil {
			s.Pods = plans.SliceOf(is).Replicas
		}
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	report, err := preflight.Check(ctx, plan, both, nil, check.Caller{Flags: reach.Ends{plans.Source: &from, plans.Destination: &to}.Flags()})
	if err != nil {
		return nil, err
	}
	s := of(ref, report)
	return s, s.measure(ctx, plan, both)
}

// of returns what a report says of a set.
func of(ref plans.Ref, r *preflight.Report) *Set {
	s := &Set{Namespace: ref.Namespace, Name: ref.Name, Kind: ref.SetKind(), Moves: Yes, ref: ref, report: r, Findings: slices.Concat(r.Failed(), r.Warned())}
	if len(r.Failed()) > 0 {
		s.Moves = No
	}
	return s
}

// measure reads how large the set is, and how long a move may take. p is nil where no plan can be made.
func (s *Set) measure(ctx context.Context, p *plans.Plan, on clusters.Clusters) error {
	if p == nil {
		return nil
	}
	s.Pods = p.Count
	if e, known := draft.Estimate(ctx, p, p.FirstLeg(), on); known {
		s.About = e.About()
	}
	var sum resource.Quantity
	for o := range p.Ordinals().All() {
		for _, c := range p.Moved() {
			claim, err := (clusters.Pair{Plan: p, On: on}).Claim(ctx, plans.Source, p.ClaimName(plans.Source, c.Template, o))
			if check.IgnoreForbidden(err) != nil {
				return fmt.Errorf("measuring the volumes: %w", err)
			}
			if claim == nil {
				continue
			}
			has := claim.Status.Capacity.Storage()
			if has.IsZero() {
				has = claim.Spec.Resources.Requests.Storage()
			}
			sum.Add(*has)
		}
	}
	if !sum.IsZero() {
		s.Size = sum.String()
	}
	return nil
}
