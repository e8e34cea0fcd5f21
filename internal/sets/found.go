package sets

import (
	"context"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Found tells a look where the wave is that was under way when the plan was turned, as far as that decides what has to be
// proven. A wave that is in the range of the side that receives it has never left that side, or has arrived there: only
// there do its pods run.
func (w Steps) Found(ctx context.Context, m plans.StepContext) (plans.StepContext, error) {
	if !m.Resumed {
		return m, nil
	}
	there, err := w.Set(ctx, m.To())
	if err != nil || there == nil {
		return m, err
	}
	for o := range m.Ordinals.All() {
		if !plans.SliceOf(there).Has(o) {
			return m, nil
		}
	}
	m.Reversed, m.Resumed = true, false
	return m, nil
}

// Serves reports whether a pod of the wave is Ready on the side that it leaves.
func (w Steps) Serves(ctx context.Context, s plans.Step) (bool, error) {
	for o := range s.Ordinals.All() {
		pod, err := w.Pod(ctx, s.From, o)
		if err != nil || Ready(pod) == "" {
			return err == nil, err
		}
	}
	return false, nil
}
