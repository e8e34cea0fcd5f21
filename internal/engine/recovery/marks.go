package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// marks is what is found of a plan on its objects, read live on both sides.
type marks struct {
	plan    *plans.Plan
	sets    map[plans.Side]*appsv1.StatefulSet
	budgets map[plans.Side]*policyv1.PodDisruptionBudget
	traces  []storage.Trace
	// last has the highest epoch and the highest step of all stamps, not necessarily of the same stamp.
	last plans.Stamp
	// marked counts the objects with a stamp of the plan.
	marked int
	// stranger is the error that names an object that is not this plan's, or not the one with the data; nil if there is none.
	stranger error
}

// findMarks reads everything that may carry a mark of the plan.
func findMarks(ctx context.Context, w sets.Steps) (*marks, error) {
	m := &marks{plan: w.Plan, sets: map[plans.Side]*appsv1.StatefulSet{}, budgets: map[plans.Side]*policyv1.PodDisruptionBudget{}}
	for _, side := range plans.Sides() {
		if err := m.side(ctx, w, side); err != nil {
			return nil, err
		}
	}
	copied, err := w.Copies(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range copied {
		m.see(o)
	}
	m.traces, err = storage.Traces(ctx, w.Plan, w.On, m.see)
	for _, t := range m.traces {
		for _, side := range plans.Sides() {
			if c := t.Claims[side]; c != nil {
				m.refuse(c)
			}
			if pv := t.Volumes[side]; pv != nil {
				m.refuse(pv)
				m.exchanged(t, side, pv)
			}
		}
	}
	return m, errors.Join(err, m.stranger)
}

// side reads the set of a side, its budget, the Jobs of gates and the revisions of the set.
func (m *marks) side(ctx context.Context, w sets.Steps, side plans.Side) error {
	set, err := w.Set(ctx, side)
	if err != nil {
		return err
	}
	if set != nil {
		m.sets[side] = set
		m.own(set)
	}
	b, err := w.Budget(ctx, side)
	if err != nil {
		return err
	}
	if b != nil {
		m.budgets[side] = b
		m.own(b)
	}
	jobs, err := gates.Jobs(ctx, w.Plan, w.On[side], side)
	for i := range jobs {
		m.see(&jobs[i])
	}
	all, unread := w.Revisions(ctx, side, set)
	for _, r := range all { // their stamps are removed last
		m.see(r)
	}
	return errors.Join(err, unread)
}

// see records the stamp of an object, if it is of this plan.
func (m *marks) see(o client.Object) {
	s, ok := plans.Stamped(o)
	if !ok || s.Plan != m.plan.ID {
		return
	}
	m.marked++
	m.last.Epoch, m.last.Seq = max(m.last.Epoch, s.Epoch), max(m.last.Seq, s.Seq)
}

// own records the stamp of an object that must not belong to another plan.
func (m *marks) own(o client.Object) {
	m.see(o)
	m.refuse(o)
}

func (m *marks) refuse(o client.Object) {
	if s, ok := plans.Stamped(o); ok && s.Plan != m.plan.ID && m.stranger == nil {
		m.stranger = fmt.Errorf("%s %s belongs to plan %s, and not to plan %s: nothing is recovered; recover, finish or abort that plan, or pass its plan file",
			clusters.KindOf(o), client.ObjectKeyFromObject(o), s.Plan, m.plan.ID)
	}
}

// exchanged keeps the error that names a claim that is bound to another volume than the one that the plan protects for it:
// the ordinal's data is on that one, and a journal that counts the ordinal as moved would hide that (S5).
func (m *marks) exchanged(t storage.Trace, side plans.Side, pv *corev1.PersistentVolume) {
	c := t.Claims[side]
	if c == nil || c.Spec.VolumeName == "" || c.Spec.VolumeName == pv.Name || !storage.Marked(m.plan, pv) || m.stranger != nil {
		return
	}
	m.stranger = fmt.Errorf("claim %s of the %s is bound to volume %s, while the data is on volume %s, which plan %s protects for it: nothing is recovered; have the claim bound to that one again, or take the annotations stsmigrate.dev/* off that one if the other shall be used",
		c.Name, side, c.Spec.VolumeName, pv.Name, m.plan.ID)
}

// mine reports whether an object carries a stamp of the plan.
func (m *marks) mine(o client.Object) bool { return (plans.Stamp{Plan: m.plan.ID}).Mine(o) }

// ranges returns the ordinals of both sides, end to end, or an error that states how they contradict the
// plan. A set that does not exist, or has no ordinals, gets an empty range at the end from which it grows.
func (m *marks) ranges() (source, destination plans.Slice, err error) {
	p := m.plan
	source, destination = plans.Slice{Start: p.Start}, plans.Slice{Start: p.End()}
	if set := m.sets[plans.Source]; set != nil && plans.SliceOf(set).Replicas > 0 {
		source = plans.SliceOf(set)
	}
	if set := m.sets[plans.Destination]; set != nil && plans.SliceOf(set).Replicas > 0 {
		destination = plans.SliceOf(set)
	}
	saw := fmt.Sprintf("%s has the ordinals %s, %s has %s", p.Source.Set(), source, p.Destination.Set(), destination)
	gap := destination.Start - source.End()
	switch {
	case m.sets[plans.Source] == nil && destination != p.Ordinals():
		err = fmt.Errorf("%s does not exist, and %s has only the ordinals %s: first recreate it as it was, with the ordinals %s", p.Source.Set(), p.Destination.Set(), destination, plans.Slice{Start: p.Start, Replicas: destination.Start - p.Start})
	case source.Start != p.Start || destination.End() != p.End():
		err = fmt.Errorf("%s, expected ranges that begin with %d and end with %d: find the writer that scaled them, and set them back", saw, p.Start, p.End()-1)
	case gap < 0:
		err = fmt.Errorf("%s: ordinal %d is in both ranges, and nothing is recovered while two pods may mount its volumes; find the writer that scaled them, and remove the ordinal from the set that does not run its pod", saw, destination.Start)
	case gap > p.Window && m.sets[plans.Destination] == nil:
		err = fmt.Errorf("%s has the ordinals %s, and %s does not exist: %d ordinals are on neither side, and a wave of plan %s has at most %d; their volumes still exist: recreate the namespace if it is gone, then remove claimRef.uid from these volumes so that their claims get them again, and only then recreate the set, with the ordinals %s (docs/ways-out.md)",
			p.Source.Set(), source, p.Destination.Set(), gap, p.Name, p.Window, plans.Slice{Start: source.End(), Replicas: gap})
	case gap > p.Window:
		err = fmt.Errorf("%s: %d ordinals are on neither side, and a wave of plan %s has at most %d; find the writer that scaled them, and set them back", saw, gap, p.Name, p.Window)
	}
	return source, destination, err
}

// direction returns the direction of the plan, as far as the marks show it; "" if they do not.
func (m *marks) direction(source plans.Slice) plans.Direction {
	said := map[plans.Direction]bool{}
	for _, set := range m.sets {
		if m.mine(set) {
			said[plans.Direction(set.Annotations[plans.DirectionAnnotation])] = true
		}
	}
	for _, c := range []plans.Direction{plans.Finalize, plans.Abort, plans.Move} {
		if said[c] {
			return c
		}
	}
	from, to := m.sets[plans.Source], m.sets[plans.Destination]
	switch {
	case from == nil:
		return plans.Finalize // nothing else deletes the source
	case !m.mine(from) && source == m.plan.Ordinals():
		return plans.Abort // the source is marked first, and unmarked last
	case to == nil && !m.plan.Existed() && m.begunWaves():
		return plans.Abort
	}
	return ""
}

// begunWaves reports whether any volume is protected or any budget tightened.
func (m *marks) begunWaves() bool {
	for _, b := range m.budgets {
		if m.mine(b) && b.Annotations[plans.BudgetAnnotation] != "" {
			return true
		}
	}
	return slices.ContainsFunc(m.traces, func(t storage.Trace) bool { return t.Protected(m.plan) })
}

// closing reports whether the end of an abort has begun, where the source has every ordinal: a budget, the
// destination set or a volume shows it.
func (m *marks) closing() bool {
	for _, side := range plans.Sides() {
		if b := m.budgets[side]; b == nil || !m.mine(b) || b.Annotations[plans.BudgetAnnotation] == "" {
			return true
		}
	}
	return m.sets[plans.Destination] == nil || !m.held()
}

// held reports whether every volume that moves is protected.
func (m *marks) held() bool {
	for _, t := range m.traces {
		if !t.Protected(m.plan) {
			return false
		}
	}
	return true
}
