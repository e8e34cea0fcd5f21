package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Journal records the steps begun and done, and the old values of everything that is changed once for
// the whole plan. Its size does not depend on the number of ordinals: the old values of one ordinal
// are kept on the objects of that ordinal.
type Journal struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Plan is the ID of the plan that the journal belongs to.
	Plan string `json:"plan"`
	// Hash is the hash of the plan: the journal means nothing under another plan of the same ID.
	Hash string `json:"hash,omitempty"`
	// Read is as in Plan.
	Read json.RawMessage `json:"-"`
	// Epoch grows with every takeover of the plan (S9).
	Epoch int64 `json:"epoch"`
	// Leg is the direction in which the plan is carried out, and the ordinals that it is for.
	Leg plans.Leg `json:"leg"`
	// Done is the number of the last step known to be finished. It may lag behind the clusters, but
	// never run ahead of them.
	Done int `json:"done"`
	// Begun is the number of the last step that may have written (S10).
	Begun int `json:"begun"`
	// Flight is the wave under way, or else the last one.
	Flight *plans.Flight `json:"flight,omitempty"`
	// Saved has the old values of what the migration changes once for the whole plan. The first value is never replaced.
	Saved plans.Saved `json:"saved"`
	// Touched lists the ordinals that a process has begun to fence. They stay until one process has
	// fenced them all: a write that a process sent before it died may also arrive late.
	Touched []int32 `json:"touched,omitempty"`
	// Paused pauses the plan. It takes effect where no ordinal is in flight.
	Paused bool `json:"paused,omitempty"`
	// Resting records that a pause has taken effect since the last step began: nothing is in flight,
	// and the budgets are open.
	Resting bool `json:"resting,omitempty"`
	// PauseAt, if not 0, is an ordinal: a Move pauses before the first wave that lies wholly below
	// it, when all ordinals from it upwards have arrived.
	PauseAt int32 `json:"pauseAt,omitempty"`
	// TightSince is the time at which the budgets were tightened for the wave under way. It is only reported.
	TightSince *metav1.Time `json:"tightSince,omitempty"`
	// LongestTight is the longest time that a wave kept the budgets tight. It is only reported.
	LongestTight *metav1.Duration `json:"longestTight,omitempty"`
	// Stopwatch measures the wave under way. It is only reported and decides nothing.
	Stopwatch *Stopwatch `json:"stopwatch,omitempty"`
	// Downtime sums the waves that have arrived. It is only reported and decides nothing.
	Downtime *Downtime `json:"downtime,omitempty"`
	// Timeline is what has happened to the plan. It decides nothing.
	Timeline Timeline `json:"timeline,omitzero"`
	// EndedAt is the time at which the plan ended. It is reported, and gives the age of a record.
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// Blocked is the reason why the plan is blocked and needs the user. The next process that finds the
	// reason gone clears it.
	Blocked string `json:"blocked,omitempty"`
	// Awaits is what a plan waits for that is blocked only because it has waited for that too long: the orchestrator looks on,
	// and the plan continues by itself when that has ended. It means nothing without blocked.
	Awaits string `json:"awaits,omitempty"`
	// BlockedID is the ID of the reason in blocked, for `stsmigrate explain`. It means nothing without that.
	BlockedID reasons.ID `json:"blockedID,omitempty"`
	// WaitingID is the ID of the reason in waiting. It means nothing without that.
	WaitingID reasons.ID `json:"waitingID,omitempty"`
	// OverdueID is the ID of the reason in overdue. It means nothing without that.
	OverdueID reasons.ID `json:"overdueID,omitempty"`
	// KeepNames records that the user wants the bridge of the names to outlive the plan: Finalize
	// leaves it, and the process that maintains it from then on identifies it by this plan.
	KeepNames bool `json:"keepNames,omitempty"`
	// Passed lists passed gates of the step under way, or of the last step that had any.
	Passed *plans.Passed `json:"passed,omitempty"`
	// SkipGates, if not 0, is the number of the last step whose gates the user wants skipped.
	SkipGates int `json:"skipGates,omitempty"`
	// Prepared, between two clusters, is the wave whose volumes may have been made before it leaves,
	// while the wave before it comes up.
	Prepared *plans.Slice `json:"prepared,omitempty"`
	// Outcome is Moved, Split, Finalized or Aborted once the leg is finished; empty before.
	Outcome plans.Outcome `json:"outcome,omitempty"`
	// Detached records that an orchestrator carries the plan out and is the only writer of the
	// journal. The user's requests are in the StatefulSetMigration of the plan.
	Detached bool `json:"detached,omitempty"`
	// Observed is the part of the user's requests that has been taken over.
	Observed plans.Observed `json:"observed,omitzero"`
	// Waiting is the reason why a detached plan does not continue although it needs no decision: it
	// resumes by itself. It decides nothing.
	Waiting string `json:"waiting,omitempty"`
	// Assurances holds the facts for which users have vouched (L6).
	Assurances Assurances `json:"assurances,omitzero"`
	// Overdue describes what a wave in flight has been waiting for longer than --step-timeout. It is
	// reported until the wave is one step further, and decides nothing.
	Overdue string `json:"overdue,omitempty"`
}

