package sets

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// Retention is the retention policy for the claims of a set.
type Retention = appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy

func retain() *Retention {
	return &Retention{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
}

// retentionOf returns the policy with the API's defaults filled in.
func retentionOf(set *appsv1.StatefulSet) Retention {
	out := *retain()
	if p := set.Spec.PersistentVolumeClaimRetentionPolicy; p != nil {
		if p.WhenDeleted != "" {
			out.WhenDeleted = p.WhenDeleted
		}
		if p.WhenScaled != "" {
			out.WhenScaled = p.WhenScaled
		}
	}
	return out
}

// Freeze makes both sets safe to resize BEFORE any volume or ordinal is touched: claims survive scaling and
// deletion (KEP-1847 policies to Retain), the dependencies exist, and the destination set exists with no
// ordinals, its start at the end of the source's range.
func (w Steps) Freeze(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	source, err := w.Set(ctx, plans.Source)
	if err != nil {
		return plans.Observation{}, err
	}
	destination, err := w.Set(ctx, plans.Destination)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := w.others(m, source, destination); why != "" {
		return plans.Stop(reasons.PlanOutdated, why), nil
	}
	undo := saved(source, destination, w.Plan)
	s := w.freezeSet(m, plans.Source, source, plans.Slice{Start: w.Plan.Start, Replicas: w.Plan.Count}, undo)
	// Once both sets are there, they may have been updated alike.
	if s.Standing == plans.Before && !m.Stamp.Mine(source) || s.Standing == plans.After && destination == nil {
		s, err = w.approved(source, m.Saved.With(undo.Saved), s)
	}
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	if s, err := (Copies{w.Pair}).copies(ctx, m); err != nil || s.Standing != plans.After {
		s.Undo = undo // it is written with the first intent, and not once more for the set that follows
		return s, err
	}
	if destination == nil {
		return w.twinned(m, source, undo)
	}
	return w.freezeSet(m, plans.Destination, destination, plans.Slice{Start: w.Plan.End()}, undo), nil
}

// others returns the reason why the sets are not those that the plan was made for, or "".
func (w Steps) others(m plans.StepContext, source, destination *appsv1.StatefulSet) string {
	switch {
	case source == nil || source.UID != m.Saved.Source(w.Plan):
		return fmt.Sprintf("%s does not exist, or is not the set that the plan was made for; make a new plan", w.Plan.Source.Set())
	case destination == nil && w.Plan.Existed():
		return fmt.Sprintf("%s was deleted by another writer", w.Plan.Destination.Set())
	case destination != nil && !w.Plan.Existed() && !m.Stamp.Mine(destination):
		return fmt.Sprintf("%s was created by another writer after the plan was made; make a new plan", w.Plan.Destination.Set())
	}
	return ""
}

// approved returns the look at a source, or a conflict if the source is not what the plan was made for.
func (w Steps) approved(source *appsv1.StatefulSet, was plans.Saved, s plans.Observation) (plans.Observation, error) {
	if why, err := rangesOf(w.Pair).outdated(source, was); err != nil || why != "" {
		return plans.Stop(reasons.PlanOutdated, why+"; make a new plan"), err
	}
	return s, nil
}

// outdated returns the reason why a source is not what the plan was made for, or "". The user has approved, and the other
// namespace has agreed to, the set of that time: no pods of another one may be created there, and its dependencies are
// not known.
func (w ranges) outdated(source *appsv1.StatefulSet, was plans.Saved) (string, error) {
	same, err := w.Plan.Seen.SameSource(source, w.Plan, was)
	if err != nil || same {
		return "", err
	}
	return fmt.Sprintf("the spec of %s has changed since the plan was made (its template was last written by %s)", w.Plan.Source.Set(), plans.Writer(source, "spec", "template")), nil
}

// twinned returns the write that creates the destination set, if that set is what the plan states.
func (w Steps) twinned(m plans.StepContext, source *appsv1.StatefulSet, undo plans.Undo) (plans.Observation, error) {
	next, err := DestinationSet(source, w.Plan)
	if err != nil {
		return plans.Stop(reasons.PlanOutdated, err.Error()+"; make a new plan"), nil //nolint:nilerr // trying again would not mend it
	}
	if why, err := build.Misstated(w.Plan, source); err != nil || why != "" {
		return plans.Stop(reasons.PlanOutdated, fmt.Sprintf("plan %s: %s; make a new plan", w.Plan.Name, why)), err
	}
	m.Stamp.Put(next)
	plans.MarkSet(next, w.Plan, plans.Destination, plans.Move, m.Saved.With(undo.Saved))
	return plans.Write(fmt.Sprintf("destination: create StatefulSet %s with no ordinals (start %d)", next.Name, w.Plan.End()),
		undo, func(ctx context.Context) error {
			return writes.Copy(ctx, w.On[plans.Source], source, w.On[plans.Destination], next)
		}), nil
}

func saved(source, destination *appsv1.StatefulSet, p *plans.Plan) plans.Undo {
	s := plans.Saved{Retention: map[plans.Side]Retention{plans.Source: retentionOf(source)}}
	if destination != nil && p.Existed() {
		slice := plans.SliceOf(destination)
		s.Slice = &slice
		s.Retention[plans.Destination] = retentionOf(destination)
	}
	return plans.Undo{Saved: s}
}

// freezeSet marks one set, sets its retention policy to Retain and its range to the one that the plan
// starts from, in one write.
func (w Steps) freezeSet(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet, slice plans.Slice, undo plans.Undo) plans.Observation {
	if why := m.Stamp.Barred(set); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("%s %s", w.Plan.On(side).Set(), why))
	}
	have := plans.SliceOf(set)
	if have != slice && (side == plans.Source || have.Replicas != 0) {
		return plans.Stop(reasons.PlanOutdated, fmt.Sprintf("%s has the ordinals %s, expected %s; written by %s; make a new plan", w.Plan.On(side).Set(), have, slice, plans.Writer(set, "spec", "replicas")))
	}
	if have == slice && m.Stamp.Mine(set) && retentionOf(set) == *retain() {
		if set.Status.ObservedGeneration < set.Generation {
			return plans.Wait(reasons.SetUnsettled, Unsettled(w.Plan, side, set))
		}
		return plans.Done()
	}
	next := set.DeepCopy()
	next.Spec.PersistentVolumeClaimRetentionPolicy = retain()
	if have != slice {
		next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: slice.Start}
	}
	m.Stamp.Put(next)
	plans.MarkSet(next, w.Plan, side, plans.Move, m.Saved.With(undo.Saved))
	return plans.Write(fmt.Sprintf("%s: StatefulSet %s: mark it, keep its claims when it shrinks (retention policy Retain)", side, set.Name),
		undo, func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) })
}

