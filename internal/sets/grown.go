package sets

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// added stops an abort before a wave leaves while the destination has ordinals that are not the plan's.
func (w ranges) added(m plans.StepContext, from *appsv1.StatefulSet) *plans.Observation {
	if m.From != plans.Destination || from == nil || !m.Stamp.Mine(from) {
		return nil
	}
	why := w.Plan.Added(from)
	if why == "" {
		return nil
	}
	stop := plans.Stop(reasons.OrdinalsAdded, why)
	return &stop
}
