package sets

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Shrink removes the wave from the range of the side that has it. BEFORE that, it checks on both sides
// everything that a later step of the wave will require (S17), it checks that no more ordinals become
// unavailable than may be (S2), and it journals what will be needed to prove the pods gone.
func (w Steps) Shrink(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	set, stop, err := rangesOf(w.Pair).guarded(ctx, m, m.From)
	if err != nil || stop != nil {
		return orEmpty(stop), err
	}
	switch plans.SliceOf(set) {
	case w.Plan.Slice(m.From, m.Ordinals, false):
		if !m.Unsure() && (!m.Began || !m.InFlight()) {
			return rangesOf(w.Pair).strange(m.From, set, rangesOf(w.Pair).either(m, m.From, set)), nil
		}
		if set.Status.ObservedGeneration < set.Generation {
			return plans.Wait(reasons.SetUnsettled, Unsettled(w.Plan, m.From, set)), nil
		}
		return plans.Done(), nil
	case w.Plan.Slice(m.From, m.Ordinals, true):
		if written(m, set) {
			// Done, and undone by another writer. Vacate reports that, also after a takeover.
			return plans.Done(), nil
		}
		return w.depart(ctx, m, set)
	default:
		if stop := rangesOf(w.Pair).added(m, set); stop != nil {
			return *stop, nil
		}
		return rangesOf(w.Pair).strange(m.From, set, rangesOf(w.Pair).either(m, m.From, set)), nil
	}
}

// depart returns the write that scales the wave down, if the wave may go and could come up on the other side.
func (w Steps) depart(ctx context.Context, m plans.StepContext, from *appsv1.StatefulSet) (plans.Observation, error) {
	to, stop, err := rangesOf(w.Pair).guarded(ctx, m, m.To())
	if err != nil || stop != nil {
		return orEmpty(stop), err
	}
	if plans.SliceOf(to) != w.Plan.Slice(m.To(), m.Ordinals, false) {
		return rangesOf(w.Pair).strange(m.To(), to, w.Plan.Slice(m.To(), m.Ordinals, false).String()), nil
	}
	if stop := w.keeps(m, from, to); stop != nil {
		return *stop, nil
	}
	down, s, err := w.mayGo(ctx, m, from, to)
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	m.Down = down.others
	if s, err := pdb.Within(w.Plan, w.On, down.wave)(ctx, m); err != nil || s.Standing != plans.After {
		return s, err
	}
	s, err = w.unready(ctx, m)
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	if s := pinningOf(w.Pair).unpinned(m, from, to); s.Standing != plans.After {
		return s, nil
	}
	return rangesOf(w.Pair).resize(m, m.From, from, false, plans.Undo{Flight: s.Undo.Flight}), nil
}

// keeps stops where a set would delete the claims of the wave with its pods.
func (w Steps) keeps(m plans.StepContext, from, to *appsv1.StatefulSet) *plans.Observation {
	for side, set := range map[plans.Side]*appsv1.StatefulSet{m.From: from, m.To(): to} {
		if retentionOf(set) != *retain() {
			stop := plans.Stop(reasons.RetentionChanged, fmt.Sprintf("%s no longer keeps its claims (persistentVolumeClaimRetentionPolicy, written by %s): the claims of its pods would be deleted with them; set whenScaled and whenDeleted back to Retain",
				w.Plan.On(side).Set(), plans.Writer(set, "spec", "persistentVolumeClaimRetentionPolicy")))
			return &stop
		}
	}
	return nil
}

// stillAttached waits until the cluster of a side has detached the volumes of a wave. Which cluster the plan asks about is
// in the journal: once the wave is there, with the wave.
func stillAttached(m plans.StepContext, side plans.Side, why string) plans.Observation {
	wait := plans.Wait(reasons.VolumeAttached, why)
	if !m.Began || !m.InFlight() {
		wait.Undo.Asks = side
		return wait
	}
	asks := *m.Flight
	asks.WaitsThere, wait.Undo.Flight, wait.Span = side != m.From, &asks, plans.Detaching
	return wait
}

