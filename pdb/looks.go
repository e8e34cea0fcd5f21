package pdb

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// budgets looks at the PodDisruptionBudgets of both sides.
type budgets struct {
	clusters.Pair
	needs Needs
}

// Looks returns the looks of this package for one plan. needs may be nil.
func Looks(p *plans.Plan, on map[plans.Side]client.Client, needs Needs) map[plans.Op]plans.Look {
	k := budgets{Pair: clusters.Pair{Plan: p, On: on}, needs: needs}
	return map[plans.Op]plans.Look{plans.Tighten: k.tighten, plans.Relax: k.relax}
}

// Restore returns the look that restores the budgets: a user's budget gets its former numbers back, and a
// budget of ours is deleted. It is part of Thaw, which package engine composes.
func Restore(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	return budgets{Pair: clusters.Pair{Plan: p, On: on}}.restore
}

// tighten takes the units of the ordinals that are about to go down out of both budgets. After means that
// the disruption controller has observed the change, and that no eviction which it granted earlier is still
// outstanding (it may take two minutes to arrive).
func (k budgets) tighten(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if m.Unsure() {
		if why, err := k.leaving(ctx, m); err != nil || why != "" {
			return plans.Wait(reasons.PodLeaving, why), err
		}
	}
	s, found, err := k.bring(ctx, m, away(k.Plan, m))
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	for side, b := range found {
		if why := k.pending(side, b); why != "" {
			return plans.Wait(reasons.EvictionPending, why), nil
		}
		if why, err := k.astray(ctx, side, b); err != nil || why != "" { // also checked where no write was due
			return plans.Stop(reasons.BudgetSelection, why), err
		}
	}
	return plans.Done(), nil
}

// away returns the goal while the ordinals of a wave are away: what the plan allows, less those that are down anyway.
func away(p *plans.Plan, m plans.StepContext) goal {
	return goal{allowance: max(p.MaxUnavailable-m.Ordinals.Replicas-m.Down, 0), before: true}
}

// leaving returns the reason why the replicas of the side that gets the ordinal back cannot bound it yet:
// the plan was reversed after its set had scaled the pod away, and before the pod was deleted. Such a pod
// counts as healthy, and maxUnavailable would allow one eviction too many.
func (k budgets) leaving(ctx context.Context, m plans.StepContext) (string, error) {
	ref := k.Plan.On(m.To())
	var set appsv1.StatefulSet
	there, err := k.get(ctx, m.To(), ref.Name, &set)
	if err != nil || !there {
		return "", err
	}
	for o := range m.Ordinals.All() {
		var pod corev1.Pod
		there, err := k.get(ctx, m.To(), k.Plan.Pod(m.To(), o), &pod)
		if err != nil {
			return "", err
		}
		if there && pod.DeletionTimestamp == nil && !plans.SliceOf(&set).Has(o) {
			return fmt.Sprintf("pod %s of %s: waiting for the StatefulSet controller to delete it; its set was scaled down before the plan was reversed", pod.Name, ref), nil
		}
	}
	return "", nil
}

// get reads an object of a side's namespace and reports whether it exists.
func (k budgets) get(ctx context.Context, side plans.Side, name string, into client.Object) (bool, error) {
	err := k.On[side].Get(ctx, client.ObjectKey{Namespace: k.Plan.On(side).Namespace, Name: name}, into)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading %s of %s: %w", name, k.Plan.On(side), err)
	}
	return err == nil, nil
}

// relax divides the whole budget between the sides by the new numbers of ordinals.
func (k budgets) relax(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	s, _, err := k.bring(ctx, m, goal{allowance: k.Plan.MaxUnavailable, needs: k.needs, settled: true})
	return s, err
}

