package preflight

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/pods"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Request is what a plan is made of, with its name and its ID.
type Request struct {
	Name, ID string
	plans.Spec
	// Account is the account of the orchestrator that is to carry the plan out; "" where that is open.
	Account string
}

// Draft makes the requested plan between two sets. It reads and writes nothing. The checks decide whether the
// plan can be carried out. A check that cannot be ignored would not be, whatever the plan says: such a request is refused.
func Draft(ctx context.Context, on clusters.Clusters, source, destination plans.Ref, r Request) (*plans.Plan, error) {
	if _, err := Ignorable(r.Ignore); err != nil {
		return nil, fmt.Errorf("ignore: %w", err)
	}
	in, err := Survey(ctx, on, source, destination, r.MaxUnavailable, r.Names, r.Destination.Patches)
	if err != nil {
		return nil, err
	}
	in.Name, in.ID, in.Window, in.Ignored = cmp.Or(r.Name, plans.NameFor(source.Name)), r.ID, r.Window, r.Ignore
	in.Empty, in.Storage, in.Gates, in.Placeholder = r.Empty, r.Storage, r.Gates, r.Placeholder
	if in.Dependencies, err = pods.Needs(ctx, on, in); err != nil {
		return nil, err
	}
	if in.Names.Clients, err = bridged(ctx, on, in); err != nil {
		return nil, err
	}
	in.Names.Twins = r.Twins
	made, err := twins(ctx, on, in)
	if err != nil {
		return nil, err
	}
	in.Dependencies = build.SortDependencies(append(in.Dependencies, made...))
	if in.Placeholder, err = places(ctx, on, in, check.Caller{Account: r.Account}); err != nil {
		return nil, err
	}
	return build.Plan(in)
}