// Block blocks the plan until the user acts. why is the reason that the user is shown.
func (j *Journal) Block(id reasons.ID, why string) {
	j.BlockedID, j.Blocked, j.Awaits, j.Waiting, j.Overdue = id, why, "", "", ""
}

// Unblock lets the plan go on. The looks find again what still applies.
func (j *Journal) Unblock() { j.Blocked, j.Awaits = "", "" }

// LooksOn reports whether the plan is blocked only because a wait with nothing in flight was too long, and continues by itself
// when that has ended, as long as a process looks on. A release that does not know of this may have blocked the plan since.
func (j *Journal) LooksOn() bool { return j.Awaits != "" && strings.HasPrefix(j.Blocked, j.Awaits) }

// Why returns the reason why the plan is blocked, or else why it waits, with its ID.
func (j *Journal) Why() (reasons.ID, string) {
	switch {
	case j.Blocked != "":
		return j.BlockedID, j.Blocked
	case j.Waiting != "":
		return j.WaitingID, j.Waiting
	}
	return "", ""
}

// Shown returns the reason that a reader of the journal shows: why the plan is blocked, or why it waits while no process
// carries it out, or why it waits if only the process that does can know (Tell). holder is that process, or "".
func (j *Journal) Shown(holder string) (reasons.ID, string) {
	carried := holder != ""
	switch {
	case j.Blocked != "":
	case carried && j.WaitingID != reasons.DrainFirst && j.WaitingID != reasons.CredentialsExpired, !carried && j.WaitingID == reasons.DrainFirst:
		return "", ""
	}
	return j.Why()
}

// Tell has every reader of the journal see what the process that carries the plan out waits for, where the clusters do not
// show it to others: the turn of a drain, or a login that is not accepted. The reasons are those that Shown knows.
func (j *Journal) Tell(id reasons.ID, why string) { j.WaitingID, j.Waiting = id, why }

// Idle reports whether nothing continues by itself: the plan has ended, is paused at a point where it
// can be, or is blocked until the user acts.
func (j *Journal) Idle(p *plans.Plan) bool {
	return j.Outcome != "" || j.Blocked != "" && !j.LooksOn() || j.AtRest(p)
}

// AtRest reports whether the plan is paused, not only requested to pause. A wave that has begun may have left
// the budgets tight, and a wave that was reversed may be on neither side: only a look can show that.
func (j *Journal) AtRest(p *plans.Plan) bool {
	step, began, more := j.Next(p)
	return j.Paused && more && step.Op.Boundary() && (j.Resting || !began && !j.Unsure(step))
}

// Tightened records that the budgets are tight from now on, if they were not before.
func (j *Journal) Tightened(now time.Time) {
	if j.TightSince == nil {
		j.TightSince = &metav1.Time{Time: now}
	}
}

// Loosened records that the budgets are open again.
func (j *Journal) Loosened(now time.Time) {
	if j.TightSince == nil {
		return
	}
	if d := now.Sub(j.TightSince.Time); j.LongestTight == nil || d > j.LongestTight.Duration {
		j.LongestTight = &metav1.Duration{Duration: d}
	}
	j.TightSince = nil
}