// vouched returns the nodes of both sides that the user has vouched for before and since Shrink has begun. The word is
// about a node that is gone: where a pod of the wave is Ready now, it was said of another time.
func vouched(m plans.StepContext, pods []corev1.Pod) (here, there []string) {
	here, there = slices.Clone(m.NodesGone), slices.Clone(m.NodesGoneThere)
	if m.Flight.LeavesBy(m.Step) {
		here, there = append(here, m.Flight.NodesGone...), append(there, m.Flight.NodesGoneThere...)
	}
	slices.Sort(here)
	slices.Sort(there)
	up := func(node string) bool {
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == node && Ready(&p) == "" })
	}
	return slices.DeleteFunc(slices.Compact(here), up), slices.Compact(there)
}

// unready looks at everything else that a later step of the wave will require (S17). After: the Undo has the pods and
// the volumes of the wave in a Flight.
func (w Steps) unready(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	s, err := storage.Departing(w.Plan, w.On)(ctx, m)
	if err != nil || s.Standing != plans.After {
		return s, err
	}
	flight := s.Undo.Flight
	all, err := w.EveryPod(ctx, m.From)
	if err != nil {
		return plans.Observation{}, err
	}
	if why := w.shared(all, m); why != "" {
		return plans.Wait(reasons.ClaimMounted, why), nil
	}
	there, err := w.EveryPod(ctx, m.To())
	if err != nil {
		return plans.Observation{}, err
	}
	var own []corev1.Pod
	for o := range m.Ordinals.All() {
		if slices.ContainsFunc(there, func(p corev1.Pod) bool { return p.Name == w.Plan.Pod(m.To(), o) }) {
			return plans.Stop(reasons.PodForeign, fmt.Sprintf("pod %s of %s is in the way: the ordinal could not come up there; delete it", w.Plan.Pod(m.To(), o), w.Plan.On(m.To()))), nil
		}
		for i := range all {
			if all[i].Name != w.Plan.Pod(m.From, o) {
				continue
			}
			pod, why, err := w.leaves(ctx, m, &all[i])
			if err != nil || why != "" {
				return plans.Wait(reasons.NodeNotReady, why), err
			}
			pod.Ordinal = o
			flight.Pods, own = append(flight.Pods, pod), append(own, all[i])
		}
	}
	flight.NodesGone, flight.NodesGoneThere = vouched(m, own)
	if side, why, err := storage.Attached(ctx, w.Plan, w.On, m, flight); err != nil || why != "" {
		return stillAttached(m, side, why), err
	}
	return s, nil
}

// leaves records a pod of the wave and its node. A pod that serves is not scaled down while its node could
// not report its end. A pod that is down already has nothing to lose.
func (w Steps) leaves(ctx context.Context, m plans.StepContext, pod *corev1.Pod) (plans.Pod, string, error) {
	out := plans.Pod{UID: pod.UID, Node: pod.Spec.NodeName, Grace: storage.Grace(pod)}
	if out.Node == "" {
		return out, "", nil
	}
	var node corev1.Node
	if err := w.On[m.From].Get(ctx, client.ObjectKey{Name: out.Node}, &node); client.IgnoreNotFound(err) != nil {
		return out, "", fmt.Errorf("reading node %s: %w", out.Node, err)
	}
	out.NodeUID = node.UID
	if Ready(pod) == "" && !storage.NodeReady(&node) {
		return out, fmt.Sprintf("node %s, where %s of %s runs, is gone or not Ready; no ordinal is scaled down until it is, or until the pod has gone elsewhere", out.Node, pod.Name, w.Plan.On(m.From)), nil
	}
	return out, "", nil
}

// shared returns the reason why the claims of the wave could not be released, or "": a pod that is not the
// set's mounts one of them. The wait for that pod is better with the ordinals up than with them down.
func (w Steps) shared(all []corev1.Pod, m plans.StepContext) string {
	for o := range m.Ordinals.All() {
		others := slices.DeleteFunc(slices.Clone(all), func(p corev1.Pod) bool { return p.Name == w.Plan.Pod(m.From, o) })
		for _, c := range w.Plan.Moved() {
			claim := w.Plan.ClaimName(m.From, c.Template, o)
			if users := storage.Users(others, claim); users != "" {
				return fmt.Sprintf("claim %s of %s is also mounted by pod %s; no ordinal is scaled down until that pod is gone: wait for it or delete it", claim, w.Plan.On(m.From), users)
			}
		}
	}
	return ""
}