// DestinationSet returns the destination set: the source's spec with the plan's patches and no ordinals yet.
// It returns an error only if the patches do not fit the set.
func DestinationSet(source *appsv1.StatefulSet, p *plans.Plan) (*appsv1.StatefulSet, error) {
	next, err := build.DestinationSet(source, p)
	if err != nil {
		return nil, err
	}
	var none int32
	next.Spec.Replicas = &none
	next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: p.End()}
	next.Spec.PersistentVolumeClaimRetentionPolicy = retain()
	for i := range next.Spec.VolumeClaimTemplates {
		t := &next.Spec.VolumeClaimTemplates[i]
		t.Status = corev1.PersistentVolumeClaimStatus{}
		if class := t.Spec.StorageClassName; class != nil {
			to := p.Storage.Class(*class)
			t.Spec.StorageClassName = &to // it cannot be changed later
		}
	}
	for _, t := range Ephemeral(next.Spec.Template.Spec) {
		if class := t.Spec.StorageClassName; class != nil {
			to := p.Storage.Class(*class)
			t.Spec.StorageClassName = &to
		}
	}
	return next, nil
}

// Ending deletes the emptied set of a plan, and takes the marks off the one that stays.
type Ending struct{ clusters.Pair }

// Retire deletes the set that has lost its ordinals, once nothing depends on it: it has no ordinals, no
// pods, and no claim that the garbage collector would delete with it (including claims of ordinals that
// were scaled down long ago).
func (w Ending) Retire(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	side := m.From
	if side == plans.Destination && w.Plan.Existed() {
		return plans.Done(), nil // it existed before the plan; Thaw restores it
	}
	set, err := w.Set(ctx, side)
	if err != nil || set == nil {
		return plans.Done(), err
	}
	if set.DeletionTimestamp != nil {
		return plans.Wait(reasons.SetTerminating, fmt.Sprintf("%s is being deleted", w.Plan.On(side).Set())), nil
	}
	if _, stop, err := rangesOf(w.Pair).guarded(ctx, m, side); err != nil || stop != nil {
		return orEmpty(stop), err
	}
	if slice := plans.SliceOf(set); slice.Replicas != 0 {
		return plans.Stop(reasons.OrdinalsChanged, fmt.Sprintf("%s has the ordinals %s, expected none; written by %s", w.Plan.On(side).Set(), slice, plans.Writer(set, "spec", "replicas"))), nil
	}
	kept, s, err := w.ownFeet(ctx, m)
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	pods, err := w.Pods(ctx, side, set)
	if err != nil {
		return plans.Observation{}, err
	}
	for name := range pods {
		return plans.Wait(reasons.PodTerminating, fmt.Sprintf("pod %s of %s still exists", name, w.Plan.On(side))), nil
	}
	if claim, err := w.ownedClaim(ctx, side, set); err != nil || claim != "" {
		return plans.Stop(reasons.ClaimOwned, fmt.Sprintf("claim %s is owned by %s and would be deleted with it; take the owner reference off the claim, or delete the claim", claim, w.Plan.On(side).Set())), err
	}
	s = plans.Write(fmt.Sprintf("%s: delete %s %s, which has no ordinals left", side, w.Plan.On(side).SetKind(), set.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.DeleteSet(ctx, w.On[side], set, kept) })
	s.Undo.Saved.Retired = set.UID
	return s, nil
}

