package orchestrator

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

type retention = appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy

func retain() *retention {
	return &retention{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
}

// retentionOf reads the policy with the API's defaults filled in.
func retentionOf(set *appsv1.StatefulSet) retention {
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

// freeze makes both sets safe to resize BEFORE any volume or ordinal is
// touched: claims survive scaling and deletion (KEP-1847 policies to Retain), the
// dependencies are there, and the destination set stands ready with no
// ordinals, its start at the end of the source's range.
func (w world) freeze(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	source, err := w.set(ctx, plans.Source)
	if err != nil {
		return plans.Sight{}, err
	}
	destination, err := w.set(ctx, plans.Destination)
	if err != nil {
		return plans.Sight{}, err
	}
	if source == nil || source.UID != w.plan.Seen.SourceUID {
		return plans.Stop(fmt.Sprintf("%s is gone, or another than the plan was made for; make a new plan", w.plan.Source.Set())), nil
	}
	if (destination != nil) && !w.plan.Existed() && !m.Stamp.Mine(destination) {
		return plans.Stop(fmt.Sprintf("%s was made by somebody else since the plan was made; make a new plan", w.plan.Destination.Set())), nil
	}
	undo := saved(source, destination, w.plan)
	if s := w.freezeSet(m, plans.Source, source, plans.Slice{Start: w.plan.Start, Replicas: w.plan.Count}, undo); s.Standing != plans.After {
		return s, nil
	}
	if s, err := w.copies(ctx, m); err != nil || s.Standing != plans.After {
		return s, err
	}
	if destination == nil {
		if w.plan.Existed() {
			return plans.Stop(fmt.Sprintf("%s was deleted by somebody else", w.plan.Destination.Set())), nil
		}
		next, err := Twin(source, w.plan)
		if err != nil {
			return plans.Stop(err.Error() + "; make a new plan"), nil //nolint:nilerr // trying again would not mend it
		}
		m.Stamp.Put(next)
		return plans.Write(fmt.Sprintf("destination: create StatefulSet %s with no ordinals (start %d)", next.Name, w.plan.End()),
			undo, func(ctx context.Context) error {
				return writes.Copy(ctx, w.on[plans.Source], source, w.on[plans.Destination], next)
			}), nil
	}
	return w.freezeSet(m, plans.Destination, destination, plans.Slice{Start: w.plan.End()}, undo), nil
}

func saved(source, destination *appsv1.StatefulSet, p *plans.Plan) plans.Undo {
	s := plans.Saved{Retention: map[plans.Side]retention{plans.Source: retentionOf(source)}}
	if destination != nil && p.Existed() {
		slice := plans.SliceOf(destination)
		s.Slice = &slice
		s.Retention[plans.Destination] = retentionOf(destination)
	}
	return plans.Undo{Saved: s}
}

// freezeSet marks one set, sets its retention policy to Retain and its range to
// what the plan starts from, in one write.
func (w world) freezeSet(m plans.Moment, side plans.Side, set *appsv1.StatefulSet, slice plans.Slice, undo plans.Undo) plans.Sight {
	if why := m.Stamp.Barred(set); why != "" {
		return plans.Stop(fmt.Sprintf("%s %s", w.plan.On(side).Set(), why))
	}
	have := plans.SliceOf(set)
	if have != slice && (side == plans.Source || have.Replicas != 0) {
		return plans.Stop(fmt.Sprintf("%s has the ordinals %s, expected %s; written by %s; make a new plan", w.plan.On(side).Set(), have, slice, plans.Writer(set, "spec", "replicas")))
	}
	if have == slice && m.Stamp.Mine(set) && retentionOf(set) == *retain() {
		if set.Status.ObservedGeneration < set.Generation {
			return plans.Wait(w.unsettled(side, set))
		}
		return plans.Done()
	}
	next := set.DeepCopy()
	next.Spec.PersistentVolumeClaimRetentionPolicy = retain()
	if have != slice {
		next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: slice.Start}
	}
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("%s: StatefulSet %s: mark it, keep its claims when it shrinks (retention policy Retain)", side, set.Name),
		undo, func(ctx context.Context) error { return writes.Change(ctx, w.on[side], set, next) })
}

// Twin is the destination set: the source's spec with the plan's patches and no
// ordinals yet. It fails only where the patches do not fit the set.
func Twin(source *appsv1.StatefulSet, p *plans.Plan) (*appsv1.StatefulSet, error) {
	next, err := plans.Destined(source, p)
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
			t.Spec.StorageClassName = &to // it can never be changed later
		}
	}
	return next, nil
}

