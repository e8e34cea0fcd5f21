package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/storage"
)

// comparison compares the facts with a plan and its journal, rule by rule.
type comparison struct {
	*facts

	plan    *plans.Plan
	journal *journal.Journal
	step    plans.Step
	began   bool
	more    bool
	report  *Report
}

// expect records a difference unless ok.
func (c *comparison) expect(ok bool, rule, object, seen, expected string) {
	c.report.Compared++
	if !ok {
		c.report.Differences = append(c.report.Differences, Difference{Rule: rule, Object: plans.Line(object), Seen: plans.Line(seen), Expected: plans.Line(expected)})
	}
}

// unmarked is S15: a plan that has ended, or has not begun, has its marks nowhere.
func (c *comparison) unmarked() {
	marked := slices.SortedFunc(slices.Values(c.facts.seen), func(a, b mark) int { return strings.Compare(a.object, b.object) })
	for _, m := range slices.Compact(marked) {
		c.expect(m.stamp != c.plan.ID, "S15", m.object, "annotations of plan "+c.plan.Name, "none, since the plan "+c.rests())
	}
}

func (c *comparison) rests() string {
	if c.journal.Ended() {
		return `has ended: a process that was dead may have written late (see "Marks of a plan that has ended" in docs/ways-out.md)`
	}
	return "has not begun"
}

// asPlanned compares a plan that has not begun with the objects that it was made from.
func (c *comparison) asPlanned() {
	set := c.sets[plans.Source]
	if set == nil {
		c.expect(false, "S12", c.plan.Source.Set(), "it does not exist", "the set that the plan was made for")
		return
	}
	now, err := plans.Fingerprints(set, c.sets[plans.Destination], c.plannedBudget())
	if err != nil {
		c.expect(false, "S12", c.plan.Source.Set(), err.Error(), "a set that can be read")
		return
	}
	changed := c.plan.Seen.Changed(now)
	c.expect(len(changed) == 0, "S12", c.plan.Source.Set(), "changed since the plan was made: "+strings.Join(changed, "; "), "what the plan was made for; make it again")
}

func (c *comparison) plannedBudget() *policyv1.PodDisruptionBudget {
	if !c.plan.Budget.SourceExisted {
		return nil
	}
	return c.facts.budgets[plans.Source]
}

// ownedSets is S12: the sets are those that the plan knows, and no other plan has marked an object of this one.
func (c *comparison) ownedSets() {
	source := c.sets[plans.Source]
	finalizing := c.journal.Leg.Direction == plans.Finalize
	if source == nil {
		c.expect(finalizing, "S12", c.plan.Source.Set(), "it does not exist", "the set that the plan was made for")
	} else {
		c.expect(source.UID == c.journal.Saved.Source(c.plan), "S12", c.plan.Source.Set(), "it was deleted and recreated (UID "+string(source.UID)+")", "UID "+string(c.journal.Saved.Source(c.plan)))
	}
	if c.sets[plans.Destination] == nil && c.moved() {
		c.expect(false, "S12", c.plan.Destination.Set(), "it does not exist", "the set that the plan has moved ordinals to")
	}
	for side, set := range c.sets {
		s, ok := plans.Stamped(set)
		c.expect(ok || !c.holds(), "S12", named(set, side), "it carries no mark of a plan: it was recreated, or another writer replaced its annotations", "the mark of plan "+c.plan.ID+"; if its spec is unchanged, pass --readopt")
		if ok {
			c.expect(s.Plan == c.plan.ID, "S12", named(set, side), "it belongs to plan "+s.Plan, "plan "+c.plan.ID)
			later := c.journal.Behind(s)
			c.expect(s.Plan != c.plan.ID || later == "", "S10", named(set, side), later, "a journal with every step that has written")
		}
	}
}

// holds reports whether both sets are as Freeze has made them: it is over, and no closing step may have given
// them back. A move that has ended has no closing steps.
func (c *comparison) holds() bool {
	if !c.more {
		return c.journal.Leg.Direction == plans.Move
	}
	return c.step.Op != plans.Freeze && !c.step.Op.Closes()
}

// moved reports whether the destination must have ordinals.
func (c *comparison) moved() bool {
	for _, want := range c.wanted() {
		if want[plans.Destination].Replicas == 0 {
			return false
		}
	}
	return true
}