// ownFeet checks that the side that keeps the ordinals has all of them in its range, and, after a move, that
// they are available. What follows cannot be undone, so this is checked once more.
func (w Ending) ownFeet(ctx context.Context, m plans.StepContext) (kept reads.Seen[*appsv1.StatefulSet], s plans.Observation, err error) {
	if kept, err = w.Live().Set(ctx, m.To()); err != nil {
		return kept, s, err
	}
	if why := rangesOf(w.Pair).misplaced(m.To(), kept.Object(), w.Plan.Ordinals()); why != "" {
		return kept, plans.Stop(reasons.OrdinalsChanged, why+"; nothing of the other side is deleted before that"), nil
	}
	if m.To() == plans.Source {
		return kept, plans.Done(), nil
	}
	why, err := Unavailable(ctx, w.Pair, m.To(), kept.Object())
	if err != nil || why == "" {
		return kept, plans.Done(), err
	}
	return kept, plans.Wait(reasons.OrdinalDown, why+"; nothing of the source is deleted before that"), nil
}

// misplaced describes how the range of a set differs from the one that the plan gives it, or returns "".
func (w ranges) misplaced(side plans.Side, set *appsv1.StatefulSet, want plans.Slice) string {
	name := w.Plan.On(side).Set()
	if set == nil {
		if want.Replicas == 0 {
			return ""
		}
		return fmt.Sprintf("%s does not exist, expected it to have the ordinals %s", name, want)
	}
	have := plans.SliceOf(set)
	if have == want || have.Replicas == 0 && want.Replicas == 0 {
		return ""
	}
	if side == plans.Destination && want == w.Plan.Ordinals() && w.Plan.HasAll(set) { // the others were never the plan's
		return ""
	}
	return fmt.Sprintf("%s has the ordinals %s, expected %s; replicas were last written by %s; stop that writer and set them back", name, have, want, plans.Writer(set, "spec", "replicas"))
}

// InPlace checks both ranges at the end of a Move: what moved is on the destination and nowhere else (S1,
// S12). It returns what is wrong, or "".
func (w Ending) InPlace(ctx context.Context, lowest int32) (string, error) {
	for side, want := range map[plans.Side]plans.Slice{
		plans.Source:      {Start: w.Plan.Start, Replicas: lowest - w.Plan.Start},
		plans.Destination: {Start: lowest, Replicas: w.Plan.End() - lowest},
	} {
		set, err := w.Set(ctx, side)
		if err != nil {
			return "", err
		}
		if why := rangesOf(w.Pair).misplaced(side, set, want); why != "" {
			return why, nil
		}
	}
	return "", nil
}

func (w Ending) ownedClaim(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) (string, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := w.On[side].List(ctx, &claims, client.InNamespace(set.Namespace)); err != nil {
		return "", fmt.Errorf("listing the claims of namespace %s: %w", set.Namespace, err)
	}
	for _, c := range claims.Items {
		for _, o := range c.OwnerReferences {
			if o.UID == set.UID {
				return c.Name, nil
			}
		}
	}
	return "", nil
}

// InTurn returns the look of a step in several parts. Each part begins when the one before it is finished. In the end it has
// seen what the last part has seen: its old values and its proofs are in that.
func InTurn(looks ...plans.Look) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (s plans.Observation, err error) {
		for _, look := range looks {
			if s, err = look(ctx, m); err != nil || s.Standing != plans.After {
				break
			}
		}
		return s, err
	}
}