// Grow adds the wave to the range of the side that receives it. BEFORE that, the other side's range is
// without the wave and its pods are gone, both read live (S1).
func (w Steps) Grow(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if s, err := arrivalOf(w.Pair).starting(ctx, m); err != nil {
		return s, err
	} else if s.Standing == plans.During {
		return arrivalOf(w.Pair).unlessBack(ctx, m, s)
	}
	set, stop, err := rangesOf(w.Pair).guarded(ctx, m, m.To())
	if err != nil || stop != nil {
		return orEmpty(stop), err
	}
	switch plans.SliceOf(set) {
	case w.Plan.Slice(m.To(), m.Ordinals, false):
		if written(m, set) {
			return rangesOf(w.Pair).strange(m.To(), set, rangesOf(w.Pair).either(m, m.To(), set)), nil
		}
		return arrivalOf(w.Pair).take(ctx, m, set)
	case w.Plan.Slice(m.To(), m.Ordinals, true):
		if !m.Began && !m.Unsure() {
			return rangesOf(w.Pair).strange(m.To(), set, rangesOf(w.Pair).either(m, m.To(), set)), nil
		}
		s, err := arrivalOf(w.Pair).arrived(ctx, m, set)
		if err != nil || s.Standing == plans.Conflict {
			return s, err
		}
		return arrivalOf(w.Pair).unlessBack(ctx, m, s)
	default:
		return rangesOf(w.Pair).strange(m.To(), set, rangesOf(w.Pair).either(m, m.To(), set)), nil
	}
}

// arrival adds a wave to the set that receives it, and follows its pods until they are available.
type arrival struct{ clusters.Pair }

func arrivalOf(w clusters.Pair) arrival { return arrival{w} }

// unlessBack returns s, or stops where the side that has released the wave has it in its range again: two pods have
// one name then, and one disk (S1). The second one may keep the first from ever becoming Ready.
func (w arrival) unlessBack(ctx context.Context, m plans.StepContext, s plans.Observation) (plans.Observation, error) {
	other, err := w.SpecOnly().Set(ctx, m.From)
	if err != nil {
		return plans.Observation{}, err
	}
	why := rangesOf(w.Pair).again(m.From, other, m.Ordinals)
	if why == "" {
		return s, nil
	}
	return plans.Stop(reasons.OrdinalsChanged, why), nil
}

// take returns the write that adds the wave, if it has left the other side for good and has its volumes here.
func (w arrival) take(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet) (plans.Observation, error) {
	if why, err := w.otherHas(ctx, m); err != nil || why != "" {
		return plans.Stop(reasons.OrdinalsChanged, why), err
	}
	if why, err := w.empty(ctx, m); err != nil || why != "" {
		return plans.Stop(reasons.BindingBroken, why), err
	}
	if s, err := storage.Detached(ctx, w.Plan, w.On, m); err != nil || s.Standing != plans.After {
		return s.In(plans.HandingOver).Idly(), err
	}
	if s, err := storage.Strange(ctx, w.Plan, w.On, m.To(), m.Ordinals); err != nil || s.Standing != plans.After {
		return s.In(plans.HandingOver).Idly(), err // it came after the claim: two pods would have one disk (S20)
	}
	return rangesOf(w.Pair).resize(m, m.To(), set, true, plans.Undo{}), nil
}

// starting waits for pods that are coming up. If a pod is not, the set must be read to find the cause.
func (w arrival) starting(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if !m.Began {
		return plans.Done(), nil
	}
	for o := range m.Ordinals.All() {
		pod, err := w.MayBeMissing().Pod(ctx, m.To(), o) // what no watch has reported yet is waited for
		if err != nil || pod == nil || pod.DeletionTimestamp != nil {
			return plans.Done(), err
		}
		owner := metav1.GetControllerOf(pod)
		if owner == nil || owner.Name != w.Plan.On(m.To()).Name {
			return plans.Done(), nil
		}
		if Ready(pod) != "" {
			span := plans.Attaching
			if pod.Status.Phase == corev1.PodRunning {
				span = plans.Starting
			}
			return w.comes(m, o, pod).In(span), nil
		}
	}
	return plans.Done(), nil
}