// wave returns the ordinals of the wave under way, and none if no ordinal may be away.
func (c *comparison) wave() plans.Slice {
	if c.more && c.step.Moves() {
		return c.step.Ordinals
	}
	return plans.Slice{}
}

// wanted returns the pairs of ranges that the sets may have now. There are several while the write of a step may or
// may not have happened.
func (c *comparison) wanted() []map[plans.Side]plans.Slice {
	at := func(wave plans.Slice, source, destination bool) map[plans.Side]plans.Slice {
		return map[plans.Side]plans.Slice{
			plans.Source: c.plan.Slice(plans.Source, wave, source), plans.Destination: c.plan.Slice(plans.Destination, wave, destination),
		}
	}
	if !c.more || !c.step.Moves() {
		return []map[plans.Side]plans.Slice{at(plans.Slice{Start: c.lowest()}, false, false)}
	}
	w, may := c.step.Ordinals, c.journal.Wave(c.step)
	var out []map[plans.Side]plans.Slice
	if may.Here {
		out = append(out, at(w, c.step.From == plans.Source, c.step.From == plans.Destination))
	}
	if may.Away {
		out = append(out, at(w, false, false))
	}
	if may.There {
		out = append(out, at(w, c.step.From == plans.Destination, c.step.From == plans.Source))
	}
	return out
}

// lowest returns the lowest ordinal of the destination while no wave is under way.
func (c *comparison) lowest() int32 {
	leg := c.journal.Leg
	begun := c.step.Op.Closes() || !c.more
	switch {
	case leg.Direction == plans.Finalize:
		return c.plan.Start
	case leg.Direction == plans.Abort && begun:
		return c.plan.End()
	case leg.Direction == plans.Move && begun:
		return leg.Lowest
	}
	return leg.End
}

// ranges is S7: the ranges of both sets are those of the step.
func (c *comparison) ranges() {
	wanted := c.wanted()
	for _, side := range plans.Sides() {
		set := c.sets[side]
		if set == nil {
			continue
		}
		has := plans.SliceOf(set)
		var texts []string
		ok := false
		for _, want := range wanted {
			ok = ok || has == want[side] || has.Replicas == 0 && want[side].Replicas == 0
			if side == plans.Destination && want[side] == c.plan.Ordinals() && c.plan.HasAll(set) && c.plan.Grown(set).Replicas > 0 && c.journal.Leg.Direction != plans.Abort {
				ok, c.report.Added = true, c.plan.Grown(set).String()
			}
			texts = append(texts, want[side].String())
		}
		c.expect(ok, "S7", c.plan.On(side).Set(), "it has the ordinals "+has.String(), strings.Join(slices.Compact(texts), " or "))
	}
}

// onePlace is S1: every ordinal is on one side, in ranges and in pods.
func (c *comparison) onePlace() {
	for o := range c.plan.Ordinals().All() {
		here, there := c.facts.pods[plans.Source][c.plan.Pod(plans.Source, o)], c.facts.pods[plans.Destination][c.plan.Pod(plans.Destination, o)]
		c.expect(here == nil || there == nil, "S1", "pod "+c.plan.Pod(plans.Source, o), "it exists on both sides", "one side")
		both := c.has(plans.Source, o) && c.has(plans.Destination, o)
		c.expect(!both, "S1", fmt.Sprintf("ordinal %d", o), "both sets have it in their ranges", "one of them")
		for side, pod := range map[plans.Side]*corev1.Pod{plans.Source: here, plans.Destination: there} {
			if pod != nil && !c.wave().Has(o) {
				c.expect(c.has(side, o), "S1", named(pod, side), "it exists", "no pod, since the ordinal is outside the range of its set")
			}
		}
	}
}

func (c *comparison) has(side plans.Side, ordinal int32) bool {
	set := c.sets[side]
	return set != nil && plans.SliceOf(set).Has(ordinal)
}

// kept is S4: volumes that the plan has protected are Retain until their own policy is restored.
func (c *comparison) kept() {
	for _, t := range c.traces {
		marked := t.Protected(c.plan)
		if c.protects(t.Ordinal) {
			c.expect(marked, "S4", c.claim(plans.Source, t), "none of its volumes has the annotations of the plan", "a protected volume")
		}
		for _, side := range c.clusters() {
			pv := t.Volumes[side]
			if pv == nil || !marked && !c.protects(t.Ordinal) {
				continue
			}
			if c.protects(t.Ordinal) && marked {
				c.expect(storage.Marked(c.plan, pv), "S4", c.claim(side, t)+": "+named(pv, side), "it has lost the annotations of the plan", "a protected volume")
			}
			leaves := c.more && c.step.Op == plans.Settle // the plan deletes the object that is left over
			c.expect(pv.DeletionTimestamp == nil || leaves, "S4", named(pv, side), "another writer has deleted it, and its finalizers keep it", "a volume that stays")
			policy := pv.Spec.PersistentVolumeReclaimPolicy
			c.expect(policy == corev1.PersistentVolumeReclaimRetain, "S4", named(pv, side), "its reclaim policy is "+string(policy), "Retain")
		}
	}
}

