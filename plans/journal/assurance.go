package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	// OtherTemplate is the word for two pod templates that differ: the data may be used by that of the side that receives the
	// ordinals. It is not valid for others.
	OtherTemplate string `json:"otherTemplate,omitempty"`
	// OtherCopies are the words for objects that are not the same on both sides: pods may start with that of the side that
	// receives them. Each is not valid for other states of the object.
	OtherCopies []string `json:"otherCopies,omitempty"`
	// Ignored are checks of which the user accepts what they find before a wave leaves, until the plan takes another
	// direction.
	Ignored []string `json:"ignored,omitempty"`
	// SkipPlaces, if not 0, is the number of the last step whose wave may leave without proof that its places are there.
	SkipPlaces int `json:"skipPlaces,omitempty"`
	// Ahead vouches for nodes on which a wave depends that has not left yet. It is not valid for another wave.
	Ahead *Ahead `json:"ahead,omitempty"`
}

// Ahead is what a user vouches for before a wave leaves: a node that is gone may still have its volumes attached. Two
// clusters may name nodes alike, so each node is one of the cluster that the wave waits for (S1).
type Ahead struct {
	// Ordinals are the ordinals of the wave.
	Ordinals plans.Slice `json:"ordinals"`
	// From is the side that the ordinals will leave.
	From plans.Side `json:"from"`
	// NodesGone are the nodes of which the user has vouched that they are gone (--node-gone), all of the side that will
	// receive the ordinals.
	NodesGone []string `json:"nodesGone"`
	// NodesGoneHere are those of the side that the ordinals will leave.
	NodesGoneHere []string `json:"nodesGoneHere,omitempty"`
	// Asks is the side in whose cluster the volumes of the wave are still attached, as was seen last.
	Asks plans.Side `json:"asks,omitempty"`
}

// of returns what a user vouches for before the wave of a step has left. It shares nothing with a.
func (a *Ahead) of(s plans.Step) Ahead {
	if !a.about(s.Ordinals, s.From) {
		return Ahead{Ordinals: s.Ordinals, From: s.From, NodesGone: []string{}}
	}
	next := *a
	next.NodesGone, next.NodesGoneHere = append([]string{}, a.NodesGone...), slices.Clone(a.NodesGoneHere)
	return next
}

// Asks notes which cluster keeps the wave of a step, and reports whether that is news.
func (j *Journal) Asks(s plans.Step, side plans.Side) bool {
	next := j.Assurances.Ahead.of(s)
	if side == "" || next.Asks == side {
		return false
	}
	next.Asks = side
	j.Assurances.Ahead = &next
	return true
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
		ahead := v.Ahead.of(*next)
		words := &ahead.NodesGone
		if ahead.Asks == next.From {
			words = &ahead.NodesGoneHere
		}
		if !slices.Contains(*words, w.NodeGone) {
			*words = append(*words, w.NodeGone)
		}
		v.Ahead = &ahead
	} else if w.NodeGone != "" {
		if !j.Down(p) {
			return fmt.Errorf("plan %s has no ordinals in flight: --node-gone %s has no effect now", p.Name, w.NodeGone)
		}
		flight = j.believe(p, w.NodeGone)
	}
	if w.MaxUnavailable != 0 {
		if err := j.refuses(p, w.MaxUnavailable); err != nil {
			return err
		}
		v.MaxUnavailable = w.MaxUnavailable
	}
	if w.SourceGone {
		if p.OneCluster() || j.Leg.Direction != plans.Finalize {
			return fmt.Errorf("plan %s: --source-gone is only for finalize after a move to another cluster", p.Name)
		}
		v.SourceGone = true
	}
	var err error
	if v.OtherTemplate, err = templateWord(p, v.OtherTemplate, w.OtherTemplate); err != nil {
		return err
	}
	if v.OtherCopies, err = copyWords(p, v.OtherCopies, w.OtherCopies); err != nil {
		return err
	}
	if v.SkipPlaces, err = placeless(j, p, w); err != nil {
		return err
	}
	v.Ignored = slices.Compact(slices.Sorted(slices.Values(slices.Concat(v.Ignored, w.Ignore))))
	j.Assurances, j.Flight = v, flight
	return nil
}

// templateWord returns the word for two templates after a new one was said.
func templateWord(p *plans.Plan, said, word string) (string, error) {
	if word != "" && !plans.IsTemplateWord(word) {
		return "", fmt.Errorf("--other-template %s: expected the 8 digits that plan %s printed with its reason", word, p.Name)
	}
	return cmp.Or(word, said), nil
}

// placeless returns the number of the last step whose wave may leave without proof of its places: in a Move that of the wave
// that leaves next, in an Abort that of every wave.
func placeless(j *Journal, p *plans.Plan, w plans.Assurance) (int, error) {
	if !w.SkipPlaces {
		return j.Assurances.SkipPlaces, nil
	}
	if !p.Placeholder.Used() || j.Leg.Direction == plans.Finalize {
		return 0, fmt.Errorf("--skip-places: plan %s takes no places now", p.Name)
	}
	if j.Leg.Direction == plans.Abort {
		return plans.AllSteps, nil
	}
	leaves := false
	for seq := j.Done + 1; ; seq++ {
		s, more := p.Step(j.Leg, seq)
		switch {
		case !more:
			return 0, fmt.Errorf("--skip-places: plan %s has no ordinal left that takes a place", p.Name)
		case s.Op.Leaves():
			leaves = true
		case leaves && s.Op.TakesOver():
			return seq, nil
		}
	}
}

