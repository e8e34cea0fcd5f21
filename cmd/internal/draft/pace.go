package draft

import (
	"context"
	"maps"
	"slices"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// Pace returns a line about how long a leg may take, judged by the pods of the source, or "" if they do not tell. The
// clients are those of the checks, which have read the set and the pods: with Listed clients this sends no request.
func Pace(ctx context.Context, p *plans.Plan, l plans.Leg, on clusters.Clusters) string {
	pair := clusters.Pair{Plan: p, On: on}
	set, err := pair.Set(ctx, plans.Source)
	if err != nil || set == nil {
		return "" // the checks report it
	}
	pods, err := pair.Pods(ctx, plans.Source, set)
	if err != nil {
		return ""
	}
	e, known := preview.EstimateOf(p, l, set, slices.Collect(maps.Values(pods)))
	if !known {
		return ""
	}
	return "\nTime: " + e.String() + ".\n"
}
