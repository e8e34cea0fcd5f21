package plans

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Journal is what has been begun and done, and the old values of whole-plan
// things. Its size does not depend on the number of ordinals: what belongs to
// one ordinal travels on the objects of that ordinal.
type Journal struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Plan is the ID of the plan this journal belongs to.
	Plan string `json:"plan"`
	// Hash is that of the plan: what was begun means nothing under another one of the same ID. A journal of a
	// release that did not keep it is bound when it is next written.
	Hash string `json:"hash,omitempty"`
	// Read is that of a Plan.
	Read json.RawMessage `json:"-"`
	// Epoch grows with every process that takes the plan over (S9).
	Epoch int64 `json:"epoch"`
	Leg   Leg   `json:"leg"`
	// Done is the Seq of the last step known to be finished. It may lag behind
	// the world, never run ahead of it.
	Done int `json:"done"`
	// Begun is the Seq of the last step that may have written (S10).
	Begun int `json:"begun"`
	// Flight is the wave under way, or the last one that was.
	Flight *Flight `json:"flight,omitempty"`
	Saved  Saved   `json:"saved"`
	// Touched are the ordinals that a process has begun to fence. They stay until
	// one has fenced them all: what it was writing when it died may come late too.
	Touched []int32 `json:"touched,omitempty"`
	// Paused lets the plan rest. It takes effect at the next Boundary.
	Paused bool `json:"paused,omitempty"`
	// Resting says that a pause has taken effect since something was last begun: nothing is in flight, and
	// the budgets are open.
	Resting bool `json:"resting,omitempty"`
	// PauseAt, if not 0, pauses a Move before the first wave with no ordinal from it
	// upwards: when all of these have arrived.
	PauseAt int32 `json:"pauseAt,omitempty"`
	// TightSince is since when the budgets have been tightened for the wave under way, and
	// Longest how long they were at most for one. Both are told, and decide nothing.
	TightSince   *metav1.Time     `json:"tightSince,omitempty"`
	LongestTight *metav1.Duration `json:"longestTight,omitempty"`
	// Stopwatch measures the wave under way, and Downtime sums those before it. Both are told,
	// and decide nothing.
	Stopwatch *Stopwatch `json:"stopwatch,omitempty"`
	Downtime  *Downtime  `json:"downtime,omitempty"`
	// EndedAt is when the plan came to its end. It is told, and says how old a record is.
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// Blocked is the reason why nothing goes on without a person. Cleared by the
	// next process that finds the reason gone.
	Blocked string `json:"blocked,omitempty"`
	// KeepNames is the wish of a person that the bridge of the names outlives the
	// plan: a Clean leaves it, and who keeps it from then on knows it by this plan.
	KeepNames bool `json:"keepNames,omitempty"`
	// Passed are gates of the step under way, or of the last one that had any.
	Passed *Passed `json:"passed,omitempty"`
	// SkipGates, if not 0, is the Seq of the last step whose gates a person wants not
	// to be asked.
	SkipGates int `json:"skipGates,omitempty"`
	// Outcome is set when the Leg is finished.
	Outcome Outcome `json:"outcome,omitempty"`
	// Detached says that an orchestrator carries the plan out, and nobody else writes here. What people wish is in
	// the StatefulSetMigration of the plan, and Heard what of that has been taken over.
	Detached bool     `json:"detached,omitempty"`
	Observed Observed `json:"observed,omitzero"`
	// Waiting says why a detached plan does not go on, though nobody has to decide anything:
	// it goes on by itself. It decides nothing.
	Waiting string `json:"waiting,omitempty"`
	// Assurances is what persons have vouched for (L6).
	Assurances Assurances `json:"assurances,omitzero"`
	// Overdue says what a wave in flight has been waiting for, for longer than --step-timeout. It is
	// told until the wave is a step further, and decides nothing.
	Overdue string `json:"overdue,omitempty"`
}

