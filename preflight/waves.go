package preflight

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/preflight/check"
)

// Waves checks the waves of one run of a plan. It is safe for concurrent use: a check whose result comes too late is
// not awaited.
type Waves struct {
	Plan *plans.Plan
	// On must be safe for concurrent use, such as the clients of Connect.
	On           clusters.Clusters
	Orchestrated check.Orchestrated
	Now          func() time.Time
	lock         sync.Mutex
	// passed is when the standing checks last passed, on the way of that direction.
	passed    time.Time
	direction plans.Direction
}

// standingValidity is how long the standing checks hold after they have passed. What they look for is made by people
// and their tools, and a wave of small pods takes a second: a check before each would find it hardly earlier.
const standingValidity = 30 * time.Second

// Check checks again, before the given ordinals move, what can have changed since the check of the plan and what the
// engine's looks would not find, or would find too late. It returns the findings that must be fixed before the
// ordinals move. It leaves out warnings, which were reported before the first write, and what the plan ignores. On an
// abort it runs only the checks of what would stop the abort anyway: it is the way out of what the others find, and
// none of them may bar it. On finalize it runs none.
func (w *Waves) Check(ctx context.Context, j *journal.Journal, ordinals plans.Slice) ([]check.Finding, error) {
	if j.Leg.Direction == plans.Finalize {
		return nil, nil
	}
	ctx = clusters.Watched(ctx)
	i := check.Inspect(w.Plan, w.On)
	i.Ordinals, i.Midway, i.Taken, i.Orchestrated = ordinals, true, true, w.Orchestrated
	if j.Leg.Direction == plans.Abort {
		i.From = plans.Destination
	}
	var err error
	if i.Now.Set, err = i.Set(ctx, plans.Source); err != nil {
		return nil, err
	}
	if i.Now.Existing, err = i.Set(ctx, plans.Destination); err != nil {
		return nil, err
	}
	if i.Now.Set == nil || i.Now.Existing == nil {
		return nil, nil // the next look reports which of them is gone
	}
	began := w.Now()
	due := w.due(j.Leg.Direction, began)
	results, err := results(ctx, i, due)
	if err != nil {
		return nil, err
	}
	w.note(j.Leg.Direction, began, due, results)
	return (&Report{Checks: results}).Failed(), nil
}

// Passed records that every check of the plan has passed, for this process, at that time. The first wave of a Move then
// does not repeat the standing ones.
func (w *Waves) Passed(at time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.passed, w.direction = at, plans.Move
}

// due returns the checks to run now.
func (w *Waves) due(direction plans.Direction, now time.Time) []row {
	stands := w.stands(direction, now)
	return slices.DeleteFunc(catalogue(), func(c row) bool {
		return c.wave == never || c.wave == standing && stands || direction == plans.Abort && !c.back
	})
}

// note keeps since when the standing checks have passed, if they were run.
func (w *Waves) note(direction plans.Direction, began time.Time, ran []row, results []Result) {
	asked := false
	for k, c := range ran {
		if c.wave != standing {
			continue
		}
		if asked = true; results[k].Level == check.Fail {
			return
		}
	}
	if asked {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.passed, w.direction = began, direction
	}
}

// stands reports whether the standing checks passed lately. A clock that was set back counts as long ago.
func (w *Waves) stands(direction plans.Direction, now time.Time) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return direction == w.direction && clusters.Within(standingValidity, w.passed, now)
}
