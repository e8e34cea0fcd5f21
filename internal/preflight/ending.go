package preflight

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/expanded"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Ending lists what the end of a move ends, and what it does not: the names that nothing answers any more, unless they are
// kept, and who would make the source set again. It is asked before finalize, and once more after it.
func Ending(ctx context.Context, p *plans.Plan, on clusters.Clusters, by check.Caller, namesKept bool) ([]check.Finding, error) {
	i := check.Inspect(p, on)
	i.Caller = by
	var err error
	if i.Now.Set, err = i.Set(ctx, plans.Source); err != nil {
		return nil, err
	}
	if i.Now.Existing, err = i.Set(ctx, plans.Destination); err != nil {
		return nil, err
	}
	set := i.Now.Set
	if set == nil {
		set = i.Now.Existing
	}
	if set == nil {
		return nil, nil
	}
	out, err := owners.Successors(ctx, i, set)
	if err != nil || namesKept || i.Now.Existing == nil || i.Now.Set == nil {
		return out, err
	}
	ended, err := expanded.Ended(ctx, i)
	for k := range ended {
		ended[k].Check, ended[k].Level = "old-names", check.Warn
	}
	return append(ended, out...), err
}