// comes waits for a pod. A pod that exists depends on its scheduler, its node and its application.
func (w arrival) comes(m plans.StepContext, ordinal int32, pod *corev1.Pod) plans.Observation {
	s := plans.Wait(reasons.PodNotReady, fmt.Sprintf("pod %s of %s %s", w.Plan.Pod(m.To(), ordinal), w.Plan.On(m.To()), Ready(pod)))
	s.Idle = pod != nil
	return s
}

// missing adds to the wait for a pod what the controller of its set says about it, once the controller has seen the range
// and has not created the pod. Nothing wakes the engine when the controller says it.
func (w arrival) missing(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, s plans.Observation) plans.Observation {
	if s.Again = unmadeAgain; set.Status.ObservedGeneration >= set.Generation {
		if why := w.unmade(ctx, m.To(), set); why != "" {
			s.Reason += ": " + why
		}
	}
	return s
}

// otherHas returns the reason why an ordinal is still, or again, on the side that it has left, or "".
func (w arrival) otherHas(ctx context.Context, m plans.StepContext) (string, error) {
	other, err := w.SpecOnly().Set(ctx, m.From)
	if err != nil {
		return "", err
	}
	if why := rangesOf(w.Pair).again(m.From, other, m.Ordinals); why != "" {
		return why, nil
	}
	for o := range m.Ordinals.All() {
		pod, err := w.Pod(ctx, m.From, o)
		if err != nil {
			return "", err
		}
		if pod != nil {
			return fmt.Sprintf("pod %s of %s exists again; delete it", pod.Name, w.Plan.On(m.From)), nil
		}
	}
	return "", nil
}

// empty returns the reason why a pod would not find its data, or "": the set's controller creates a claim
// that is missing, and the claim gets a new and empty volume (S5).
func (w arrival) empty(ctx context.Context, m plans.StepContext) (string, error) {
	for o := range m.Ordinals.All() {
		vols, why, err := storage.Volumes(ctx, w.Plan, w.On, m.To(), o)
		if err != nil || why != "" {
			return why, err
		}
		if !m.InFlight() {
			continue
		}
		for i, v := range m.Flight.Of(o) {
			if i >= len(vols) || vols[i].Name != v.Name || !storage.SameDisk(vols[i].Handle, v.Handle) {
				return fmt.Sprintf("claim %s of %s is not bound to volume %s", w.Plan.ClaimName(m.To(), v.Template, o), w.Plan.On(m.To()), v.Name), nil
			}
		}
	}
	return "", nil
}

// written reports whether the current step has already written the set, in this very epoch. If the range is
// nevertheless as it was before the step, another writer has set it back (S12).
func written(m plans.StepContext, set *appsv1.StatefulSet) bool {
	have, ok := plans.Stamped(set)
	return ok && have == m.Stamp
}

// again describes an ordinal of a wave that is in the range from which it was removed, or returns "".
func (w ranges) again(side plans.Side, set *appsv1.StatefulSet, wave plans.Slice) string {
	if set == nil {
		return ""
	}
	for o := range wave.All() {
		if plans.SliceOf(set).Has(o) {
			return fmt.Sprintf("%s has ordinal %d in its range again (%s, written by %s); take it out", w.Plan.On(side).Set(), o, plans.SliceOf(set), plans.Writer(set, "spec", "replicas"))
		}
	}
	return ""
}

// Outside stops a step for ordinals that are again in the range of the side that released them: their pods
// and claims are then not ours to touch (S6). A step that touches nothing continues, unless it is a Vacate
// that lets the next step begin, or that waits for a pod which no controller deletes.
func (w Steps) Outside(look plans.Look) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		s, err := look(ctx, m)
		lets := s.Standing == plans.During || s.Standing == plans.After
		if m.Op.Frees() {
			lets = s.Standing == plans.During && s.Idle
		}
		if err != nil || lets {
			return s, err
		}
		set, err := w.SpecOnly().Set(ctx, m.From)
		if err != nil {
			return plans.Observation{}, err
		}
		if why := rangesOf(w.Pair).again(m.From, set, m.Ordinals); why != "" {
			return plans.Stop(reasons.OrdinalsChanged, why), nil
		}
		return s, nil
	}
}