// Ended reports whether the plan can never write again.
func (j *Journal) Ended() bool { return j.Outcome == plans.Finalized || j.Outcome == plans.Aborted }

// Over reports whether the plan has ended and keeps no names: nothing needs its record any more.
func (j *Journal) Over() bool { return j.Ended() && !j.KeepNames }

// Untouched reports whether no process has taken the plan over yet: nothing of it is written but its record.
func (j *Journal) Untouched() bool { return j.Epoch == 0 && j.Begun == 0 && j.Outcome == "" }

// ClusterUnknown reports whether the plan waits for a user to make one of its clusters known to the orchestrator. It means
// nothing while a process carries the plan out.
func ClusterUnknown(j *Journal) bool {
	return j.Blocked == "" && j.Waiting != "" && j.WaitingID == reasons.ClusterUnknown
}

// New returns the journal of a plan that has not begun.
func New(p *plans.Plan) *Journal {
	return &Journal{
		APIVersion: plans.APIVersion, Kind: plans.JournalKind, Plan: p.ID, Hash: p.Hash,
		Leg: p.FirstLeg(),
	}
}

// Next returns the step to look at and whether its intent is already durable. more is false when the
// leg is finished.
func (j *Journal) Next(p *plans.Plan) (s plans.Step, began, more bool) {
	s, more = p.Step(j.Leg, j.Done+1)
	return s, s.Seq <= j.Begun, more
}

// Begin records the intent of a step, and of the steps after it that Batch allows to be announced
// with it, together with the old values that they would destroy. An old value already saved is never
// replaced (design rule: saved once).
func (j *Journal) Begin(p *plans.Plan, s plans.Step, u plans.Undo) {
	j.Done = s.Seq - 1
	j.Begun = max(j.Begun, s.Seq)
	for j.Begun-s.Seq+1 < s.Op.Batch() {
		next, more := p.Step(j.Leg, j.Begun+1)
		if !more || next.Op != s.Op {
			break
		}
		j.Begun++
	}
	if s.Op.WithNext() {
		// A step that is announced once more, with another old value, announces no more than that.
		j.Begun = max(j.Begun, s.Seq+1)
	}
	if u.Passed != nil {
		j.Passed = u.Passed
	}
	if u.Flight != nil {
		j.Flight = u.Flight
	}
	j.Saved.Keep(u.Saved)
	j.Resting = false
	j.Unblock()
}

// Recorded reports whether the journal holds every old value of u. A later write of a step may destroy more
// than its first, and the facts about a flight may have changed since the intent was written.
func (j *Journal) Recorded(u plans.Undo) bool {
	if u.Flight != nil && !equality.Semantic.DeepEqual(u.Flight, j.Flight) {
		return false
	}
	if u.Passed != nil && !equality.Semantic.DeepEqual(u.Passed, j.Passed) {
		return false
	}
	for side := range u.Saved.Retention {
		if _, have := j.Saved.Retention[side]; !have {
			return false
		}
	}
	for side := range u.Saved.Budgets {
		if _, have := j.Saved.Budgets[side]; !have {
			return false
		}
	}
	if u.Saved.Retired != "" && j.Saved.Retired == "" {
		return false
	}
	if u.Saved.SourceUID != "" && u.Saved.SourceUID != j.Saved.SourceUID {
		return false
	}
	if slices.ContainsFunc(u.Saved.Left, func(name string) bool { return !slices.Contains(j.Saved.Left, name) }) {
		return false
	}
	return u.Saved.Slice == nil || j.Saved.Slice != nil
}

// Behind returns what a stamp says that the journal does not, or "". Each step is in the journal before its first
// write (S10), so an object with a later stamp shows that the journal has gone back to an older one.
func (j *Journal) Behind(have plans.Stamp) string {
	last := max(j.Begun, j.Done)
	if have.Epoch < j.Epoch || have.Epoch == j.Epoch && have.Seq <= last {
		return ""
	}
	return fmt.Sprintf("step %d of epoch %d has written it, and the journal ends with step %d of epoch %d", have.Seq, have.Epoch, last, j.Epoch)
}
