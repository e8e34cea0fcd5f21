package preflight

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/expanded"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ShowPod returns how the pods of a plan differ between the two sides, as text. With the clients of Check it reads nothing
// anew.
func ShowPod(ctx context.Context, p *plans.Plan, on clusters.Clusters, by check.Caller) (string, error) {
	i := check.Inspect(p, on.Listed(p))
	i.Caller = by
	var err error
	if i.Now, err = Survey(ctx, i.On, p.Source, p.Destination, p.Declared().MaxUnavailable, "", p.Patches); err != nil {
		return "", err
	}
	return expanded.Shown(ctx, i)
}
