package journal

import (
	"fmt"
	"slices"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Assurances holds the facts for which users have vouched so far, as the journal keeps them. A node is recorded
// with the flight for which it was named: the node may return, and means nothing for another wave.
type Assurances struct {
	// Readopt vouches that sets and volumes without the mark of the plan, or recreated ones, are its own. It is valid until
	// the next takeover of the plan.
	Readopt bool `json:"readopt,omitempty"`
	// MaxUnavailable is how many ordinals may be unavailable during an abort. Defaults to 0: the number of the plan.
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
	// SourceGone vouches that the source's cluster does not exist any more. It is valid for good.
	SourceGone bool `json:"sourceGone,omitempty"`
	// Ahead vouches for nodes on which a wave depends that has not left yet. It is not valid for another wave.
	Ahead *Ahead `json:"ahead,omitempty"`
}

// Ahead is what a user vouches for before a wave leaves: another cluster may still have its volumes attached to a node.
type Ahead struct {
	// Ordinals are the ordinals of the wave.
	Ordinals plans.Slice `json:"ordinals"`
	// From is the side that the ordinals will leave.
	From plans.Side `json:"from"`
	// NodesGone are the nodes of which the user has vouched that they are gone (--node-gone), all of the side that will
	// receive the ordinals.
	NodesGone []string `json:"nodesGone"`
}

// nodes returns the nodes that a user has vouched for before the wave of a step has left.
func (a *Ahead) nodes(s plans.Step) []string {
	if !a.about(s.Ordinals, s.From) {
		return nil
	}
	return a.NodesGone
}

// about reports whether it is about the wave of these ordinals that leaves a side.
func (a *Ahead) about(ordinals plans.Slice, from plans.Side) bool {
	return a != nil && a.Ordinals == ordinals && a.From == from
}

// Assure records a word for the current direction of the plan. It fails for a word that has no meaning there.
func (j *Journal) Assure(p *plans.Plan, w plans.Assurance) error {
	v := j.Assurances
	v.Readopt = w.Readopt
	flight := j.Flight
	if next := j.leaves(p); w.NodeGone != "" && next != nil {
		nodes := v.Ahead.nodes(*next)
		if !slices.Contains(nodes, w.NodeGone) {
			nodes = append(slices.Clone(nodes), w.NodeGone)
		}
		v.Ahead = &Ahead{Ordinals: next.Ordinals, From: next.From, NodesGone: nodes}
	} else if w.NodeGone != "" {
		if !j.Down(p) {
			return fmt.Errorf("plan %s has no ordinals in flight: --node-gone %s has no effect now", p.Name, w.NodeGone)
		}
		flight = j.believe(p, w.NodeGone)
	}
	if w.MaxUnavailable != 0 {
		if j.Leg.Direction != plans.Abort {
			return fmt.Errorf("plan %s is not being aborted: during the move at most %d ordinals may be unavailable", p.Name, p.MaxUnavailable)
		}
		if w.MaxUnavailable < p.MaxUnavailable || w.MaxUnavailable > p.Count {
			return fmt.Errorf("--max-unavailable %d: expected %d, the number that plan %s allows, to %d, the number of its ordinals", w.MaxUnavailable, p.MaxUnavailable, p.Name, p.Count)
		}
		v.MaxUnavailable = w.MaxUnavailable
	}
	if w.SourceGone {
		if p.OneCluster() || j.Leg.Direction != plans.Finalize {
			return fmt.Errorf("plan %s: --source-gone is only for finalize after a move to another cluster", p.Name)
		}
		v.SourceGone = true
	}
	j.Assurances, j.Flight = v, flight
	return nil
}

// believe returns the flight with a node for which the user has vouched. Two clusters may name nodes alike, so it is a
// node of the cluster of which the plan has asked (S1): of the one that the ordinals leave, except where the wave waits
// for the other one alone. A wave that was reversed waits only for the one that it had not reached; the budgets come
// first, and until then the last question is that of the earlier direction.
func (j *Journal) believe(p *plans.Plan, node string) *plans.Flight {
	next := *j.Flight
	words := &next.NodesGone
	step, _, _ := j.Next(p)
	asks := step.Op != plans.Tighten && step.Op != plans.Quiesce && step.Op != plans.Shrink
	if !p.OneCluster() && (next.WaitsThere || asks && step.From != next.From) {
		words = &next.NodesGoneThere
	}
	if !slices.Contains(*words, node) {
		*words = append(slices.Clone(*words), node)
	}
	return &next
}

// AssuredFacts lists the facts for which users have vouched and which are still of use.
func (j *Journal) AssuredFacts() []string {
	var out []string
	add := func(so bool, format string, args ...any) {
		if so {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	if j.Flight != nil {
		for _, node := range j.Flight.NodesGone {
			add(!j.Ended(), "node %s of the %s is gone for good, or cannot use the volumes of ordinals %s", node, j.Flight.From, j.Flight.Ordinals)
		}
		for _, node := range j.Flight.NodesGoneThere {
			add(!j.Ended(), "node %s of the %s is gone for good, or cannot use the volumes of ordinals %s", node, j.Flight.From.Other(), j.Flight.Ordinals)
		}
	}
	if a := j.Assurances.Ahead; a != nil {
		left := j.Flight != nil && a.about(j.Flight.Ordinals, j.Flight.From)
		for _, node := range a.NodesGone {
			add(!left && !j.Ended(), "node %s of the %s is gone for good, or cannot use the volumes of ordinals %s, which leave the %s", node, a.From.Other(), a.Ordinals, a.From)
		}
	}
	add(j.Saved.SourceUID != "", "the source is the recreated set with the UID %s", j.Saved.SourceUID)
	add(j.Assurances.Readopt, "the sets and volumes without the stamp of the plan are its own")
	add(j.Leg.Direction == plans.Abort && j.Assurances.MaxUnavailable > 0, "%d ordinals may be unavailable during the abort", j.Assurances.MaxUnavailable)
	add(j.Assurances.SourceGone, "the cluster of the source is gone")
	return out
}

// leaves returns the next step if it belongs to a wave that has not left, between two clusters: until its volumes are
// detached in the cluster that receives it, it waits.
func (j *Journal) leaves(p *plans.Plan) *plans.Step {
	step, began, more := j.Next(p)
	waits := step.Op == plans.Tighten || step.Op == plans.Quiesce || step.Op == plans.Shrink && !began
	if !more || !waits || p.OneCluster() || j.Reversed(step) {
		return nil
	}
	return &step
}

// Down reports whether the ordinals of the flight may now be on neither side.
func (j *Journal) Down(p *plans.Plan) bool {
	step, _, more := j.Next(p)
	if !more || !step.Moves() || j.Flight == nil {
		return false
	}
	return !step.Boundary() && j.Flight.LeavesBy(step) || j.Flight.Ordinals == step.Ordinals && j.Reversed(step)
}

// allows returns how many ordinals may be unavailable on the current direction of the plan.
func (j *Journal) allows(p *plans.Plan) int32 {
	if j.Leg.Direction != plans.Abort {
		return p.MaxUnavailable
	}
	return max(p.MaxUnavailable, j.Assurances.MaxUnavailable)
}

// At returns the input of a look at a step. stamp is the stamp of the process that looks.
func (j *Journal) At(p *plans.Plan, s plans.Step, began bool, stamp plans.Stamp) plans.StepContext {
	m := plans.StepContext{
		Step: s, Began: began, Reversed: j.Reversed(s), Flight: j.Flight, Saved: j.Saved, KeepNames: j.KeepNames,
		SkipGates: s.Seq <= j.SkipGates, Stamp: stamp,
		Allowed: j.allows(p), Readopt: j.Assurances.Readopt, NodesGone: j.Assurances.Ahead.nodes(s),
	}
	if j.Passed != nil && j.Passed.Seq == s.Seq {
		m.Passed = j.Passed
	}
	return m
}
