package gates

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A yes has an age (S19). What the application answers before a wave leaves is about that moment: it is void when the
// budgets were opened since, when an ordinal has become unavailable since or is back, when another process has taken over, and
// after Validity. Then all gates are asked again. What it answers after a wave has arrived stays: an arrival is over.
//
// Several gates are asked one after the other, and one may take hours. If each had an age of its own, the first would
// be too old whenever the last has passed, and no wave would ever leave. So the age counts from the last yes of all. The
// commands and requests that had said yes long before it are asked once more then, and once only. A Job is not: it may
// be what takes hours.

const (
	// Validity is how long the gates count after the last of them has passed: as long as a request to the application
	// may take, which is how old an answer can be when it is heard.
	Validity = requestTimeout
	// hearsay is how long the journal is believed about gates that another process has heard, of a wave that has arrived:
	// a process that is replaced need not wait for a long Job again, and a plan that was left for a night asks again.
	hearsay = time.Hour
	// unwatched is how long this process may not have looked at a Job before it was seen to be complete. A wait looks
	// every half minute, so more means that this machine slept or the API server was away: the age of the answer is not
	// known.
	unwatched = time.Minute
)

// askedAnnotation on a Job says which question it answers: the epoch of the process that asks, and how many times
// it has begun to ask again. The name of a Job is always the same, since the rights are given by name.
const askedAnnotation = "stsmigrate.dev/asked"

// round is what is known of the answers of all gates together, before a wave leaves.
type round struct {
	// number counts how often the answers were void.
	number int
	// through is when the last gate has passed, and turned when the pass of the engine began that uses it.
	through, turned time.Time
	// more are the turns that are asked once more, and reviewed that these were chosen.
	more     map[string]bool
	reviewed bool
}

// again says of a question that it is asked once more.
func (r round) again(t turn) string {
	if r.more[t.id()] {
		return ", once more after the others"
	}
	return ""
}

// due returns which turn must be asked, or -1 when all have passed.
func (k *Keeper) due(turns []turn) int {
	for {
		var last time.Time
		for i, t := range turns {
			if !k.has(t) {
				return i
			}
			if at := k.heard[t.id()]; at.After(last) {
				last = at
			}
		}
		if k.step.Op != plans.Quiesce || k.round.reviewed {
			k.round.through = last
			return -1
		}
		k.round.reviewed, k.round.more = true, map[string]bool{}
		for _, t := range turns {
			if !t.IsJob() && !clusters.Within(Validity, k.heard[t.id()], last) {
				k.round.more[t.id()] = true
				k.drop(t.id())
			}
		}
	}
}

// drop forgets that a turn has passed, and that it was asked.
func (k *Keeper) drop(id string) {
	k.passed = slices.DeleteFunc(slices.Clone(k.passed), func(have string) bool { return have == id })
	delete(k.heard, id)
	delete(k.asked, id)
}

// Void makes what was answered before a wave leaves count for nothing: all gates are asked again, and a Job that runs is
// replaced. The clock of a command or request that has not passed yet goes on.
func (k *Keeper) Void() {
	if k.step.Op != plans.Quiesce {
		return
	}
	number := k.round.number + 1
	for _, id := range slices.Clone(k.passed) {
		k.drop(id)
	}
	for id, a := range k.asked {
		if a.ran {
			delete(k.asked, id)
		}
	}
	k.round = round{number: number, turned: k.round.turned}
}

// Turn notes that a pass begins that may take a wave down. The age of the answers is what it is now: the checks of the
// wave in the same pass may take long, and would otherwise never meet answers that are new enough.
func (k *Keeper) Turn() {
	if k.Prober != nil && len(k.plan.GatesAt(plans.Quiesce)) > 0 {
		k.round.turned = k.Prober.Now()
	}
}

// Still is the look of Quiesce for a wave that would leave now. It returns After if the answers still count. Else the
// gates are asked again, as they are by a process that finds the wave there and has asked nothing itself.
func (k *Keeper) Still(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if r := k.round; k.step.Seq == m.Seq && !r.through.IsZero() && !clusters.Within(Validity, r.through, r.turned) {
		k.Void()
	}
	return k.Look(ctx, m)
}

// believes reports whether the journal is believed about a gate that has passed at that time. One without a time was
// recorded by a release that knew no ages.
func (k *Keeper) believes(at time.Time) bool {
	return !at.IsZero() && (k.Prober == nil || clusters.Within(hearsay, at, k.Prober.Now()))
}

// tag is what tells a Job from one that was asked earlier.
func (k *Keeper) tag(m plans.StepContext) string {
	return fmt.Sprintf("%d/%d/%d", m.Stamp.Epoch, m.Seq, k.round.number)
}

// answers reports whether a Job was asked for what is asked now. After a wave has arrived every Job of the gate is.
func (k *Keeper) answers(m plans.StepContext, job *batchv1.Job) bool {
	return m.Op != plans.Quiesce || job.Annotations[askedAnnotation] == k.tag(m)
}

// hears takes the answer of a Job that is complete. It reports whether the Job has served: its gate has passed, or the
// age of its answer is not known.
func (k *Keeper) hears(m plans.StepContext, t turn, job *batchv1.Job) (served bool) {
	if is(job, batchv1.JobComplete) == nil || !k.answers(m, job) {
		return k.has(t)
	}
	if k.unseen(m, t) {
		delete(k.asked, t.id())
		return true
	}
	var now time.Time // a process without a Prober records nothing
	if k.Prober != nil {
		now = k.Prober.Now()
	}
	k.pass(t.id(), now)
	return true
}

// unseen reports whether this process has not looked at the Job of a turn for so long that its answer may be old.
func (k *Keeper) unseen(m plans.StepContext, t turn) bool {
	a := k.asked[t.id()]
	return m.Op == plans.Quiesce && !k.has(t) && (a == nil || k.Prober == nil || !clusters.Within(unwatched, a.looked, k.Prober.Now()))
}
