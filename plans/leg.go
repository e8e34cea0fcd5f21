package plans

import "fmt"

// Course is a direction in which a plan is walked.
type Course string

const (
	// Move takes the ordinals from source to destination, highest first.
	Move Course = "Move"
	// Return walks back what Move did, the last ordinal first, and restores the
	// source field for field.
	Return Course = "Return"
	// Clean removes the source and our marks after a finished Move.
	Clean Course = "Clean"
)

// Leg is one walk over a plan: a course, the Seq of its first step, and the
// ordinals [Lowest, End) that it walks over, a Move from the top and a Return from the
// bottom. A Clean walks over none.
type Leg struct {
	Course Course `json:"course"`
	First  int    `json:"first"`
	// Lowest is Start for a Move of everything, and more for one that ends in a
	// split. For a Return it is the lowest ordinal that may have left the source.
	Lowest int32 `json:"lowest"`
	End    int32 `json:"end"`
	// Head is how many ordinals the first wave has; 0 for as many as the others.
	Head int32 `json:"head,omitempty"`
}

func (l Leg) head(p *Plan) int32 {
	if l.Head > 0 {
		return min(l.Head, l.End-l.Lowest)
	}
	return min(p.Window, l.End-l.Lowest)
}

// Outcome is what a finished walk in this direction means when it leaves nothing
// behind.
func (c Course) Outcome() Outcome {
	switch c {
	case Return:
		return Aborted
	case Clean:
		return Finalized
	case Move:
		return Moved
	}
	return Moved
}

// Outcome is what a finished walk over this leg means.
func (l Leg) Outcome(p *Plan) Outcome {
	if l.Course == Move && l.Lowest > p.Start {
		return Split
	}
	return l.Course.Outcome()
}

// Depart starts a new leg behind everything that may have been written so far.
func (j *Journal) Depart(p *Plan, c Course) {
	next := Leg{Course: c, First: j.Begun + 1, Lowest: p.End(), End: p.End()}
	switch c {
	case Return:
		under := j.underWay(p)
		next.Lowest, next.Head = under.Start, under.Replicas
	case Move: // on from a split
		next.Lowest, next.End = p.Start, j.Leg.Lowest
	case Clean:
	}
	j.Leg, j.Done = next, j.Begun
	j.Outcome, j.Held, j.Paused, j.PauseAt, j.Resting = "", "", false, 0, false
	j.Passed, j.SkipGates, j.Overdue = nil, 0, ""
	j.KeepNames = j.KeepNames && c == Clean // what was walked back has no names to keep
}

// underWay is the wave that a Move may have touched last: the one under way, or
// else the last one that arrived. Without one it is empty, at the end of the
// ordinals that have not left.
func (j *Journal) underWay(p *Plan) Slice {
	if s, ok := p.Step(j.Leg, j.Begun); ok && s.Moves() {
		return s.Ordinals
	}
	return Slice{Start: j.Leg.End}
}

// Route is how far the next run of a Move shall go. The zero value goes to the end.
type Route struct {
	// Until, if set, ends the move in a split: the source keeps the ordinals below
	// it, the destination has it and those above.
	Until *int32
	// PauseAfter is after how many ordinals the move pauses; 0 for no pause.
	PauseAfter int32
}

// Take sets the route of a Move. It works where no wave is in flight, though one may have tightened the
// budgets and be waiting, and cuts the
// waves anew from there: the first is as large as it takes for the pause to come
// after exactly so many ordinals.
func (j *Journal) Take(p *Plan, r Route) error {
	if j.Leg.Course != Move {
		return fmt.Errorf("plan %s is not being moved to the destination: --until-ordinal and --pause-after have no meaning", p.Name)
	}
	if r.PauseAfter < 0 {
		return fmt.Errorf("--pause-after %d: expected a number of ordinals", r.PauseAfter)
	}
	if j.Outcome == Split {
		j.Depart(p, Move)
	}
	step, began, more := j.Next(p)
	switch {
	case !more:
		return fmt.Errorf("plan %s has no ordinal left to move", p.Name)
	case step.Moves() && step.Op != Tighten:
		if r == (Route{}) {
			return nil
		}
		return fmt.Errorf("plan %s has ordinals %s in flight: --until-ordinal and --pause-after can be given when they have arrived; go on without, or `pause` first", p.Name, step.Ordinals)
	}
	top := j.Leg.End
	if step.Moves() {
		top = step.Ordinals.End()
	}
	lowest := p.Start
	if r.Until != nil {
		lowest = *r.Until
	}
	if lowest < p.Start || lowest >= top {
		return fmt.Errorf("--until-ordinal %d: expected an ordinal from %d to %d, those that are still on the source of plan %s", lowest, p.Start, top-1, p.Name)
	}
	j.behind(p, top, began && step.Op == Tighten)
	j.Leg.Lowest, j.Leg.Head, j.PauseAt = lowest, r.PauseAfter%p.Window, 0
	if at := top - r.PauseAfter; r.PauseAfter > 0 && at > lowest {
		j.PauseAt = at
	}
	return nil
}

// behind puts the waves that are still to come, from top downwards, behind what was begun. The leg of Freeze
// and Hold stays one, and goes on as it is while none of its waves has begun.
func (j *Journal) behind(p *Plan, top int32, began bool) {
	switch {
	case top < p.End():
		j.Leg, j.Done = Leg{Course: Move, First: j.Begun + 1, End: top}, j.Begun
	case began:
		j.Leg.First, j.Done = j.Leg.First+j.Begun-j.Done, j.Begun
	}
}

// PauseDue says whether the step is the first of a wave that was to be paused
// before.
func (j *Journal) PauseDue(s Step) bool {
	return j.PauseAt > 0 && s.Op == Tighten && j.Leg.Course == Move && s.Ordinals.End() <= j.PauseAt
}
