package trials

import (
	"context"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/pods"
	"github.com/stsmigrate/stsmigrate/plans"
)

// WritesAccepted tries what the ordinals need on their way: every write of the steps from the first to that with which the last
// ordinal arrives. The sizes of the sets are left to SizesAccepted.
func WritesAccepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	l := there(i.Plan)
	if i.From == plans.Destination {
		l = back(i.Plan)
	}
	return answered(ctx, i, asks(i, l, false))
}

// ReturnsAccepted tries what an abort needs to bring the ordinals back: its writes, the claims, and a pod, in the namespace
// that they leave. Running pods do not notice a rule that was made after them.
func ReturnsAccepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	found, err := answered(ctx, i, asks(i, back(i.Plan), false))
	if err != nil {
		return nil, err
	}
	way := check.Inspect(i.Plan, i.On) // the pod of this way is another one than that of the way there
	way.Now, way.From, way.Caller, way.Taken = i.Now, plans.Destination, i.Caller, i.Taken
	pod, err := pods.PodAccepted(ctx, way)
	if err != nil {
		return nil, err
	}
	for _, f := range pod {
		// What the pods use up is free when one has left. Warnings are given for the way there.
		if f.Level != check.Warn && !strings.Contains(f.Saw, answers.FullQuota) {
			f.Want += " when an abort brings it back"
			found = append(found, f)
		}
	}
	return found, nil
}

// EndsAccepted tries what ends the plan in either direction: emptied sets and what was made for the move are deleted, and
// marks are taken off. Nothing is down when it is refused.
func EndsAccepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	all := asks(i, back(i.Plan), true)
	if i.From == plans.Source {
		all = append(asks(i, finalize(i.Plan), true), all...)
	}
	return answered(ctx, i, all)
}
