package sets

import (
	"context"
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// UnmarkRevisions removes our mark from the revisions of the sets that remain (S15): the controller of a set
// copies the annotations of the set to each revision that it creates. It runs AFTER the mark is off the set,
// or a new revision could get it.
func (w Ending) UnmarkRevisions(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, side := range []plans.Side{m.From, m.To()} {
		set, err := w.Set(ctx, side)
		if err != nil {
			return plans.Observation{}, err
		}
		all, err := w.Revisions(ctx, side, set) // those of a set that is gone go with it
		if err != nil {
			return plans.Observation{}, err
		}
		for _, r := range all {
			if !m.Stamp.Mine(r) {
				continue
			}
			next := r.DeepCopy()
			plans.Unmark(next)
			return plans.Write(fmt.Sprintf("%s: take our mark off ControllerRevision %s", side, r.Name), plans.Undo{},
				func(ctx context.Context) error { return writes.Change(ctx, w.On[side], r, next) }), nil
		}
	}
	return plans.Done(), nil
}
