package requests

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Cancel ends a plan that is to be aborted and that no process has taken over, and reports whether it did. A process
// records its epoch in the journal BEFORE its first write (S9). So nothing of such a plan is written but its record,
// whether its clusters answer or not, and a process that is about to take it over finds that it has ended.
func Cancel(p *plans.Plan, j *journal.Journal, w plans.Command, at time.Time) (bool, error) {
	if w.Direction != plans.Abort || !j.Untouched() {
		return false, nil
	}
	if err := Accept(p, j, w); err != nil {
		return false, err
	}
	j.Outcome, j.EndedAt = plans.Aborted, &metav1.Time{Time: at}
	j.Timeline.Record(at, journal.Event{Kind: journal.LegEnded, By: w.By, What: string(plans.Aborted)})
	return true, nil
}
