package plans

import (
	"fmt"
	"iter"
	"slices"
)

// Places are where the ordinals of a wave may be: on the side that they leave, on neither side, on the side that receives
// them. Several are possible while the write of a step may or may not have happened.
type Places struct{ Here, Away, There bool }

// Places returns where the ordinals of the wave of a step may be, until it is finished. began reports that it may have
// written. Of a step that belongs to no wave, all are false. A plan that was turned knows less: see Journal.Wave.
func (s Step) Places(began bool) Places {
	switch s.Op.Position() {
	case WaveStays:
		return Places{Here: true}
	case WaveLeaves:
		return Places{Here: true, Away: began}
	case WaveStops, WaveAway:
		return Places{Away: true}
	case WaveEnters:
		return Places{Away: true, There: began}
	case WaveArrived:
		return Places{There: true}
	case NoWave:
	}
	return Places{}
}

// route is a leg of a plan, as the steps and waves that it consists of.
type route struct {
	plan *Plan
	leg  Leg
}

// perWave returns the operations that move one wave from one side to the other, in the order of the table. An abort
// uses the same list with the sides swapped. A plan without gates has neither Quiesce nor Verify.
func (r route) perWave() []Op {
	all := Moves.in()
	if len(r.plan.Gates) == 0 {
		return slices.DeleteFunc(all, Op.Gated)
	}
	return all
}

// Step is one operation and its ordinals: those of a wave, one for Protect and Settle, none for a step
// of the whole plan. Seq grows by one from step to step over the whole life of a plan, also during an
// abort, and is stamped on every object that the step writes.
type Step struct {
	Seq      int   `json:"seq"`
	Op       Op    `json:"op"`
	Ordinals Slice `json:"ordinals"`
	// From is the side that has the ordinals before the move. For Retire, Settle and Thaw it is the
	// side that ends up without them.
	From Side `json:"from"`
}

// To returns the side that has the ordinals after the move.
func (s Step) To() Side { return s.From.Other() }

// Whole reports whether the step concerns the whole plan and has no ordinals.
func (s Step) Whole() bool { return s.Ordinals.Replicas == 0 }

// Moves reports whether the step belongs to a wave.
func (s Step) Moves() bool { return !s.Whole() && s.Op.row().phase == Moves }

// ID returns "4/Reserve", "2..4/Reserve", or "Freeze" for a step of the whole plan.
func (s Step) ID() string {
	switch s.Ordinals.Replicas {
	case 0:
		return string(s.Op)
	case 1:
		return fmt.Sprintf("%d/%s", s.Ordinals.Start, s.Op)
	default:
		return fmt.Sprintf("%d..%d/%s", s.Ordinals.Start, s.Ordinals.End()-1, s.Op)
	}
}

// Step returns the step with the given Seq, or false after the last one.
func (p *Plan) Step(l Leg, seq int) (Step, bool) {
	s, r := Step{Seq: seq, From: Source}, route{p, l}
	i := seq - l.First
	if i < 0 {
		return s, false
	}
	switch l.Direction {
	case Move:
		s.Op, s.Ordinals = r.moveStep(i)
	case Abort:
		s.From = Destination
		s.Op, s.Ordinals = r.abortStep(i)
	case Finalize:
		s.Op, s.Ordinals = r.closing(i)
	}
	return s, s.Op != ""
}

// moveStep returns the i-th step of a Move: Freeze, Protect for each ordinal, Share if volumes are
// shared, then the waves, highest first. A leg that continues from a split, or after a turn, has the waves only.
func (r route) moveStep(i int) (Op, Slice) {
	if r.leg.Opens(r.plan) {
		switch {
		case i == 0:
			return Freeze, Slice{}
		case i <= int(r.plan.Count):
			return Protect, Slice{Start: r.plan.Start + int32(i) - 1, Replicas: 1} //nolint:gosec // i is no more than count
		}
		i -= 1 + int(r.plan.Count)
		if len(r.plan.Shared) > 0 {
			if i == 0 {
				return Share, Slice{}
			}
			i--
		}
	}
	ops := r.perWave()
	if wave := r.wave(i / len(ops)); wave.Replicas > 0 {
		return ops[i%len(ops)], wave
	}
	return "", Slice{}
}

// abortStep returns the i-th step of an Abort: the waves from the lowest upwards, then the closing steps.
func (r route) abortStep(i int) (Op, Slice) {
	ops := r.perWave()
	if wave := r.wave(i / len(ops)); wave.Replicas > 0 {
		return ops[i%len(ops)], wave
	}
	return r.closing(i - r.waves()*len(ops))
}

// Waves returns the ordinals of each wave of a leg, in the order in which they move.
func (p *Plan) Waves(l Leg) iter.Seq[Slice] {
	r := route{p, l}
	return func(yield func(Slice) bool) {
		for i := range r.waves() {
			if !yield(r.wave(i)) {
				return
			}
		}
	}
}

// wave returns the ordinals of the i-th wave of a leg, and none after the last one. The first wave
// has Head of them, the others Window; the last has the rest.
func (r route) wave(i int) Slice {
	n, head := r.leg.End-r.leg.Lowest, r.leg.head(r.plan)
	from, to := int32(0), head
	if i > 0 {
		from = head + int32(i-1)*r.plan.Window //nolint:gosec // i is less than waves
		to = from + r.plan.Window
	}
	to = min(to, n)
	switch {
	case from >= to:
		return Slice{}
	case r.leg.Direction == Move:
		return Slice{Start: r.leg.End - to, Replicas: to - from}
	default:
		return Slice{Start: r.leg.Lowest + from, Replicas: to - from}
	}
}

// waves counts the waves of a leg.
func (r route) waves() int {
	n := r.leg.End - r.leg.Lowest
	if n <= 0 {
		return 0
	}
	rest := max(n-r.leg.head(r.plan), 0)
	return 1 + int((rest+r.plan.Window-1)/r.plan.Window)
}

// closing returns the i-th step that ends a plan in either direction: the emptied set is deleted, then each
// volume gets back its own policy, shared ones too, and the annotations and budgets are removed last.
func (r route) closing(i int) (Op, Slice) {
	switch {
	case i == 0:
		return Retire, Slice{}
	case i <= int(r.plan.Count):
		return Settle, Slice{Start: r.plan.Start + int32(i) - 1, Replicas: 1} //nolint:gosec // i is no more than count
	}
	last := []Op{Unshare, Thaw}
	if len(r.plan.Shared) == 0 {
		last = last[1:]
	}
	if i -= int(r.plan.Count) + 1; i < len(last) {
		return last[i], Slice{}
	}
	return "", Slice{}
}