// Block leaves the plan to a person, who is told why.
func (j *Journal) Block(why string) { j.Blocked, j.Waiting, j.Overdue = why, "", "" }

// Idle reports whether nothing goes on by itself: the plan has come to its end, is paused where it can be, or waits for
// a person.
func (j *Journal) Idle(p *Plan) bool { return j.Outcome != "" || j.Blocked != "" || j.AtRest(p) }

// AtRest says whether the plan is paused, and not only asked to be. What was begun of a wave may have left the
// budgets tight, and a wave that was turned round may be on neither side: only who has looked knows that.
func (j *Journal) AtRest(p *Plan) bool {
	step, began, more := j.Next(p)
	return j.Paused && more && step.Boundary() && (j.Resting || !began && !j.Reversed(step))
}

// Tightened notes that the budgets are tight from now on, if they were not before.
func (j *Journal) Tightened(now time.Time) {
	if j.TightSince == nil {
		j.TightSince = &metav1.Time{Time: now}
	}
}

// Loosened notes that the budgets are open again.
func (j *Journal) Loosened(now time.Time) {
	if j.TightSince == nil {
		return
	}
	if d := now.Sub(j.TightSince.Time); j.LongestTight == nil || d > j.LongestTight.Duration {
		j.LongestTight = &metav1.Duration{Duration: d}
	}
	j.TightSince = nil
}

// Ended says whether the plan can never write again.
func (j *Journal) Ended() bool { return j.Outcome == Finalized || j.Outcome == Aborted }

// NewJournal returns the journal of a plan of which nothing has been done.
func NewJournal(p *Plan) *Journal {
	return &Journal{
		APIVersion: APIVersion, Kind: JournalKind, Plan: p.ID, Hash: p.Hash,
		Leg: Leg{Direction: Move, First: 1, Lowest: p.Start, End: p.End()},
	}
}

// Next returns the step to look at and whether its intent is already durable.
// It returns false when the leg is finished.
func (j *Journal) Next(p *Plan) (s Step, began, more bool) {
	s, more = p.Step(j.Leg, j.Done+1)
	return s, s.Seq <= j.Begun, more
}

// Begin records the intent of a step, and of those after it that Batch allows
// to be announced with it, together with the old values it would destroy. Old
// values already saved are never replaced (design rule: saved once).
func (j *Journal) Begin(p *Plan, s Step, u Undo) {
	j.Done = s.Seq - 1
	j.Begun = max(j.Begun, s.Seq)
	for j.Begun-s.Seq+1 < s.Op.Batch() {
		next, more := p.Step(j.Leg, j.Begun+1)
		if !more || next.Op != s.Op {
			break
		}
		j.Begun++
	}
	if s.Op == Reserve || s.Op == Grow {
		j.Begun++ // and Claim, Verify or Relax behind it: they destroy nothing that is not saved yet
	}
	if u.Passed != nil {
		j.Passed = u.Passed
	}
	if u.Flight != nil {
		j.Flight = u.Flight
	}
	j.Saved.keep(u.Saved)
	j.Blocked, j.Resting = "", false
}

// Recorded says whether the journal holds every old value of u. A step of several
// writes may destroy more with a later one than with its first, and what is
// known of a flight may have changed since its intent was written.
func (j *Journal) Recorded(u Undo) bool {
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
	if u.Saved.SourceUID != "" && u.Saved.SourceUID != j.Saved.SourceUID {
		return false
	}
	return u.Saved.Slice == nil || j.Saved.Slice != nil
}

// Reversed says whether the ordinals of this step had not arrived, or had not even
// left, when the plan was turned round: what the earlier leg did not reach is
// then already as it should be. It ends when they are found to have arrived and
// leave again.
func (j *Journal) Reversed(s Step) bool {
	left := j.Flight != nil && j.Flight.Ordinals == s.Ordinals && j.Flight.From == s.From
	return j.Leg.Direction == Abort && s.Moves() && s.Ordinals.Start == j.Leg.Lowest && !left
}
