package live

import (
	"time"

	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/view/event"
	"github.com/stsmigrate/stsmigrate/plans"
)

// OfProgress returns the event for the progress of a run. ok is false for a step without news, and for an end, which
// OfEnd reports.
func OfProgress(p *plans.Plan, how engine.Progress, err error, now time.Time) (e event.Event, ok bool) {
	about := func(t event.Type, message string) (event.Event, bool) {
		return event.New(t, now, p.Name, message).Of(p, how.Step), true
	}
	because := func(t event.Type, message string) (event.Event, bool) {
		return event.New(t, now, p.Name, message).Of(p, how.Step).Because(how.ID), true
	}
	switch {
	case err != nil:
		return about(event.Retry, "will try again: "+err.Error())
	case how.Overdue:
		return because(event.Overdue, how.Reason)
	case how.Kind == engine.Waiting:
		return because(event.Waiting, "waiting: "+how.Reason)
	case how.Kind == engine.Wrote:
		return about(event.Wrote, how.Reason)
	case how.Kind != engine.Advanced:
		return e, false
	}
	switch step := how.Step; {
	case step.Op.Frees():
		line := "free: pod and volumes have left the " + string(step.From)
		if how.Reason != "" {
			line += "; " + how.Reason
		}
		return about(event.Free, line)
	case step.Op.Enters():
		line := "available on the " + string(step.To())
		if how.Came != nil && how.Came.Elsewhere != "" {
			line += "; " + how.Came.Elsewhere
		}
		if how.Forecast != "" {
			line += "; " + how.Forecast
		}
		e, _ = about(event.Available, line)
		e.Spans = secondsOf(how.Took)
		return e, true
	case step.Op.Gated() && how.Reason != "":
		return about(event.Gate, how.Reason)
	}
	return e, false
}

// secondsOf returns the spans in seconds.
func secondsOf(took *engine.Took) map[plans.Span]float64 {
	if took == nil {
		return nil
	}
	out := map[plans.Span]float64{}
	for span, d := range *took {
		out[span] = d.Seconds()
	}
	return out
}

// OfError returns the event for an error that will be retried, outside of any step.
func OfError(p *plans.Plan, err error, now time.Time) event.Event {
	return event.New(event.Retry, now, p.Name, "will try again: "+err.Error())
}

// aloft returns a wave in flight as an event has it.
func aloft(f *engine.InFlight) *event.InFlight {
	if f == nil {
		return nil
	}
	out := &event.InFlight{Pods: f.Pods, Down: f.Down}
	if f.Since != nil {
		out.Since = &f.Since.Time
	}
	return out
}

// OfEnd returns the event for the end of a run, with what it has left in flight.
func OfEnd(p *plans.Plan, how engine.Progress, left stops.Remains, err error, now time.Time) event.Event {
	end := func(t event.Type, message string) event.Event {
		return event.New(t, now, p.Name, message).Of(p, how.Step).Because(how.ID).Leaves(aloft(left.InFlight))
	}
	switch {
	case err != nil && left.InFlight != nil:
		return end(event.Stopped, err.Error()+"; "+left.InFlight.Message)
	case how.Kind == engine.Stopped:
		return end(event.Stopped, how.Reason)
	case err != nil:
		return end(event.Stopped, err.Error())
	case how.Overtaken:
		return end(event.Stopped, how.Reason)
	case how.Kind == engine.Blocked:
		return end(event.Blocked, how.Reason)
	case how.Kind == engine.Paused:
		return end(event.Paused, how.Reason)
	}
	e := event.New(event.Finished, now, p.Name, "plan "+p.Name+": "+string(how.Outcome))
	e.Outcome = how.Outcome
	return e
}
