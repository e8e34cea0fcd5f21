package live

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/view"
	"github.com/stsmigrate/stsmigrate/internal/view/event"
	"github.com/stsmigrate/stsmigrate/plans"
)

// moment is a plan at one moment, as it was read and as it is drawn.
type moment struct {
	Status
	view.Migration
	// phases are those of the ordinals, each as it was last read.
	phases []string
}

// lastRead returns the phase of each ordinal at a moment, or at the moment before for one that could not be read.
func lastRead(before *moment, now *engine.View) (out []string) {
	for i, o := range now.Ordinals {
		if o.Phase == unread && before != nil {
			o.Phase = before.phases[i]
		}
		out = append(out, o.Phase)
	}
	return out
}

// unread is the phase of an ordinal of which neither side could be read.
const unread = "?"

// changes returns the events between two moments of a plan that another process carries out. before is nil at the
// first moment.
func changes(p *plans.Plan, before *moment, after moment) []event.Event {
	var out []event.Event
	if before == nil || before.State != after.State {
		out = append(out, stateOf(p, after))
	}
	if before != nil {
		out = append(out, arrivals(p, *before, after)...)
	}
	step, begun := underWay(p, after.Status)
	if !begun {
		step = plans.Step{}
	}
	was := moment{Status: Status{View: &engine.View{}}}
	if before != nil {
		was = *before
	}
	if why := after.View.Overdue; why != "" && why != was.View.Overdue {
		out = append(out, event.New(event.Overdue, after.At, p.Name, "overdue: "+why).Of(p, step).Because(after.View.OverdueID))
	}
	why, rests := after.View.Reason, after.View.Rests()
	if why != "" && !rests && (why != was.View.Reason || after.View.Step != was.View.Step) {
		out = append(out, event.New(event.Waiting, after.At, p.Name, "waiting: "+why).Of(p, step).Because(after.View.ReasonID))
	}
	if rests {
		out = append(out, restOf(p, after))
	}
	return out
}

// arrivals returns an event for each ordinal that has arrived between two moments. An ordinal that is where it was has
// not arrived, even if the plan has turned to that side meanwhile.
func arrivals(p *plans.Plan, before, after moment) (out []event.Event) {
	for i, o := range after.Ordinals {
		was := before.phases[i]
		if o.Phase != view.Arrived || before.Ordinals[i].Phase == view.Arrived || was == after.phases[i] || was == unread {
			continue
		}
		step := plans.Step{Op: plans.Grow, Ordinals: plans.Slice{Start: o.Ordinal, Replicas: 1}, From: after.To.Other()}
		e := event.New(event.Available, after.At, p.Name, "available on the "+string(after.To)).Of(p, step)
		e.Spans = inSeconds(o.Spans)
		out = append(out, e)
	}
	return out
}

// stateOf returns the event that reports how a plan stands.
func stateOf(p *plans.Plan, m moment) event.Event {
	arrived, all := m.Arrived, len(m.Ordinals)
	text := fmt.Sprintf("%s: %d of %d on the %s", m.State, arrived, all, m.To)
	if m.Unavailable != nil {
		text += fmt.Sprintf(", unavailable %d of %d allowed", *m.Unavailable, m.MaxUnavailable)
	}
	e := event.New(event.State, m.At, p.Name, text)
	e.State, e.Arrived, e.Ordinals, e.Unavailable = m.State, &arrived, &all, m.Unavailable
	if f := m.View.InFlight; f != nil {
		e.Message += "; " + plans.Line(f.Message)
	}
	return e.Leaves(aloft(m.View.InFlight))
}

// restOf returns the event that ends a watch.
func restOf(p *plans.Plan, m moment) event.Event {
	switch m.State {
	case plans.StateBlocked:
		return event.New(event.Blocked, m.At, p.Name, "blocked: "+m.View.Reason).Because(m.View.ReasonID)
	case plans.StatePaused:
		return event.New(event.Paused, m.At, p.Name, "paused; no ordinal is in flight")
	default:
	}
	e := event.New(event.Finished, m.At, p.Name, "plan "+p.Name+": "+string(m.State))
	e.Outcome = plans.Outcome(m.State)
	return e
}

// inSeconds returns spans as an event has them, or nil if they are not known.
func inSeconds(s view.Spans) map[plans.Span]float64 {
	if s == (view.Spans{}) {
		return nil
	}
	out := map[plans.Span]float64{}
	for i, span := range plans.Spans() {
		out[span] = s[i].Seconds()
	}
	return out
}