// ThawLoser restores a destination set that existed before the plan.
func (w Ending) ThawLoser(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	set, err := w.Set(ctx, m.From)
	if err != nil || set == nil || set.DeletionTimestamp != nil {
		return plans.Done(), err
	}
	if !m.Stamp.Mine(set) {
		if m.From == plans.Source || !w.Plan.Existed() || set.UID != w.Plan.Seen.DestinationUID {
			return plans.Done(), nil
		}
		return w.unthawed(m, m.From, set, m.From), nil
	}
	if m.From == plans.Source || !w.Plan.Existed() {
		return w.Retire(ctx, m) // created by a late process, after Retire
	}
	next := set.DeepCopy()
	if s := m.Saved.Slice; s != nil {
		next.Spec.Replicas = &s.Replicas
		next.Spec.Ordinals = nil
		if s.Start != 0 {
			next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: s.Start}
		}
	}
	return w.thawSet(m, m.From, set, next, m.From), nil
}

// ThawWinner restores the retention policy of the set that keeps the ordinals, once both ranges are observed
// to be final. A destination set that we created gets the source's policy.
func (w Ending) ThawWinner(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	set, err := w.Set(ctx, m.To())
	if err != nil || set == nil {
		return plans.Done(), err
	}
	policyOf := m.To()
	if policyOf == plans.Destination && !w.Plan.Existed() {
		policyOf = plans.Source
	}
	if !m.Stamp.Mine(set) {
		return w.unthawed(m, m.To(), set, policyOf), nil
	}
	lost, err := w.Set(ctx, m.From)
	if err != nil {
		return plans.Observation{}, err
	}
	for _, why := range []string{rangesOf(w.Pair).misplaced(m.To(), set, w.Plan.Ordinals()), rangesOf(w.Pair).misplaced(m.From, lost, plans.Slice{})} {
		if why != "" {
			return plans.Stop(reasons.OrdinalsChanged, why), nil
		}
	}
	return w.thawSet(m, m.To(), set, set.DeepCopy(), policyOf), nil
}

// unthawed looks at a set without our mark: either it has been thawed, or another writer removed the mark,
// and the plan's changes to the set would stay (S15).
func (w Ending) unthawed(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet, policyOf plans.Side) plans.Observation {
	if plans.PinLost(set) {
		next := set.DeepCopy()
		_ = plans.Unpin(next) // it does not fail where the note is lost
		return plans.Write(fmt.Sprintf("%s: StatefulSet %s: partition as before (its mark is gone)", side, set.Name), plans.Undo{},
			func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) })
	}
	was, saved := m.Saved.Retention[policyOf]
	if have := retentionOf(set); !saved || have == was || have != *retain() {
		return plans.Done()
	}
	return plans.Stop(reasons.RetentionChanged, fmt.Sprintf("%s lost the mark of this plan, and still has the retention policy that the plan gave it (Retain); before the plan it was whenDeleted %s, whenScaled %s: set it back",
		w.Plan.On(side).Set(), was.WhenDeleted, was.WhenScaled))
}

// thawSet removes our mark from a set and restores its policy, unless another writer has
// changed the policy since.
func (w Ending) thawSet(m plans.StepContext, side plans.Side, set, next *appsv1.StatefulSet, policyOf plans.Side) plans.Observation {
	if why := m.Stamp.Barred(set); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("%s %s", w.Plan.On(side).Set(), why))
	}
	if p, ok := m.Saved.Retention[policyOf]; ok && retentionOf(set) == *retain() {
		next.Spec.PersistentVolumeClaimRetentionPolicy = &p
	}
	if s := pinningOf(w.Pair).unpin(m, side, set); s != nil && s.Standing == plans.Conflict {
		return *s
	} else if s != nil {
		_ = plans.Unpin(next) // it does not fail: see unpin
	}
	plans.Unmark(next)
	return plans.Write(fmt.Sprintf("%s: StatefulSet %s: retention policy as before, mark off", side, set.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) })
}

// Ephemeral returns the claim templates of the volumes that are created and deleted with each pod.
func Ephemeral(spec corev1.PodSpec) map[string]*corev1.PersistentVolumeClaimTemplate {
	out := map[string]*corev1.PersistentVolumeClaimTemplate{}
	for _, v := range spec.Volumes {
		if e := v.Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			out[v.Name] = e.VolumeClaimTemplate
		}
	}
	return out
}
