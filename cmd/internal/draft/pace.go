package draft

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/preview"
)

// Estimate returns how long a leg may take, judged by the pods of the source, or false if they do not tell. The clients are
// those of the checks, which have read the set and the pods: with Listed clients this sends no request.
func Estimate(ctx context.Context, p *plans.Plan, l plans.Leg, on clusters.Clusters) (e preview.Estimate, known bool) {
	pair := clusters.Pair{Plan: p, On: on}
	set, err := pair.Set(ctx, plans.Source)
	if err != nil || set == nil {
		return e, false // the checks report it
	}
	pods, err := pair.Pods(ctx, plans.Source, set)
	if err != nil {
		return e, false
	}
	return preview.EstimateOf(p, l, set, slices.Collect(maps.Values(pods)))
}

// Pace returns a line about how long a leg may take, or "" if it is not known, and how long that is at most.
func Pace(ctx context.Context, p *plans.Plan, l plans.Leg, on clusters.Clusters) (line string, most time.Duration) {
	e, known := Estimate(ctx, p, l, on)
	if !known {
		return "", 0
	}
	return "\nTime: " + e.String() + ".\n", e.Most()
}
