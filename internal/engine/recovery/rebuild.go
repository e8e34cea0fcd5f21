package recovery

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// rebuilding decides what the journal records. It may record less than is done, and never more: the
// looks find the rest again.
type rebuilding struct {
	*marks
	said                Said
	source, destination plans.Slice
}

// landed reports whether every ordinal is on a side.
func (b rebuilding) landed() bool { return b.source.End() == b.destination.Start }

// way sets the leg, and how far it has come. The first wave of the leg is the wave in flight, or the last
// wave that has arrived: the ranges prove what its predecessors did.
func (b rebuilding) way(j *journal.Journal, direction plans.Direction) error {
	p, first := b.plan, b.last.Seq+epochMargin
	j.Leg = plans.Leg{Direction: direction, First: first, Lowest: p.Start, End: p.End()}
	j.Done, j.Begun = first-1, first-1
	if u := b.said.Until; u != nil && (direction != plans.Move || *u < p.Start || *u > b.destination.Start) {
		return fmt.Errorf("--until-ordinal %d: expected an ordinal from %d to %d, of a plan on its way to the destination", *u, p.Start, b.destination.Start)
	}
	switch {
	case !b.landed() && direction == plans.Finalize:
		return fmt.Errorf("ordinals %s are on neither side, and plan %s is said to be on its %s", b.flying(), p.Name, direction)
	case direction == plans.Finalize:
		j.Leg.Lowest = p.End()
		return nil
	case direction == plans.Abort:
		return b.back(j)
	}
	if b.said.Until != nil {
		j.Leg.Lowest = *b.said.Until
	}
	return b.onward(j)
}

// flying returns the ordinals on neither side.
func (b rebuilding) flying() plans.Slice {
	return plans.Slice{Start: b.source.End(), Replicas: b.destination.Start - b.source.End()}
}

// onward sets how far a Move has come.
func (b rebuilding) onward(j *journal.Journal) error {
	p, wave := b.plan, b.flying()
	switch {
	case !b.landed():
		j.Leg.End, j.Leg.Head = wave.End(), wave.Replicas
		return b.inFlight(j, wave, plans.Source)
	case wave.Start == p.End():
		if !b.held() {
			b.touch(j)
		}
		return nil // nothing has left: every step is looked at again, from Freeze
	}
	j.Leg.Head = min(p.Window, p.End()-wave.Start)
	j.Leg.End = wave.Start + j.Leg.Head
	return b.arriving(j)
}

// back sets how far an Abort has come.
func (b rebuilding) back(j *journal.Journal) error {
	p, wave := b.plan, b.flying()
	switch {
	case !b.landed():
		j.Leg.Lowest, j.Leg.Head = wave.Start, wave.Replicas
		return b.inFlight(j, wave, b.lastOn(wave))
	case wave.Start == p.End() && b.closing():
		j.Leg.Lowest = p.End()
		b.touch(j)
		return nil
	case wave.Start == p.Start:
		return nil // nothing has come back
	}
	j.Leg.Head = min(p.Window, wave.Start-p.Start)
	j.Leg.Lowest = wave.Start - j.Leg.Head
	j.Flight = &plans.Flight{Ordinals: plans.Slice{Start: j.Leg.Lowest, Replicas: j.Leg.Head}, From: plans.Destination}
	return b.arriving(j)
}

// touch makes the next takeover fence the volumes of every ordinal: it is not known which of them were being
// protected, or given back.
func (b rebuilding) touch(j *journal.Journal) {
	for o := range b.plan.Ordinals().All() {
		j.Touched = append(j.Touched, o)
	}
}

// arriving resumes where the last wave is in its range and has not been observed to be available.
func (b rebuilding) arriving(j *journal.Journal) error {
	grow := b.step(j, plans.Op.Enters)
	j.Done, j.Begun = grow-1, grow
	return nil
}