// bring brings both budgets to a goal. It writes the budgets that fall, and the controller observes them,
// BEFORE it writes one that rises (S3).
func (k budgets) bring(ctx context.Context, m plans.StepContext, g goal) (plans.Observation, map[plans.Side]*policyv1.PodDisruptionBudget, error) {
	found, err := k.both(ctx)
	if err != nil {
		return plans.Observation{}, nil, err
	}
	for _, side := range plans.Sides() {
		if why := k.foreign(m, side, found[side]); why != "" {
			s, err := k.alone(ctx, m, side, found[side], g)
			if err != nil || s.Standing != plans.After {
				return s, nil, err
			}
			return plans.Stop(reasons.BudgetChanged, why), nil, nil
		}
	}
	wants, err := k.wanted(ctx, m, g, found)
	if err != nil {
		return plans.Observation{}, nil, err
	}
	var waits *plans.Observation
	for _, rise := range []bool{false, true} {
		if waits != nil {
			return *waits, nil, nil // lowered, not yet observed by the controller
		}
		for _, side := range []plans.Side{m.From, m.To()} {
			s, err := k.due(ctx, m, side, found, wants, rise)
			switch {
			case err != nil:
				return plans.Observation{}, nil, err
			case s.Standing == plans.During:
				waits = &s
			case s.Standing != plans.After:
				return s, nil, nil
			}
		}
	}
	if waits != nil {
		return *waits, nil, nil
	}
	return plans.Done(), found, nil
}

// alone stops where the set of a missing budget is gone too, as with a deleted namespace. A user who is told of the
// budget alone would recreate the set beside it with other ordinals, or with empty volumes.
func (k budgets) alone(ctx context.Context, m plans.StepContext, side plans.Side, b *policyv1.PodDisruptionBudget, g goal) (plans.Observation, error) {
	ref := k.Plan.On(side)
	if b != nil || m.Unsure() {
		return plans.Done(), nil
	}
	set, err := k.Set(ctx, side)
	if err != nil || set != nil {
		return plans.Done(), err
	}
	name, _ := k.Plan.BudgetOn(side)
	return plans.Stop(reasons.SetDeleted, fmt.Sprintf("%s does not exist, and neither does PodDisruptionBudget %s; recreate both, the set as it was, with the ordinals %s and its volumes, and pass --readopt",
		ref.Set(), name, k.Plan.Slice(side, m.Ordinals, g.before == (side == m.From)))), nil
}

// due returns what is due for one budget: a write if the budget rises or falls in this round, or a wait.
func (k budgets) due(ctx context.Context, m plans.StepContext, side plans.Side, found map[plans.Side]*policyv1.PodDisruptionBudget, wants map[plans.Side]want, rise bool) (plans.Observation, error) {
	b, w := found[side], wants[side]
	if b != nil && (matches(b.Spec, w) || kept(m, b.Spec, w)) {
		if b.Status.ObservedGeneration < b.Generation {
			return plans.Wait(reasons.BudgetNotObserved, fmt.Sprintf("PodDisruptionBudget %s of %s: waiting for the disruption controller to see the new spec", b.Name, k.Plan.On(side))), nil
		}
		return plans.Done(), nil
	}
	if (b != nil && allows(w.spec, w.pods) > allows(b.Spec, w.pods)) != rise {
		return plans.Done(), nil
	}
	if why := k.granted(found, wants, side); rise && why != "" {
		return plans.Wait(reasons.EvictionPending, why), nil
	}
	if why, err := k.astray(ctx, side, b); err != nil || why != "" {
		return plans.Stop(reasons.BudgetSelection, why), err
	}
	return k.write(m, side, found, w.spec), nil
}

// foreign returns the reason why a budget is not the one that the plan expects.
func (k budgets) foreign(m plans.StepContext, side plans.Side, b *policyv1.PodDisruptionBudget) string {
	name, existed := k.Plan.BudgetOn(side)
	_, saved := m.Saved.Budgets[side]
	switch {
	case b != nil && m.Stamp.Barred(b) != "":
		return fmt.Sprintf("PodDisruptionBudget %s of %s %s", b.Name, k.Plan.On(side), m.Stamp.Barred(b))
	case b == nil && (existed || saved):
		return fmt.Sprintf("PodDisruptionBudget %s of %s was deleted by another writer; recreate it", name, k.Plan.On(side))
	case b != nil && !existed && !m.Stamp.Mine(b):
		return fmt.Sprintf("PodDisruptionBudget %s of %s was created by another writer after the plan was made; delete it, or make a new plan", name, k.Plan.On(side))
	}
	return k.edited(side, b)
}

