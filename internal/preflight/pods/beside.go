package pods

import (
	"context"
	"fmt"
	"slices"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
)

// Beside returns why a pod that takes the place of an ordinal would find no node while the ordinal is still up, although its
// own pod finds one when the ordinal has left; "" if it would, or if that is not known. Such a pod would stay Pending for ever,
// and the ordinal with it.
func Beside(ctx context.Context, i check.Inspection) (string, error) {
	nodes, err := nodes(ctx, i)
	if err != nil {
		return "", check.IgnoreForbidden(err)
	}
	q, err := asked(ctx, i)
	if err != nil || len(q.names) == 0 || len(unjudged(i, q)) > 0 {
		return "", check.IgnoreForbidden(err)
	}
	c, err := crowdOf(ctx, i, q, nodes)
	if err != nil {
		return "", check.IgnoreForbidden(err)
	}
	if scheduling.Ask(&c.world, q.Question).Outcome != scheduling.Fits {
		return "", nil // the check nodes-fit says it
	}
	beside := q.Question
	beside.Waves = append(slices.Clone(q.Waves), scheduling.Wave{}) // with the last to leave
	for k := range beside.Waves {
		beside.Waves[k].Leaves = nil
		if k > 0 {
			beside.Waves[k].Leaves = q.Waves[k-1].Leaves
		}
	}
	v := scheduling.Ask(&c.world, beside)
	if v.Outcome == scheduling.Fits {
		return "", nil
	}
	return fmt.Sprintf("%s may find its node only in the room that its ordinal leaves (%s)", q.names[v.Pod], v.Why), nil
}
