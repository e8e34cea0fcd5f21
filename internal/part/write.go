package part

import "github.com/stsmigrate/stsmigrate/plans"

// Write is one write that carrying a plan out sends to an API server. The name of a volume that belongs to a claim of an
// ordinal is not in a plan: Name is the claim's then, and OfClaim is set.
type Write struct {
	// Step is the ID of the step that sends it, or "" before the first one.
	Step string `json:"step,omitempty"`
	// Verb is create, patch, update or delete.
	Verb      Verb       `json:"verb"`
	Side      plans.Side `json:"side"`
	Kind      string     `json:"kind"`
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name"`
	OfClaim   bool       `json:"ofClaim,omitempty"`
	// Times is how often it is sent at most, if that may be more than once.
	Times int    `json:"times,omitempty"`
	What  string `json:"what"`
}

// Verb is what a write does to its object.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Patch  Verb = "patch"
	Update Verb = "update"
	Delete Verb = "delete"
)

// ToMark is what is written on an object before the first step, so that a late write of another process fails.
const ToMark = "mark it as this run's"

// Object names what is written, as a list shows it.
func (w Write) Object() string {
	switch {
	case w.OfClaim:
		return "of claim " + w.Namespace + "/" + w.Name
	case w.Namespace == "":
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

// Namespace is that of a side of a plan.
type Namespace struct {
	name string
	side plans.Side
}

// On returns the namespace of a side.
func On(p *plans.Plan, side plans.Side) Namespace { return Namespace{p.On(side).Namespace, side} }

// Write returns the write of an object in the namespace.
func (n Namespace) Write(verb Verb, kind, name, what string) Write {
	return Write{Verb: verb, Side: n.side, Kind: kind, Namespace: n.name, Name: name, What: what}
}

// AtOnce says of a write after a wave that it is left out if the next wave can go at once, or nothing if there is none.
func AtOnce(p *plans.Plan, l plans.Leg, s plans.Step) string {
	if next, more := p.Step(l, s.Seq+1); more && next.Op.Tightens() {
		return "; left out if the next wave can go at once"
	}
	return ""
}
