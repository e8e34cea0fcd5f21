package trials

import (
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/parts"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ask is the question whether a write is let through.
type ask struct {
	part.Write

	step plans.Step // the zero value before the first step
}

// question is what two asks have in common that need one answer.
type question struct {
	operation string
	side      plans.Side
	kind      string
	namespace string
	name      string
	ofClaim   bool
}

func (a ask) question() question {
	return question{a.operation(), a.Side, a.Kind, a.Namespace, a.Name, a.OfClaim}
}

// operation is what admission calls the verb.
func (a ask) operation() string {
	switch a.Verb {
	case part.Create:
		return "CREATE"
	case part.Delete:
		return "DELETE"
	default:
		return "UPDATE"
	}
}

// verb is what a person calls it.
func (a ask) verb() string {
	switch a.Verb {
	case part.Create, part.Delete:
		return string(a.Verb)
	default:
		return "change"
	}
}

func there(p *plans.Plan) plans.Leg { return p.FirstLeg() }

func back(p *plans.Plan) plans.Leg {
	return plans.Leg{Direction: plans.Abort, First: 1, Lowest: p.Start, End: p.End()}
}

func finalize(p *plans.Plan) plans.Leg {
	return plans.Leg{Direction: plans.Finalize, First: 1, Lowest: p.End(), End: p.End()}
}

// asks lists the writes of a leg, each once: those that end the plan, or those before. Between waves it leaves out those of
// other ordinals.
func asks(i check.Inspection, l plans.Leg, closing bool) (out []ask) {
	known := map[question]bool{}
	add := func(s plans.Step, all []part.Write) {
		for _, w := range all {
			a := ask{w, s}
			if resizes(i.Plan, a) || known[a.question()] {
				continue
			}
			known[a.question()] = true
			out = append(out, a)
		}
	}
	if !closing {
		add(plans.Step{}, parts.Marks(i.Plan, l))
	}
	for seq := l.First; ; seq++ {
		s, more := i.Plan.Step(l, seq)
		if !more {
			return out
		}
		if s.Op.Closes() == closing && (s.Whole() || !i.Midway || overlap(i.Ordinals, s.Ordinals)) {
			add(s, parts.Writes(i.Plan, l, s))
		}
	}
}

func overlap(a, b plans.Slice) bool { return a.Start < b.End() && b.Start < a.End() }

// resizes reports whether a write gives a set another range.
func resizes(p *plans.Plan, a ask) bool {
	return a.step.Moves() && (a.step.Op.Leaves() || a.step.Op.Enters()) && a.Kind == p.On(a.Side).SetKind()
}