// clusters returns the sides with a cluster of their own.
func (c *comparison) clusters() []plans.Side {
	if c.plan.OneCluster() {
		return []plans.Side{plans.Source}
	}
	return plans.Sides()
}

// protects reports whether the journal proves that the volumes of an ordinal are protected now.
func (c *comparison) protects(ordinal int32) bool {
	leg, place := c.journal.Leg, int(ordinal-c.plan.Start)
	switch {
	case leg.Opens(c.plan):
		return c.journal.Done >= leg.First+1+place
	case leg.Direction == plans.Move:
		return true
	case leg.Direction == plans.Abort: // a wave has begun, so every ordinal was protected; only Settle gives a volume back
		return c.more && !c.step.Op.Closes()
	case leg.Direction == plans.Finalize && c.more && c.step.Op == plans.Retire:
		return true
	case leg.Direction == plans.Finalize && c.more && c.step.Op == plans.Settle:
		return ordinal > c.step.Ordinals.Start && c.journal.Begun < c.step.Seq+int(ordinal-c.step.Ordinals.Start)
	}
	return false
}

func (c *comparison) claim(side plans.Side, t storage.Trace) string {
	return "claim " + c.plan.ClaimName(side, t.Template, t.Ordinal)
}

// bound is S5: the claims of an ordinal are on the side that has it, bound to its own volume, and mean one disk.
func (c *comparison) bound() {
	for _, t := range c.traces {
		if a, b := t.Volumes[plans.Source], t.Volumes[plans.Destination]; a != nil && b != nil && !t.Mode.OneObject() {
			c.expect(t.OneDisk(), "S5", c.claim(plans.Source, t), "its volume means another disk on each side", "one disk")
		}
		if c.inFlight(t.Ordinal) || c.step.Op.Closes() && c.more {
			continue // the steps that hand over, and those that clean up, look at every one of these themselves
		}
		for _, side := range plans.Sides() {
			claim := t.Claims[side]
			if !c.has(side, t.Ordinal) {
				c.expect(claim == nil || c.spare(t, claim), "S5", c.claim(side, t)+" on the "+string(side), "it exists", "none, since the ordinal is on the other side")
				continue
			}
			c.expect(claim != nil, "S5", c.claim(side, t)+" on the "+string(side), "it does not exist", "a claim that is bound to the ordinal's volume")
			if claim != nil {
				c.ownVolume(t, side, claim)
			}
		}
	}
}

// spare reports whether a claim is one that the plan may have besides that of the side with the ordinal: where each side has
// an object of its own for the disk, its deletion is not waited for, and a process that was fenced may have made one late, which is never bound
// (S20).
func (c *comparison) spare(t storage.Trace, claim *corev1.PersistentVolumeClaim) bool {
	late := claim.Status.Phase != corev1.ClaimBound && plans.Stamp{Plan: c.plan.ID}.Mine(claim)
	return !t.Mode.OneObject() && (claim.DeletionTimestamp != nil || late)
}

// inFlight reports whether an ordinal may be on neither side, or half way to the other.
func (c *comparison) inFlight(ordinal int32) bool {
	return c.wave().Has(ordinal) && c.journal.Wave(c.step).Away
}

// ownVolume requires that a claim is bound to its volume, and the volume to the claim.
func (c *comparison) ownVolume(t storage.Trace, side plans.Side, claim *corev1.PersistentVolumeClaim) {
	object := named(claim, side)
	c.expect(claim.DeletionTimestamp == nil, "S5", object, "another writer has deleted it, and its finalizers keep it", "a claim that stays")
	c.expect(claim.Status.Phase == corev1.ClaimBound, "S5", object, "its phase is "+cmp.Or(string(claim.Status.Phase), "empty"), "Bound")
	pv := t.Volumes[side]
	if pv == nil {
		c.expect(false, "S5", object, "volume "+claim.Spec.VolumeName+" does not exist, or is not the one of this ordinal", "the volume of this ordinal")
		return
	}
	c.expect(claim.Spec.VolumeName == pv.Name, "S5", object, "it names volume "+claim.Spec.VolumeName, pv.Name)
	ref := pv.Spec.ClaimRef
	ok := ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
	c.expect(ok, "S5", named(pv, side), "its claimRef names "+refText(ref), claim.Namespace+"/"+claim.Name+", UID "+string(claim.UID))
}

