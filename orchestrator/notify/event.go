package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Change is the kind of a change of a plan's state. The type of a CloudEvent is TypePrefix and this word.
type Change string

// TypePrefix begins the type of every CloudEvent.
const TypePrefix = "dev.stsmigrate.plan."

const (
	// Planned means that the plan is made and waits for approval.
	Planned Change = "planned"
	// Approved means that the plan is approved, or handed over, and has not begun.
	Approved Change = "approved"
	// Begun means that the first ordinals are about to leave.
	Begun Change = "begun"
	// Blocked means that the plan needs the user.
	Blocked Change = "blocked"
	// Overdue means that a wave in flight waits for longer than it should.
	Overdue Change = "overdue"
	// Paused means that the plan is paused, with nothing in flight.
	Paused Change = "paused"
	// Resumed means that the plan moves again.
	Resumed Change = "resumed"
	// Moved means that every ordinal is on the destination.
	Moved Change = "moved"
	// Split means that the plan has stopped where the user wanted it to.
	Split Change = "split"
	// Finalized means that the source is cleaned up.
	Finalized Change = "finalized"
	// Aborted means that everything is back on the source.
	Aborted Change = "aborted"
	// Aborting means that the plan moves its ordinals back to the source.
	Aborting Change = "aborting"
	// Finalizing means that the plan cleans the source up.
	Finalizing Change = "finalizing"
	// Failed means that no plan could be made, or that the approved plan cannot begin.
	Failed Change = "failed"
	// Unreadable means that the record of the plan cannot be read.
	Unreadable Change = "unreadable"
)

// Changes lists every kind of change.
func Changes() []Change {
	return []Change{
		Planned, Approved, Begun, Blocked, Overdue, Paused, Resumed, Moved, Split, Finalized, Aborted, Aborting, Finalizing, Failed, Unreadable,
	}
}

// Set names a set on one side.
type Set struct {
	Cluster   string `json:"cluster"`
	Context   string `json:"context,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Kind      string `json:"kind,omitempty"`
}

// State is what is known of a plan now.
type State struct {
	// Home is the UID of the cluster that stores the plan.
	Home            string
	Namespace, Plan string
	// Object is the UID of the StatefulSetMigration.
	Object string
	// ID and Hash are those of the plan, or empty if there is none yet.
	ID, Hash string
	// State is the word for the state in `stsmigrate get`.
	State     plans.State
	Direction string
	// Reason is why the plan is blocked, overdue or failed, in one line, and ReasonID names it.
	Reason, ReasonID string
	// Overdue reports that a wave in flight waits too long, and Failed that the user's request cannot be
	// carried out.
	Overdue, Failed     bool
	Source, Destination *Set
	Ordinals            int32
	MaxUnavailable      int32
	// Next is the next command, if the user has to do something.
	Next string
}

// Mark is the last change that was told of a plan. It is stored with the plan, so that the next process
// resumes there.
type Mark struct {
	Sequence int64  `json:"sequence"`
	Change   Change `json:"change"`
	ID       string `json:"id"`
}

// Event is a CloudEvent (version 1.0) about one change. Its JSON form is that of the structured mode.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	// Sequence orders the events of one plan (the extension of this name): a greater string is later.
	Sequence string `json:"sequence"`
	Data     Data   `json:"data"`

	mark   Mark
	object string
}

// Data is what an event tells.
type Data struct {
	Plan           string      `json:"plan"`
	Namespace      string      `json:"namespace"`
	ID             string      `json:"id,omitempty"`
	Hash           string      `json:"hash,omitempty"`
	State          plans.State `json:"state"`
	Change         Change      `json:"change"`
	Previous       Change      `json:"previous,omitempty"`
	Direction      string      `json:"direction,omitempty"`
	Reason         string      `json:"reason,omitempty"`
	ReasonID       string      `json:"reasonID,omitempty"`
	Next           string      `json:"next,omitempty"`
	Source         *Set        `json:"source,omitempty"`
	Destination    *Set        `json:"destination,omitempty"`
	Ordinals       int32       `json:"ordinals,omitempty"`
	MaxUnavailable int32       `json:"maxUnavailable,omitempty"`
}

// Mark returns the mark to store once the event is delivered, and the UID of the object to store it on.
func (e Event) Mark() (Mark, string) { return e.mark, e.object }

// Next returns the event about a state, if the state differs from the one that was told last. A state of
// which nothing is told, such as that of a plan between two processes, differs from none.
func Next(last Mark, s State, now time.Time) (Event, bool) {
	change := changeTo(last.Change, s)
	if change == "" || last.ID == identify(s, last.Sequence, change) {
		return Event{}, false
	}
	mark := Mark{Sequence: last.Sequence + 1, Change: change}
	mark.ID = identify(s, mark.Sequence, change)
	return Event{
		SpecVersion: "1.0", ID: mark.ID, Type: TypePrefix + string(change), Subject: s.Plan, Time: now.UTC(), DataContentType: "application/json",
		Source: fmt.Sprintf("/clusters/%s/namespaces/%s/statefulsetmigrations", s.Home, s.Namespace), Sequence: fmt.Sprintf("%010d", mark.Sequence),
		Data: Data{
			Plan: s.Plan, Namespace: s.Namespace, ID: s.ID, Hash: s.Hash, State: s.State, Change: change, Previous: last.Change, Direction: s.Direction,
			Reason: s.Reason, ReasonID: s.ReasonID, Next: s.Next, Source: s.Source, Destination: s.Destination, Ordinals: s.Ordinals, MaxUnavailable: s.MaxUnavailable,
		},
		mark: mark, object: s.Object,
	}, true
}

// changeTo returns the change that leads to a state, or "" for a state of which nothing is told.
func changeTo(last Change, s State) Change {
	moves := func(change Change) Change {
		if s.Overdue {
			return Overdue
		}
		return change
	}
	switch s.State {
	case plans.StatePlanning, plans.StatePlanReady:
		if s.Failed {
			return Failed
		}
		if s.State.Approval() {
			return Planned
		}
	case plans.StatePlanned:
		return Approved
	case plans.StateMoving:
		switch last {
		case Begun, Resumed:
			return moves(last)
		case "", Planned, Approved, Failed:
			return moves(Begun)
		default:
			return moves(Resumed)
		}
	case plans.StateAborting:
		return moves(Aborting)
	case plans.StateBlocked, plans.StatePaused, plans.StateFinalizing, plans.StateMoved, plans.StateSplit, plans.StateFinalized, plans.StateAborted, plans.StateUnreadable:
		return Change(strings.ToLower(string(s.State)))
	case plans.StateWaiting, plans.StateStopped, plans.StateStoppedInFlight, plans.StateGone:
	}
	return ""
}

// identify returns the id of a change. The same change has the same id in every process. The reason
// distinguishes two obstacles, of which the first was removed while no process watched.
func identify(s State, sequence int64, change Change) string {
	of := []string{s.Home, s.Namespace, s.Plan, s.Object, s.ID, fmt.Sprint(sequence), string(change)}
	if change == Blocked || change == Overdue {
		of = append(of, s.Reason)
	}
	raw, _ := json.Marshal(of) // strings: no error is possible
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