// step returns the number of the first such operation in the first wave of the leg.
func (b rebuilding) step(j *journal.Journal, is func(plans.Op) bool) int {
	seq := j.Leg.First
	for s, more := b.plan.Step(j.Leg, seq); more && !is(s.Op); s, more = b.plan.Step(j.Leg, seq) {
		seq++
	}
	return seq
}

// lastOn returns the side whose pods of a wave must be proven gone in an abort. The wave may have been
// reversed before it was ever on the destination. That is assumed only if nothing of it can have run there.
func (b rebuilding) lastOn(wave plans.Slice) plans.Side {
	ran := len(b.plan.Moved()) == 0
	for _, t := range b.of(wave) {
		ref := t.Promise(b.plan, plans.Destination)
		ran = ran || t.Claims[plans.Destination] != nil || ref != nil && ref.UID != "" && !t.Sealed(plans.Destination)
	}
	if ran {
		return plans.Destination
	}
	return plans.Source
}

func (b rebuilding) of(wave plans.Slice) (out []storage.Trace) {
	for _, t := range b.traces {
		if wave.Has(t.Ordinal) {
			out = append(out, t)
		}
	}
	return out
}

// inFlight records the volumes of the wave on neither side as they left a side, and how far the wave has
// provably come: each step is finished for all volumes before the next one writes the first of them.
func (b rebuilding) inFlight(j *journal.Journal, wave plans.Slice, from plans.Side) error {
	j.Flight = &plans.Flight{Ordinals: wave, From: from}
	j.Done, j.Begun = b.step(j, plans.Op.Leaves)-1, b.step(j, plans.Op.Enters)
	s, _ := b.plan.Step(j.Leg, j.Begun)
	for _, t := range b.of(wave) {
		vol, there := t.Volume(b.plan, from)
		if !there {
			return fmt.Errorf("ordinal %d is on neither side, and no volume of the %s carries a mark of plan %s for its claim %s: find the volume (its disk has not been touched), and put its annotations stsmigrate.dev/* back",
				t.Ordinal, from, b.plan.Name, b.plan.ClaimName(from, t.Template, t.Ordinal))
		}
		j.Flight.Volumes = append(j.Flight.Volumes, vol)
		if from != s.From { // reversed: every look of the abort can be repeated
			continue
		}
		switch claim := t.Claims[s.To()]; {
		case storage.Prepares(b.plan):
			// Reserve and Claim may have written while the wave was still up, and a claim that is gone does not tell
			// who deleted it: no object proves that the pods have ended
		case !b.promised(t, s):
			// a claim with the mark of the plan proves nothing while its volume names the other one: anybody can copy a mark
		case claim != nil && b.mine(claim):
			j.Done = max(j.Done, b.step(j, plans.Op.TakesOver))
		default:
			j.Done = max(j.Done, b.step(j, plans.Op.GivesUp))
		}
	}
	return nil
}

// promised reports whether Reserve has written a volume, in one cluster.
func (b rebuilding) promised(t storage.Trace, s plans.Step) bool {
	return t.Promise(b.plan, s.To()) != nil
}

// saved collects the state before the plan. What is noted on the objects is taken from there; the user's word
// is used for what is noted nowhere.
func (b rebuilding) saved() (plans.Saved, error) {
	var out plans.Saved
	for _, side := range plans.Sides() {
		next, err := b.savedOfSet(side, out)
		if err != nil {
			return out, err
		}
		out = out.With(next)
	}
	for _, side := range plans.Sides() {
		next, err := b.savedOfBudget(side)
		if err != nil {
			return out, err
		}
		out = out.With(next)
	}
	if set := b.sets[plans.Source]; set != nil && b.mine(set) && set.UID != b.plan.Seen.SourceUID {
		out.SourceUID = set.UID // the user has vouched for it: no other set is marked
	}
	return out, nil
}

