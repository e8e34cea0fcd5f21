package sets

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

// UnmarkRevisions removes our mark from the revisions of the sets that remain (S15): the controller of a set
// copies the annotations of the set to each revision that it creates. It runs AFTER the mark is off the set,
// or a new revision could get it.
func (w Steps) UnmarkRevisions(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, side := range []plans.Side{m.From, m.To()} {
		set, err := w.Set(ctx, side)
		if err != nil {
			return plans.Observation{}, err
		}
		if set == nil {
			continue // its revisions are deleted with it
		}
		var all appsv1.ControllerRevisionList
		if err := w.On[side].List(ctx, &all, client.InNamespace(set.Namespace)); err != nil {
			return plans.Observation{}, fmt.Errorf("listing the revisions of %s: %w", w.Plan.On(side), err)
		}
		for i := range all.Items {
			r := &all.Items[i]
			if !metav1.IsControlledBy(r, set) || !m.Stamp.Mine(r) {
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