// edited returns the reason why the numbers of a budget differ from those that this program wrote last
// (S12).
func (k budgets) edited(side plans.Side, b *policyv1.PodDisruptionBudget) string {
	if b == nil {
		return ""
	}
	ours, ok := b.Annotations[plans.BudgetAnnotation]
	if !ok || ours == Words(b.Spec) {
		return ""
	}
	return fmt.Sprintf("PodDisruptionBudget %s of %s was changed to %s by %s; set it back to %s", b.Name, k.Plan.On(side), Words(b.Spec), changer(b), ours)
}

// changer names the writer that last changed the numbers of a budget.
func changer(b *policyv1.PodDisruptionBudget) string {
	if b.Spec.MaxUnavailable != nil {
		return plans.Writer(b, "spec", "maxUnavailable")
	}
	return plans.Writer(b, "spec", "minAvailable")
}

// both reads the budgets of both sides. A budget that does not exist is nil.
func (k budgets) both(ctx context.Context) (map[plans.Side]*policyv1.PodDisruptionBudget, error) {
	found := map[plans.Side]*policyv1.PodDisruptionBudget{}
	for _, side := range plans.Sides() {
		b, err := k.Budget(ctx, side)
		if err != nil {
			return nil, err
		}
		found[side] = b
	}
	return found, nil
}

// write returns the one write that brings a budget to a spec. The user's specs of both sides are saved with
// the first such write.
func (k budgets) write(m plans.StepContext, side plans.Side, found map[plans.Side]*policyv1.PodDisruptionBudget, spec policyv1.PodDisruptionBudgetSpec) plans.Observation {
	var undo plans.Undo
	undo.Saved.Budgets = map[plans.Side]policyv1.PodDisruptionBudgetSpec{}
	for s, b := range found {
		if _, existed := k.Plan.BudgetOn(s); existed {
			undo.Saved.Budgets[s] = *b.Spec.DeepCopy()
		}
	}
	b := found[side]
	if b == nil {
		name, _ := k.Plan.BudgetOn(side)
		return plans.Write(fmt.Sprintf("%s: create PodDisruptionBudget %s: %s", side, name, Words(spec)), undo,
			func(ctx context.Context) error { return k.create(ctx, m, side, spec) })
	}
	next := b.DeepCopy()
	next.Spec.MinAvailable, next.Spec.MaxUnavailable = spec.MinAvailable, spec.MaxUnavailable
	if was, existed := m.Saved.With(undo.Saved).Budgets[side]; existed {
		plans.NumbersOf(was).Put(next)
	}
	sign(m, next)
	return plans.Write(fmt.Sprintf("%s: PodDisruptionBudget %s: %s -> %s", side, b.Name, Words(b.Spec), Words(spec)),
		undo, func(ctx context.Context) error { return writes.Change(ctx, k.On[side], b, next) })
}

// sign stamps a budget and records in an annotation the numbers that it was given.
func sign(m plans.StepContext, b *policyv1.PodDisruptionBudget) {
	m.Stamp.Put(b)
	b.Annotations[plans.BudgetAnnotation] = Words(b.Spec)
}

// create creates a budget where there is none: on the destination like the user's budget on the source, else
// over the pods of the set.
func (k budgets) create(ctx context.Context, m plans.StepContext, side plans.Side, spec policyv1.PodDisruptionBudgetSpec) error {
	model, err := k.model(ctx, side)
	if err != nil {
		return err
	}
	var set *appsv1.StatefulSet
	if model == nil {
		if set, err = k.Set(ctx, side); err != nil || set == nil {
			return cmp.Or(err, fmt.Errorf("%s does not exist", k.Plan.On(side).Set()))
		}
	}
	next := Made(k.Plan, side, model, set, spec)
	if model != nil { // the numbers that it gets if it stays
		plans.NumbersOf(m.Saved.With(plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: model.Spec}}).Budgets[plans.Source]).Put(next)
	}
	sign(m, next)
	if model != nil {
		return writes.Copy(ctx, k.On[plans.Source], model, k.On[side], next)
	}
	return k.On[side].Create(ctx, next)
}