// savedOfSet returns what a set has noted. A set marked by a release that notes it, and without
// a note, was never changed.
func (b rebuilding) savedOfSet(side plans.Side, have plans.Saved) (out plans.Saved, err error) {
	set, of := b.sets[side], side
	if side == plans.Destination && !b.plan.Existed() {
		of = plans.Source
	}
	if _, known := have.Retention[of]; known || set == nil || !b.mine(set) {
		return out, nil
	}
	was, err := plans.OriginalOf(set)
	if err != nil {
		return out, err
	}
	if was != nil && was.Retention != nil {
		out.Retention = map[plans.Side]sets.Retention{of: *was.Retention}
		out.Slice = was.Slice
		return out, nil
	}
	if _, tells := set.Annotations[plans.DirectionAnnotation]; tells {
		return out, nil
	}
	return b.saidOfSet(side, of, set)
}

// saidOfSet returns what the user states of a set that an earlier release marked, or what the plan implies.
func (b rebuilding) saidOfSet(side, of plans.Side, set *appsv1.StatefulSet) (out plans.Saved, err error) {
	said, known := b.said.Was.Retention[of]
	if !known && of == plans.Source && side == plans.Source {
		said, known = b.guess(set)
	}
	if !known || of == plans.Destination && b.said.Was.Slice == nil {
		example := string(of) + "-retention=WHENDELETED/WHENSCALED"
		if of == plans.Destination {
			example += " --was destination-range=START/REPLICAS"
		}
		return out, fmt.Errorf("%s does not record which retention policy for its claims the %s had before the plan (it was marked by a release that did not record it): state it with --was %s", b.plan.On(side).Set(), of, example)
	}
	out.Retention = map[plans.Side]sets.Retention{of: said}
	if of == plans.Destination {
		out.Slice = b.said.Was.Slice
	}
	return out, nil
}

// guess finds the retention policy with which the source is what the plan was made for.
func (b rebuilding) guess(set *appsv1.StatefulSet) (sets.Retention, bool) {
	kinds := []appsv1.PersistentVolumeClaimRetentionPolicyType{appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	for _, deleted := range kinds {
		for _, scaled := range kinds {
			policy := sets.Retention{WhenDeleted: deleted, WhenScaled: scaled}
			same, err := b.plan.Seen.SameSource(set, b.plan, plans.Saved{Retention: map[plans.Side]sets.Retention{plans.Source: policy}})
			if err == nil && same {
				return policy, true
			}
		}
	}
	return sets.Retention{}, false
}

// savedOfBudget returns what a budget has noted. A budget that was never written still has its original spec.
func (b rebuilding) savedOfBudget(side plans.Side) (out plans.Saved, err error) {
	pdb := b.budgets[side]
	_, existed := b.plan.BudgetOn(side)
	of := side
	if !existed {
		of = plans.Source // a budget that the plan created there gets the numbers of the source's
	}
	if pdb == nil || !existed && (side == plans.Source || !b.mine(pdb)) {
		return out, nil
	}
	was, err := plans.OriginalOf(pdb)
	if err != nil {
		return out, err
	}
	spec := *pdb.Spec.DeepCopy()
	switch _, written := pdb.Annotations[plans.BudgetAnnotation]; {
	case was != nil:
		spec.MinAvailable, spec.MaxUnavailable = was.MinAvailable, was.MaxUnavailable
	case !existed:
		return out, nil // it will be deleted, or the source's budget has the numbers
	case written:
		said, known := b.said.Was.Budgets[side]
		if !known {
			return out, fmt.Errorf("PodDisruptionBudget %s of %s does not record what it required before the plan (it was written by a release that did not record it): state it with --was %s-budget=minAvailable=VALUE or maxUnavailable=VALUE", pdb.Name, b.plan.On(side), side)
		}
		spec.MinAvailable, spec.MaxUnavailable = said.MinAvailable, said.MaxUnavailable
	}
	out.Budgets = map[plans.Side]policyv1.PodDisruptionBudgetSpec{of: spec}
	return out, nil
}
