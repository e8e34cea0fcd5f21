package plans

import "slices"

// State is how a plan stands for a reader, in one word. Programs compare it with these constants, and ask for what it
// means with its methods.
type State string

// The states. Those of a leg that has ended are its outcome.
const (
	StatePlanning        State = "Planning"
	StatePlanReady       State = "PlanReady"
	StatePlanned         State = "Planned"
	StateWaiting         State = "Waiting"
	StateMoving          State = "Moving"
	StateAborting        State = "Aborting"
	StateFinalizing      State = "Finalizing"
	StateStopped         State = "Stopped"
	StateStoppedInFlight State = "StoppedInFlight"
	StatePaused          State = "Paused"
	StateBlocked         State = "Blocked"
	StateMoved           State = "Moved"
	StateSplit           State = "Split"
	StateFinalized       State = "Finalized"
	StateAborted         State = "Aborted"
	StateUnreadable      State = "Unreadable"
	StateGone            State = "Gone"
)

// Tone is how loud a state is said.
type Tone string

// The tones.
const (
	ToneGood  Tone = "good"
	ToneBusy  Tone = "busy"
	ToneBad   Tone = "bad"
	TonePlain Tone = "plain"
)

// Course is who changes the state next.
type Course string

// The courses.
const (
	CourseWork     Course = "work"     // a process does
	CourseProcess  Course = "process"  // a process would, and none does
	CourseUser     Course = "user"     // the user, at leisure
	CourseAnswer   Course = "answer"   // the user: the plan does not continue, or not as it should
	CourseNone     Course = "none"     // the plan has ended
	CourseApproval Course = "approval" // the user approves what is to be done
)

// stateRow is all that the program knows of a state.
type stateRow struct {
	state  State
	tone   Tone
	course Course
	rests  bool // the plan stays as it is until a user acts
	waited bool // `wait` may wait for it
	text   string
}

// stateRows is the table of the states. Those that can be waited for are listed in this order.
var stateRows = []stateRow{ //nolint:gochecknoglobals // a table
	{StateMoved, ToneGood, CourseUser, true, true, "every ordinal is on the destination; the source is not cleaned up yet"},
	{StateSplit, ToneBusy, CourseUser, true, true, "the ordinals are on both sides, as requested"},
	{StateFinalized, ToneGood, CourseNone, true, true, "the source is cleaned up; nothing is left to do"},
	{StateAborted, ToneBusy, CourseNone, true, true, "everything is back on the source; nothing is left to do"},
	{StatePaused, ToneBusy, CourseUser, true, true, "a user has paused the plan; no ordinal is in flight"},
	{StateBlocked, ToneBad, CourseAnswer, true, true, "the plan needs you; nothing more is written, and nothing is lost"},
	{StateStopped, ToneBusy, CourseProcess, false, true, "no process carries the plan out; all that was done is recorded, no ordinal is in flight, and nothing is lost"},
	{StateStoppedInFlight, ToneBad, CourseAnswer, false, true, "no process carries the plan out, and ordinals are on neither side until one does; all that was done is recorded, and nothing is lost"},
	{StateMoving, TonePlain, CourseWork, false, true, "a process moves the ordinals, highest first"},
	{StateAborting, TonePlain, CourseWork, false, true, "a process moves the ordinals back, lowest first"},
	{StateFinalizing, TonePlain, CourseWork, false, true, "a process deletes what is left of the source"},
	{StateWaiting, ToneBusy, CourseProcess, false, false, "the plan waits for an orchestrator"},
	{StatePlanned, TonePlain, CourseUser, false, false, "nothing has begun"},
	{StatePlanning, TonePlain, CourseWork, false, false, "an orchestrator makes the plan"},
	{StatePlanReady, TonePlain, CourseApproval, false, false, "the plan waits for your approval"},
	{StateUnreadable, ToneBad, CourseAnswer, false, false, "this program cannot read the record of the plan"},
	{StateGone, TonePlain, CourseNone, false, false, "the record of the plan was deleted"},
}

// row returns the row of a state. A word that is none has an empty one.
func (s State) row() stateRow {
	i := slices.IndexFunc(stateRows, func(r stateRow) bool { return r.state == s })
	if i < 0 {
		return stateRow{tone: TonePlain}
	}
	return stateRows[i]
}

// AwaitedStates returns the states that a plan can be waited for.
func AwaitedStates() (out []State) {
	for _, r := range stateRows {
		if r.waited {
			out = append(out, r.state)
		}
	}
	return out
}

// Tone returns how loud the state is said.
func (s State) Tone() Tone { return s.row().tone }

// Text says what the state means, or is "".
func (s State) Text() string { return s.row().text }

// Rests reports whether a plan in the state stays as it is until a user acts.
func (s State) Rests() bool { return s.row().rests }

// Ended reports whether nothing is left to do.
func (s State) Ended() bool { return s.row().course == CourseNone }

// Worked reports whether a process works on a plan in the state.
func (s State) Worked() bool { return s.row().course == CourseWork }

// Attention reports whether the plan needs the user.
func (s State) Attention() bool { return s.row().course == CourseAnswer }

// Approval reports whether the user has to approve what is planned.
func (s State) Approval() bool { return s.row().course == CourseApproval }

// Continues reports whether a process changes the state next, even if none does now.
func (s State) Continues() bool {
	return s.row().course == CourseWork || s.row().course == CourseProcess
}