// Made returns the budget that a plan makes on a side: like the model, the user's budget on the source, or else over the pods
// of the set. The numbers are those of the spec.
func Made(p *plans.Plan, side plans.Side, model *policyv1.PodDisruptionBudget, set *appsv1.StatefulSet, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
	name, _ := p.BudgetOn(side)
	next := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.On(side).Namespace, Name: name}}
	if model != nil {
		next.Labels, next.Spec = model.Labels, *model.Spec.DeepCopy()
	} else {
		next.Spec.Selector = set.Spec.Selector
	}
	next.Spec.MinAvailable, next.Spec.MaxUnavailable = spec.MinAvailable, spec.MaxUnavailable
	return next
}

// model returns the user's budget on the source if a budget like it is due on the destination, else nil.
func (k budgets) model(ctx context.Context, side plans.Side) (*policyv1.PodDisruptionBudget, error) {
	if _, existed := k.Plan.BudgetOn(plans.Source); !existed || side != plans.Destination {
		return nil, nil
	}
	return k.Budget(ctx, plans.Source)
}

// Words describes the numbers of a budget.
func Words(s policyv1.PodDisruptionBudgetSpec) string {
	switch {
	case s.MaxUnavailable != nil:
		return "maxUnavailable " + s.MaxUnavailable.String()
	case s.MinAvailable != nil:
		return "minAvailable " + s.MinAvailable.String()
	default:
		return "neither minAvailable nor maxUnavailable, which allows nothing"
	}
}

// restore restores the numbers of both budgets: a user's budget gets its own; a budget of ours on a
// destination that keeps the ordinals gets those of the source; any other budget of ours is deleted. This
// program changed nothing else of a spec, so changes that another writer made to other fields stay (S12).
func (k budgets) restore(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	for _, side := range []plans.Side{m.From, m.To()} {
		b, err := k.Budget(ctx, side)
		if err != nil {
			return plans.Observation{}, err
		}
		if b == nil {
			continue
		}
		if !m.Stamp.Mine(b) {
			if why := k.lost(m, side, b); why != "" {
				return plans.Stop(reasons.BudgetMarkLost, why), nil
			}
			continue
		}
		if why := m.Stamp.Barred(b); why != "" {
			return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("PodDisruptionBudget %s of %s %s", b.Name, k.Plan.On(side), why)), nil
		}
		if why := k.edited(side, b); why != "" {
			return plans.Stop(reasons.BudgetChanged, why), nil
		}
		next := b.DeepCopy()
		plans.Unmark(next)
		_, existed := k.Plan.BudgetOn(side)
		spec, saved := m.Saved.Budgets[side]
		if !existed && side == plans.Destination && side == m.To() {
			spec, saved = m.Saved.Budgets[plans.Source]
		}
		kept := ""
		if saved {
			next.Spec.MinAvailable, next.Spec.MaxUnavailable = spec.MinAvailable, spec.MaxUnavailable
			kept = othersEdits(b.Spec, spec)
		} else if !existed {
			return k.remove(side, b), nil
		}
		return plans.Write(fmt.Sprintf("%s: PodDisruptionBudget %s: back to %s%s", side, b.Name, Words(next.Spec), kept), plans.Undo{},
			func(ctx context.Context) error { return writes.Change(ctx, k.On[side], b, next) }), nil
	}
	return plans.Done(), nil
}

// othersEdits describes the fields other than the numbers that another writer has changed since the move
// began.
func othersEdits(now, before policyv1.PodDisruptionBudgetSpec) string {
	var fields []string
	if !equality.Semantic.DeepEqual(now.Selector, before.Selector) {
		fields = append(fields, "its selector")
	}
	if !equality.Semantic.DeepEqual(now.UnhealthyPodEvictionPolicy, before.UnhealthyPodEvictionPolicy) {
		fields = append(fields, "its unhealthyPodEvictionPolicy")
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("; another writer changed %s since the move began, and that change is kept", strings.Join(fields, " and "))
}

func (k budgets) remove(side plans.Side, b *policyv1.PodDisruptionBudget) plans.Observation {
	return plans.Write(fmt.Sprintf("%s: delete PodDisruptionBudget %s, which the migration made", side, b.Name), plans.Undo{},
		func(ctx context.Context) error { return writes.Delete(ctx, k.On[side], b) })
}
