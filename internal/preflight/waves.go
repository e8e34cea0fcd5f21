package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
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
	voids     int // how often they were void
	// read is what their inspections share.
	read check.Memory
}

// standingValidity is how long the standing checks hold after they have passed. What they look for is made by people
// and their tools, and a wave of small pods takes a second: a check before each would find it hardly earlier.
const standingValidity = 30 * time.Second

// Found is what the checks of a wave have found.
type Found struct {
	// Bars must be fixed before the ordinals move.
	Bars []check.Finding
	// Unready must be fixed before an ordinal leaves that serves: the side that receives it might not be able to bring it
	// up. Unasked is the error for which that is not known.
	Unready []check.Finding
	Unasked error
}

// Unfit returns what bars an ordinal that serves, or nil.
func (f Found) Unfit() *plans.Unfit {
	switch {
	case f.Unasked != nil:
		return &plans.Unfit{Err: f.Unasked}
	case len(f.Unready) == 0:
		return nil
	}
	fixed := "before this is fixed"
	if names := accepted(f.Unready); len(names) > 0 {
		fixed += ", or with --ignore " + strings.Join(names, ",") + ", which may leave it down until then"
	}
	why := fmt.Sprintf("no ordinal that serves leaves %s: %s", fixed, check.Words(f.Unready)) // a long reason loses its end
	return &plans.Unfit{Why: why}
}

// Decided leaves out the findings that may pass by themselves. Where they alone bar the wave, the error says so. Where they
// alone would keep an ordinal that serves, Unasked does.
func (f Found) Decided() (Found, error) {
	bars, err := check.Decided(reasons.ChecksFailed, f.Bars)
	if err != nil {
		return Found{}, err
	}
	unready, passes := check.Decided(reasons.ChecksFailed, f.Unready)
	f.Bars, f.Unready = bars, unready
	if f.Unasked == nil {
		f.Unasked = passes
	}
	return f, nil
}

// accepted returns the checks of findings, if the user may accept them all during an abort.
func accepted(found []check.Finding) []string {
	var out []string
	for _, f := range found {
		if !slices.Contains(Acceptable(), f.Check) {
			return nil
		}
		out = append(out, f.Check)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Check checks again, before the given ordinals move, what can have changed since the check of the plan and what the
// engine's looks would not find, or would find too late. It leaves out warnings, which were reported before the first
// write, and what the user ignores. On an abort it asks the same of the side that then receives the ordinals (S18). An
// ordinal that is down has nothing to lose, and an abort is the way out: what bars it is only what would stop the abort
// anyway. On finalize it runs none.
func (w *Waves) Check(ctx context.Context, j *journal.Journal, ordinals plans.Slice) (found Found, err error) {
	if j.Leg.Direction == plans.Finalize {
		return found, nil
	}
	i := check.Inspect(w.Plan, w.On.Watched())
	i.Ordinals, i.Midway, i.Taken, i.Orchestrated = ordinals, true, true, w.Orchestrated
	i.Ignored, i.Coming = slices.Concat(w.Plan.Ignored, j.Assurances.Ignored), coming(w.Plan, j.Leg, ordinals)
	if j.Leg.Direction == plans.Abort {
		i.From = plans.Destination
	}
	if i.Now.Set, err = i.Set(ctx, plans.Source); err != nil {
		return found, err
	}
	if i.Now.Existing, err = i.Set(ctx, plans.Destination); err != nil {
		return found, err
	}
	if i.Now.Set == nil || i.Now.Existing == nil {
		return found, nil // the next look reports which of them is gone
	}
	began, voids := w.Now(), w.voided()
	due := w.due(j.Leg.Direction, began)
	if i = i.Keeping(&w.read); !w.stands(j.Leg.Direction, began) {
		w.read.Fade()
	}
	bars := func(c row) bool { return i.From == plans.Source || c.back == everyWave }
	asked := slices.DeleteFunc(slices.Clone(due), func(c row) bool { return !bars(c) })
	answers, err := results(ctx, i, asked)
	if err != nil {
		return found, err
	}
	found.Bars = (&Report{Checks: answers}).Failed()
	more := slices.DeleteFunc(due, bars)
	answered, err := results(ctx, i, more)
	if err != nil {
		found.Unasked = err
		return found, nil //nolint:nilerr // kept in Unasked
	}
	found.Unready = (&Report{Checks: answered}).Failed()
	w.note(j.Leg.Direction, began, voids, slices.Concat(asked, more), slices.Concat(answers, answered))
	return found, nil
}

// coming returns the waves of a leg that have not left yet, when these ordinals are the next.
func coming(p *plans.Plan, l plans.Leg, next plans.Slice) []plans.Slice {
	out := []plans.Slice{next}
	found := false
	for wave := range p.Waves(l) {
		if found {
			out = append(out, wave)
		}
		found = found || wave.Has(next.Start) || wave.Has(next.End()-1)
	}
	return out
}

// Passed records that every check of the plan has passed, for this process, at that time. The first wave of a Move then
// does not repeat the standing ones.
func (w *Waves) Passed(at time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.passed, w.direction = at, plans.Move
}

// Void makes the standing checks be asked again before the next wave, also those that are asked now (S19).
func (w *Waves) Void() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.passed = time.Time{}
	w.voids++
}

// voided returns how often the standing checks were void.
func (w *Waves) voided() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.voids
}

// due returns the checks to run now.
func (w *Waves) due(direction plans.Direction, now time.Time) []row {
	stands := w.stands(direction, now)
	return slices.DeleteFunc(catalogue(), func(c row) bool {
		often := c.often(direction)
		return often == never || often == standing && stands
	})
}

// often returns how often a check runs again on the way of a direction.
func (c row) often(direction plans.Direction) again {
	switch {
	case direction != plans.Abort:
		return c.wave
	case c.back == notBack:
		return never
	case c.wave == never: // of the way there it is asked once, which may be days ago
		return standing
	}
	return c.wave
}

// note keeps since when the standing checks have passed, if they were run, and were not void meanwhile.
func (w *Waves) note(direction plans.Direction, began time.Time, voids int, ran []row, results []Result) {
	asked := false
	for k, c := range ran {
		if c.often(direction) != standing {
			continue
		}
		if asked = true; results[k].Level == check.Fail {
			return
		}
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if asked && voids == w.voids {
		w.passed, w.direction = began, direction
	}
}

// stands reports whether the standing checks passed lately. A clock that was set back counts as long ago.
func (w *Waves) stands(direction plans.Direction, now time.Time) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return direction == w.direction && clusters.Within(standingValidity, w.passed, now)
}
