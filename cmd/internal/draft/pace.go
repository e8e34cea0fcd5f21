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

// Pace returns a line about how long a leg may take, judged by the pods of the source, or "" if they do not tell, and how
// long that is at most. The clients are those of the checks, which have read the set and the pods: with Listed clients this
// sends no request.
func Pace(ctx context.Context, p *plans.Plan, l plans.Leg, on clusters.Clusters) (line string, most time.Duration) {
	pair := clusters.Pair{Plan: p, On: on}
	set, err := pair.Set(ctx, plans.Source)
	if err != nil || set == nil {
		return "", 0 // the checks report it
	}
	pods, err := pair.Pods(ctx, plans.Source, set)
	if err != nil {
		return "", 0
	}
	e, known := preview.EstimateOf(p, l, set, slices.Collect(maps.Values(pods)))
	if !known {
		return "", 0
	}
	return "\nTime: " + e.String() + ".\n", e.Most()
}