// Vouched lists the facts for which users have vouched, and which ordinals leave without proof of their places.
func Vouched(j *Journal, p *plans.Plan) []string {
	if j.Assurances.SkipPlaces == 0 {
		return j.AssuredFacts()
	}
	return append(j.AssuredFacts(), unproven(j, p))
}

func unproven(j *Journal, p *plans.Plan) string {
	if s, more := p.Step(j.Leg, j.Assurances.SkipPlaces); more {
		return fmt.Sprintf("%s may leave without proof of its place (--skip-places)", p.Pods(s.Ordinals))
	}
	return "the ordinals may go back without proof of their places (--skip-places)"
}

// copyWords returns the words for objects after new ones were said. Of each object there is one, so that there are never
// more of them than the plan has objects.
func copyWords(p *plans.Plan, said, words []string) ([]string, error) {
	out := slices.Clone(said)
	for _, word := range words {
		object, _, _ := strings.Cut(word, ":")
		if !plans.IsCopyWord(word) || !slices.ContainsFunc(p.Dependencies, func(d plans.Dependency) bool { return d.String() == object }) {
			return nil, fmt.Errorf("--other-copy %s: expected what plan %s printed with its reason, such as Secret/%s:0123abcd", word, p.Name, p.Source.Name)
		}
		out = append(slices.DeleteFunc(out, func(w string) bool { return strings.HasPrefix(w, object+":") }), word)
	}
	slices.Sort(out)
	return out, nil
}

// refuses returns why the user cannot allow that many ordinals to be unavailable, or nil. It is possible during an abort
// only.
func (j *Journal) refuses(p *plans.Plan, unavailable int32) error {
	if j.Leg.Direction != plans.Abort {
		return fmt.Errorf("plan %s is not being aborted: during the move at most %d ordinals may be unavailable", p.Name, p.MaxUnavailable)
	}
	if unavailable < p.MaxUnavailable || unavailable > p.Count {
		return fmt.Errorf("--max-unavailable %d: expected %d, the number that plan %s allows, to %d, the number of its ordinals", unavailable, p.MaxUnavailable, p.Name, p.Count)
	}
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
	asks := !step.Op.Stays() && !step.Op.Leaves()
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
		for i, node := range slices.Concat(a.NodesGoneHere, a.NodesGone) {
			side := a.From
			if i >= len(a.NodesGoneHere) {
				side = side.Other()
			}
			add(!left && !j.Ended(), "node %s of the %s is gone for good, or cannot use the volumes of ordinals %s, which leave the %s", node, side, a.Ordinals, a.From)
		}
	}
	add(j.Saved.SourceUID != "", "the source is the recreated set with the UID %s", j.Saved.SourceUID)
	add(j.Assurances.Readopt, "the sets and volumes without the stamp of the plan are its own")
	add(j.Leg.Direction == plans.Abort && j.Assurances.MaxUnavailable > 0, "%d ordinals may be unavailable during the abort", j.Assurances.MaxUnavailable)
	add(j.Assurances.SourceGone, "the cluster of the source is gone")
	add(j.Assurances.OtherTemplate != "" && !j.Ended(), "the data may be used by the other pod template (%s)", j.Assurances.OtherTemplate)
	add(len(j.Assurances.OtherCopies) > 0 && !j.Ended(), "pods may start with what the side has that receives them of %s", strings.Join(j.Assurances.OtherCopies, ", "))
	add(len(j.Assurances.Ignored) > 0 && !j.Ended(), "the waves may leave in spite of the checks %s", strings.Join(j.Assurances.Ignored, ", "))
	return out
}

// leaves returns the next step if it belongs to a wave that has not left, and that may wait until its volumes are
// detached. In one cluster the plan has asked, then: the word could be about the wave before.
func (j *Journal) leaves(p *plans.Plan) *plans.Step {
	step, began, more := j.Next(p)
	waits := step.Op.Stays() || step.Op.Leaves() && !began
	asked := !p.OneCluster() || j.Assurances.Ahead.of(step).Asks != ""
	if !more || !waits || !asked || j.Unsure(step) {
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
	return !step.Op.Boundary() && j.Flight.LeavesBy(step) || j.Flight.Ordinals == step.Ordinals && j.Unsure(step)
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
		Step: s, Began: began, Flight: j.Flight, Saved: j.Saved, KeepNames: j.KeepNames,
		Skips: plans.Skips{Gates: s.Seq <= j.SkipGates, Places: s.Seq <= j.Assurances.SkipPlaces}, Stamp: stamp,
		Allowed: j.allows(p), Readopt: j.Assurances.Readopt,
		Template: j.Assurances.OtherTemplate, Copies: j.Assurances.OtherCopies,
	}
	ahead := j.Assurances.Ahead.of(s)
	m.NodesGone, m.NodesGoneThere = ahead.NodesGoneHere, ahead.NodesGone
	if j.Unsure(s) {
		m.Resumed = j.Flight.LeavesBy(s)
		m.Reversed = !m.Resumed
	}
	if j.Passed != nil && j.Passed.Seq == s.Seq {
		m.Passed = j.Passed
	}
	return m
}