func refText(ref *corev1.ObjectReference) string {
	if ref == nil {
		return "nothing"
	}
	return ref.Namespace + "/" + ref.Name + ", UID " + string(ref.UID)
}

// retained is S4 for the sets: while the plan is under way, no controller deletes a claim with its pod.
func (c *comparison) retained() {
	if !c.holds() {
		return
	}
	for _, side := range plans.Sides() {
		set := c.sets[side]
		if set == nil || set.Spec.PersistentVolumeClaimRetentionPolicy == nil || len(c.plan.Claims) == 0 {
			continue
		}
		p := set.Spec.PersistentVolumeClaimRetentionPolicy
		ok := p.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType && p.WhenDeleted != appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		c.expect(ok, "S4", c.plan.On(side).Set(), fmt.Sprintf("its persistentVolumeClaimRetentionPolicy is %s/%s (whenDeleted/whenScaled)", p.WhenDeleted, p.WhenScaled), "Retain/Retain")
	}
}

// tightened reports whether the first Tighten is over, and no closing step may have given the budgets back. A reversed
// wave may not have come as far as that, so the first Tighten of any leg counts for nothing.
func (c *comparison) tightened() bool {
	leg := c.journal.Leg
	switch {
	case !c.holds():
		return false
	case leg.Direction == plans.Move && (!leg.Opens(c.plan) || !c.more):
		return true
	}
	before, there := c.plan.Step(leg, c.step.Seq-1)
	return there && before.Moves()
}

// signed reports whether a budget is as the first Tighten leaves it, with the numbers that the plan wrote last beside
// its spec. One that was on the destination and allows nothing fits already, and may never have been written.
func (c *comparison) signed(side plans.Side, b *policyv1.PodDisruptionBudget) bool {
	_, existed := c.plan.BudgetOn(side)
	zero := intstr.FromInt32(0)
	fits := side == plans.Destination && existed && b.Spec.MaxUnavailable != nil && *b.Spec.MaxUnavailable == zero
	return b.Annotations[plans.BudgetAnnotation] != "" || fits || !c.tightened()
}

// budgets is S3: both budgets exist, and together with the ordinals in flight they allow no more than d evictions.
func (c *comparison) budgets() {
	var allowed int32
	for _, side := range plans.Sides() {
		name, existed := c.plan.BudgetOn(side)
		b := c.facts.budgets[side]
		if b == nil {
			c.expect(!c.tightened() && !existed || c.sets[side] == nil, "S3", fmt.Sprintf("PodDisruptionBudget %s of %s", name, c.plan.On(side)), "it does not exist", "a budget over the pods of this side")
			continue
		}
		ours, written := b.Annotations[plans.BudgetAnnotation]
		then := "the budget that the plan has made; its next wave stops at this one until it is deleted, and makes its own again"
		if existed {
			then = "the numbers that the plan wrote last; its next wave writes them again, and until then they do not bound evictions"
		}
		c.expect(c.signed(side, b), "S12", named(b, side), "it has no annotation "+plans.BudgetAnnotation+": it was recreated, or another writer replaced its annotations", then)
		c.expect(!written || ours == pdb.Words(b.Spec), "S12", named(b, side), "it has "+pdb.Words(b.Spec), ours+", which the plan wrote last")
		if b.Status.ObservedGeneration == b.Generation {
			allowed += b.Status.DisruptionsAllowed
		}
	}
	away := c.away()
	limit := c.plan.MaxUnavailable
	if c.journal.Leg.Direction == plans.Abort {
		limit = max(limit, c.journal.Assurances.MaxUnavailable)
	}
	if away > 0 {
		c.expect(allowed+away <= limit, "S3", "the budgets of both sides", fmt.Sprintf("they allow %d evictions while %d ordinals are in flight", allowed, away), fmt.Sprintf("at most %d together", limit))
	}
}