// arrived waits until the pods of the wave are available on the side that receives it.
func (w arrival) arrived(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet) (plans.Observation, error) {
	pods := map[int32]*corev1.Pod{}
	for o := range m.Ordinals.All() {
		pod, err := w.MayBeMissing().Pod(ctx, m.To(), o)
		if err != nil {
			return plans.Observation{}, err
		}
		if pod != nil && !metav1.IsControlledBy(pod, set) {
			return plans.Stop(reasons.PodForeign, fmt.Sprintf("pod %s of %s does not belong to the set; delete it", pod.Name, w.Plan.On(m.To()))), nil
		}
		if Ready(pod) != "" {
			s := w.comes(m, o, pod)
			if pod == nil {
				s = w.missing(ctx, m, set, s)
			}
			return w.inOrder(ctx, m, o, set, s)
		}
		pods[o] = pod
	}
	if set.Spec.MinReadySeconds > 0 {
		tally, err := count(ctx, w.Pair, m.To(), set, m.Ordinals)
		if err != nil {
			return plans.Observation{}, err
		}
		if set.Status.ObservedGeneration < set.Generation || tally.early > 0 {
			return plans.Wait(reasons.PodNotAvailable, fmt.Sprintf("%s of %s is Ready, waiting until it is available (minReadySeconds %d)", w.Plan.Pods(m.Ordinals), w.Plan.On(m.To()), set.Spec.MinReadySeconds)).Idly(), nil
		}
	}
	for o := range m.Ordinals.All() {
		if why, err := dns.Missing(ctx, w.Plan, w.On, m.To(), pods[o], o); err != nil || why != "" {
			return plans.Wait(reasons.NameNotPublished, why), err
		}
	}
	return available(set, pods), nil
}

// available returns the observation of a wave that has arrived, with what is reported of its pods.
func available(set *appsv1.StatefulSet, pods map[int32]*corev1.Pod) plans.Observation {
	done := plans.Done()
	done.Nodes = map[int32]string{}
	for o, pod := range pods {
		done.Nodes[o] = pod.Spec.NodeName
		if at := readySince(pod); at.After(done.Available) {
			done.Available = at
		}
	}
	if !done.Available.IsZero() {
		done.Available = done.Available.Add(time.Duration(set.Spec.MinReadySeconds) * time.Second)
	}
	return done
}

// resize returns the write that gives a side its range with or without the wave: start and
// replicas in ONE request (S7).
func (w ranges) resize(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet, has bool, undo plans.Undo) plans.Observation {
	slice := w.Plan.Slice(side, m.Ordinals, has)
	next := set.DeepCopy()
	next.Spec.Replicas = &slice.Replicas
	if slice.Start != 0 || next.Spec.Ordinals != nil {
		next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: slice.Start}
	}
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("%s: StatefulSet %s: %s -> %s", side, set.Name, plans.SliceOf(set), slice),
		undo, func(ctx context.Context) error { return writes.Change(ctx, w.On[side], set, next) })
}

// strange stops at a range that neither we nor the plan can explain (S12).
func (w ranges) strange(side plans.Side, set *appsv1.StatefulSet, expected string) plans.Observation {
	have := plans.SliceOf(set)
	return plans.Stop(reasons.OrdinalsChanged, fmt.Sprintf("%s has the ordinals %s (start %d), expected %s; replicas were last written by %s; stop that writer and set them back",
		w.Plan.On(side).Set(), have, have.Start, expected, plans.Writer(set, "spec", "replicas")))
}

// either returns the ranges that a set may have while a wave leaves or arrives, without the one that it has. Before that
// the wave is where it was.
func (w ranges) either(m plans.StepContext, side plans.Side, set *appsv1.StatefulSet) string {
	with, without := w.Plan.Slice(side, m.Ordinals, true), w.Plan.Slice(side, m.Ordinals, false)
	switch have := plans.SliceOf(set); {
	case !m.Began && !m.Unsure() && side == m.From:
		return with.String()
	case !m.Began && !m.Unsure(), have == with:
		return without.String()
	case have == without:
		return with.String()
	}
	return with.String() + " or " + without.String()
}

func orEmpty(s *plans.Observation) plans.Observation {
	if s == nil {
		return plans.Observation{}
	}
	return *s
}
