// Package event has the events of a migration, as lines for people and as JSON for programs. It is pure.
//
// The JSON form is described by docs/schemas/event.schema.json. A type is never renamed, and a field keeps its
// meaning. New types and fields may be added: a reader ignores those that it does not know.
package event

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Kind is the kind of an Event in its JSON form, under plans.APIVersion.
const Kind = "Event"

// Type is the type of an event.
type Type string

const (
	// State means that the plan was seen in a state: at the beginning, and whenever it has another one.
	State Type = "State"
	// Wrote means that a write was sent.
	Wrote Type = "Wrote"
	// Waiting means that a step waits for something else than before.
	Waiting Type = "Waiting"
	// Free means that the pods and volumes of a wave have left their side.
	Free Type = "Free"
	// Available means that the pods of a wave are available on the side that they move to.
	Available Type = "Available"
	// Gate means that a gate has passed.
	Gate Type = "Gate"
	// Overdue means that a wave in flight waits for longer than expected.
	Overdue Type = "Overdue"
	// Retry means that a request has failed and will be sent again.
	Retry Type = "Retry"
	// Stopping means that the run is to end, and when it does.
	Stopping Type = "Stopping"
	// Paused is the end of a run or a watch: a user has paused the plan.
	Paused Type = "Paused"
	// Blocked is the end of a run or a watch: the plan needs the user.
	Blocked Type = "Blocked"
	// Finished is the end of a run or a watch: the plan has an outcome.
	Finished Type = "Finished"
	// Stopped is the end of a run that was stopped, has failed, or was taken over by another process.
	Stopped Type = "Stopped"
)

// Types returns all types.
func Types() []Type {
	return []Type{State, Wrote, Waiting, Free, Available, Gate, Overdue, Retry, Stopping, Paused, Blocked, Finished, Stopped}
}

// Event is one event.
type Event struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Type       Type      `json:"type"`
	Time       time.Time `json:"time"`
	Plan       string    `json:"plan"`
	// Step is the step that the event is about.
	Step *Step `json:"step,omitempty"`
	// State, Arrived, Ordinals and Unavailable are how the plan stands, with the type State.
	State       plans.State `json:"state,omitempty"`
	Arrived     *int        `json:"arrived,omitempty"`
	Ordinals    *int        `json:"ordinals,omitempty"`
	Unavailable *int32      `json:"unavailable,omitempty"`
	// Spans is how many seconds each span took, with the type Available.
	Spans map[plans.Span]float64 `json:"spans,omitempty"`
	// Reason is the ID of the reason, with the types Waiting, Overdue, Paused and Blocked: `stsmigrate explain ID`.
	Reason reasons.ID `json:"reason,omitempty"`
	// InFlight is the wave on neither side that no process carries on, with the types State, Blocked and Stopped.
	InFlight *InFlight `json:"inFlight,omitempty"`
	// Outcome is how the plan has ended, with the type Finished.
	Outcome plans.Outcome `json:"outcome,omitempty"`
	// Message is a sentence for a person. Programs must not interpret it.
	Message string `json:"message"`
}

// Step is a step of a plan.
type Step struct {
	Op plans.Op `json:"op"`
	// Pods names the pods of the step, such as "web-4" or "web-2..4", and First and Count the ordinals. A step of the
	// whole plan has none.
	Pods  string `json:"pods,omitempty"`
	First *int32 `json:"first,omitempty"`
	Count int32  `json:"count,omitempty"`
	// From is the side that the ordinals leave.
	From plans.Side `json:"from,omitempty"`
}

// New returns an event of a plan.
func New(t Type, now time.Time, plan, message string) Event {
	return Event{APIVersion: plans.APIVersion, Kind: Kind, Type: t, Time: now.UTC(), Plan: plan, Message: plans.Line(message)}
}

// Of returns the event with the step that it is about.
func (e Event) Of(p *plans.Plan, s plans.Step) Event {
	if s.Op == "" {
		return e
	}
	e.Step = &Step{Op: s.Op}
	if !s.Whole() {
		e.Step.Pods, e.Step.First, e.Step.Count, e.Step.From = p.Pods(s.Ordinals), &s.Ordinals.Start, s.Ordinals.Replicas, s.From
	}
	return e
}

// Because returns the event with the ID of its reason.
func (e Event) Because(id reasons.ID) Event {
	e.Reason = id
	return e
}

// InFlight is a wave that has left one side and not arrived on the other.
type InFlight struct {
	// Pods names the pods of the wave, Since is when it left, and Down names those that are Ready on neither side.
	Pods  string     `json:"pods"`
	Since *time.Time `json:"since,omitempty"`
	Down  []string   `json:"down,omitempty"`
}

// Leaves returns the event with the wave that is in flight, if there is one.
func (e Event) Leaves(f *InFlight) Event {
	e.InFlight = f
	return e
}

// String returns one line, with date and zone.
func (e Event) String() string { return e.at("2006-01-02T15:04:05.000Z07:00") }

// Short returns one line for a view that is redrawn: with the time of the day.
func (e Event) Short() string { return e.at("15:04:05 MST") }

func (e Event) at(layout string) string {
	subject := ""
	if e.Step != nil {
		subject = string(e.Step.Op)
		if e.Step.Pods != "" {
			subject = e.Step.Pods + " " + subject
		}
	}
	return fmt.Sprintf("%s  %-16s %s", e.Time.Format(layout), subject, reasons.Tagged(e.Reason, e.Message))
}

// JSON returns one line, with its end.
func (e Event) JSON() ([]byte, error) {
	raw, err := json.Marshal(e)
	return append(raw, '\n'), err
}