// retire deletes the set that has lost its ordinals, once nothing depends on it:
// no ordinals, no pods, and no claim that the garbage collector would take with
// it (claims of ordinals that were scaled away long ago among them).
func (w world) retire(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	side := m.From
	if side == plans.Destination && w.plan.Existed() {
		return plans.Done(), nil // it was there before; Thaw restores it
	}
	set, err := w.set(ctx, side)
	if err != nil || set == nil {
		return plans.Done(), err
	}
	if set.DeletionTimestamp != nil {
		return plans.Wait(fmt.Sprintf("%s is being deleted", w.plan.On(side).Set())), nil
	}
	if _, stop, err := w.guarded(ctx, m, side); err != nil || stop != nil {
		return orEmpty(stop), err
	}
	if slice := plans.SliceOf(set); slice.Replicas != 0 {
		return plans.Stop(fmt.Sprintf("%s has the ordinals %s, expected none; written by %s", w.plan.On(side).Set(), slice, plans.Writer(set, "spec", "replicas"))), nil
	}
	if why, err := w.unready(ctx, m); err != nil || why != "" {
		return plans.Wait(why), err
	}
	pods, err := w.pods(ctx, side, set)
	if err != nil {
		return plans.Sight{}, err
	}
	for name := range pods {
		return plans.Wait(fmt.Sprintf("pod %s of %s still exists", name, w.plan.On(side))), nil
	}
	if claim, err := w.ownedClaim(ctx, side, set); err != nil || claim != "" {
		return plans.Stop(fmt.Sprintf("claim %s is owned by %s and would be deleted with it; take the owner reference off the claim, or delete the claim", claim, w.plan.On(side).Set())), err
	}
	return w.remove(side, set, w.plan.On(side).SetKind()+" "+set.Name, "which has no ordinals left"), nil
}

// unready gives the reason why the destination cannot stand on its own yet. There
// is no way back from a Clean, so it is asked once more.
func (w world) unready(ctx context.Context, m plans.Moment) (string, error) {
	if m.To() == plans.Source {
		return "", nil
	}
	kept, err := w.set(ctx, m.To())
	if err != nil {
		return "", err
	}
	if kept == nil {
		return fmt.Sprintf("%s does not exist; nothing of the source is deleted", w.plan.On(m.To()).Set()), nil
	}
	return w.unavailable(ctx, m.To(), kept, plans.Slice{})
}

func (w world) ownedClaim(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) (string, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := w.on[side].List(ctx, &claims, client.InNamespace(set.Namespace)); err != nil {
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

// inTurn is the look of a step in several parts, each begun when the one before it is
// finished.
func inTurn(looks ...plans.Look) plans.Look {
	return func(ctx context.Context, m plans.Moment) (plans.Sight, error) {
		for _, look := range looks {
			if s, err := look(ctx, m); err != nil || s.Standing != plans.After {
				return s, err
			}
		}
		return plans.Done(), nil
	}
}

// thawLoser restores a destination set that was there before the plan.
func (w world) thawLoser(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	set, err := w.set(ctx, m.From)
	if err != nil || set == nil || set.DeletionTimestamp != nil || !m.Stamp.Mine(set) {
		return plans.Done(), err
	}
	if m.From == plans.Source || !w.plan.Existed() {
		return w.retire(ctx, m) // made by a process that was late, after Retire
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

// thawWinner gives the set that keeps the ordinals its retention policy back. A
// destination set that we made gets the source's.
func (w world) thawWinner(ctx context.Context, m plans.Moment) (plans.Sight, error) {
	set, err := w.set(ctx, m.To())
	if err != nil || set == nil || !m.Stamp.Mine(set) {
		return plans.Done(), err
	}
	policyOf := m.To()
	if policyOf == plans.Destination && !w.plan.Existed() {
		policyOf = plans.Source
	}
	return w.thawSet(m, m.To(), set, set.DeepCopy(), policyOf), nil
}

func (w world) thawSet(m plans.Moment, side plans.Side, set, next *appsv1.StatefulSet, policyOf plans.Side) plans.Sight {
	if why := m.Stamp.Barred(set); why != "" {
		return plans.Stop(fmt.Sprintf("%s %s", w.plan.On(side).Set(), why))
	}
	if p, ok := m.Saved.Retention[policyOf]; ok {
		next.Spec.PersistentVolumeClaimRetentionPolicy = &p
	}
	plans.Unmark(next)
	return plans.Write(fmt.Sprintf("%s: StatefulSet %s: retention policy as before, mark off", side, set.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.Change(ctx, w.on[side], set, next) })
}
