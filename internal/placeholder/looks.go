package placeholder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// deadline is how long a placeholder runs at most, in seconds, if no process takes it away: the process that made it may have
// died, and its plan with it.
const deadline = 2 * 60 * 60

// Steps are the looks of the placeholders of a plan. If the process dies anywhere between them, a placeholder is left. The
// next process finds it by its name.
type Steps struct {
	clusters.Pair

	// Overtaken, if set, reports whether another process has taken the plan over.
	Overtaken func(context.Context) bool
	// Now is the clock, or nil where none is known.
	Now func() time.Time
	// Without is what is known of sides where the program that waits cannot be had; nil remembers nothing.
	Without *Without
	// Crowded is what is known of placeholders that a quota refuses; with nil they are not sent again.
	Crowded *Crowded
	// Anchors is what is known of anchors; with nil none are made.
	Anchors *Anchors
}

// Through returns the same looks through other clients.
func (s Steps) Through(on clusters.Clusters) Steps {
	s.On = on
	return s
}

// Prepare is the look that takes the places of a wave on the side that receives it, while the wave is still up. It is After
// when each placeholder proves what the plan wants proven.
func (s Steps) Prepare(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if !s.Plan.Placeholder.Used() || m.Skips.Places {
		return plans.Done(), nil
	}
	set, err := s.Set(ctx, m.To())
	if err != nil || set == nil {
		return plans.Done(), err // the looks of the sets report it
	}
	var all []plans.Observation
	for o := range m.Ordinals.All() {
		one, err := s.take(ctx, m, set, o)
		if err != nil {
			return plans.Observation{}, err
		}
		all = append(all, one)
	}
	out := plans.Together(all)
	out.Unreached = 0
	for _, one := range all {
		out.Placed = append(out.Placed, one.Placed...)
		out.Unreached += one.Unreached
	}
	return out, nil
}

// take looks at the place of one ordinal.
func (s Steps) take(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32) (plans.Observation, error) {
	tag, err := plans.Fingerprinted(build.Pod(set, ordinal).Spec)
	if err != nil {
		return plans.Observation{}, err
	}
	if needed, err := s.needed(ctx, m, ordinal); err != nil || !needed {
		return plans.Done(), err
	}
	pod, err := s.placeholder(ctx, m.To(), ordinal)
	if err != nil {
		return plans.Observation{}, err
	}
	if pod == nil {
		return s.make(ctx, m, set, tag, ordinal)
	}
	return s.judge(ctx, m, set, pod, tag, ordinal)
}

// needed reports whether an ordinal waits for its place. One that goes back, and is down where it is, has nothing to lose
// (S18).
func (s Steps) needed(ctx context.Context, m plans.StepContext, ordinal int32) (bool, error) {
	if m.From == plans.Source && !m.Unsure() {
		return true, nil
	}
	pod, err := s.Pod(ctx, m.From, ordinal)
	return pod != nil && pod.DeletionTimestamp == nil && clusters.IsReady(pod), err
}

// judge says how the place of an ordinal stands that a placeholder has.
func (s Steps) judge(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, pod *corev1.Pod, tag string, ordinal int32) (plans.Observation, error) {
	what := s.called(m.To(), pod.Name)
	if !m.Stamp.Mine(pod) {
		return plans.Stop(reasons.PlaceTaken, fmt.Sprintf("%s is not of this plan, and has the name of the placeholder of %s; delete or rename it and resume", what, s.Plan.Pod(m.From, ordinal))), nil
	}
	if barred := m.Stamp.Barred(pod); barred != "" {
		return plans.Stop(reasons.BelongsElsewhere, what+" "+barred), nil
	}
	if pod.DeletionTimestamp != nil {
		return plans.Wait(reasons.PlaceNotReady, what+" is being deleted; it is recreated when it is gone").Idly(), nil
	}
	if why := cmp.Or(estranged(pod), member(pod, set), silenced(s.Plan, pod)); why != "" {
		return plans.Stop(reasons.PlaceTaken, fmt.Sprintf("%s %s. See to that this does not happen, delete the pod if it is still there, and resume", what, why)), nil
	}
	if lost, err := s.lost(ctx, m.To(), pod); err != nil || lost != "" {
		return s.remove(m.To(), pod, lost), err
	}
	if pod.Annotations[TagAnnotation] != tag {
		return s.remove(m.To(), pod, "since it was made of another pod template"), nil
	}
	return s.prove(ctx, m, set, ordinal, pod)
}

// prove says what follows from what a placeholder of the plan proves.
func (s Steps) prove(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32, pod *corev1.Pod) (plans.Observation, error) {
	proof := Read(pod)
	s.Without.learn(m.To(), pod.Annotations[WithoutAnnotation])
	switch {
	case proof.Unbrought && !program(s.Plan).needed() && s.Without.learn(m.To(), proof.Lacks):
		return s.remove(m.To(), pod, "and make it again without the program that waits, since "+proof.Lacks), nil
	case proof.Ended:
		return s.remove(m.To(), pod, "since "+proof.Lacks), nil
	case proof.Unasked && proof.Stuck:
		if other, err := s.asksOthers(ctx, m, set, ordinal, pod); err != nil || other {
			return s.remove(m.To(), pod, "since others are to be reached from there now"), err
		}
	case proof.Has(s.Plan.Placeholder.Proof):
		out, err := s.drawn(ctx, m, set, ordinal, pod)
		out.Placed = []plans.Placed{{Ordinal: ordinal, Node: proof.Node, Seconds: Took(pod, s.Plan.Placeholder.Proof).Seconds(), Reached: proof.Reached, Clock: proof.Clock}}
		return out, err
	}
	wait := plans.Wait(reasons.PlaceNotReady, Waits(s.Plan, m.Step, ordinal, proof.Words())).Idly()
	wait.Unreached = proof.Unreached
	return wait, nil
}

// drawn sees to it that the pod of an ordinal goes where its place is proven, as far as one can: by an anchor there, and without
// one by the images that the node has.
func (s Steps) drawn(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, ordinal int32, pod *corev1.Pod) (plans.Observation, error) {
	out, there, err := s.anchor(ctx, m, set, ordinal, pod)
	if err != nil || there || out.Standing != plans.After {
		return out, err
	}
	return s.known(ctx, m, pod)
}

// make returns the write of a placeholder.
func (s Steps) make(ctx context.Context, m plans.StepContext, set *appsv1.StatefulSet, tag string, ordinal int32) (plans.Observation, error) {
	p := s.Plan
	if first, err := s.Crowded.first(ctx, s, m, p.Place(m.To(), ordinal)); err != nil || first.Standing != plans.After {
		return first, err
	}
	place := of(p, m.To(), set, ordinal)
	place.Tag, place.Owner = tag, clusters.OwnerOf(p.On(m.To()), set)
	var err error
	if place.Reach, err = storage.Reach(ctx, p, s.On, m, ordinal); err != nil {
		return plans.Observation{}, err
	}
	if err := s.beside(ctx, m.To(), &place); err != nil {
		return plans.Observation{}, err
	}
	if why := place.unaskable(); why != "" {
		return plans.Stop(reasons.PlaceTaken, fmt.Sprintf("the placeholder of %s cannot ask what must be reached: %s", p.Pod(m.From, ordinal), why)), nil
	}
	if err := s.asks(ctx, m, set, ordinal, &place); err != nil {
		return plans.Observation{}, err
	}
	place = s.sparing(m.To(), place)
	pod, err := Make(place)
	if err != nil {
		return plans.Stop(reasons.PlaceTaken, err.Error()), nil
	}
	m.Stamp.Put(pod)
	how := ""
	if place.Without != "" {
		how = ", without the program that waits"
	}
	return plans.Write(fmt.Sprintf("%s: make placeholder %s for %s%s", m.To(), pod.Name, p.Pod(m.From, ordinal), how), plans.Undo{}, func(ctx context.Context) error {
		return s.create(ctx, m, place, pod)
	}), nil
}

// of returns what a plan alone says of a placeholder.
func of(p *plans.Plan, side plans.Side, set *appsv1.StatefulSet, ordinal int32) Place {
	return Place{
		Pod: build.Pod(set, ordinal), Name: p.Place(side, ordinal), Plan: p.Name, Set: set.Name, Like: set.Spec.Selector, Deadline: deadline,
		PriorityClass: p.Placeholder.PriorityClass, Program: program(p),
	}
}

// program returns what the containers of the placeholders of a plan run.
func program(p *plans.Plan) Program {
	return Program{Image: p.Placeholder.Program(), Reach: p.Placeholder.Reach}
}

// Tried returns the placeholder of an ordinal for a dry run, before the plan has begun: without an owner, and without the
// account of the pod, neither of which may be there yet. It is without the program too, if it may be made so.
func Tried(p *plans.Plan, side plans.Side, set *appsv1.StatefulSet, ordinal int32) (*corev1.Pod, error) {
	place := of(p, side, set, ordinal)
	if !place.Program.needed() {
		place.Program = Program{}
	}
	pod, err := Make(place)
	if err != nil {
		return nil, err
	}
	pod.Spec.ServiceAccountName = ""
	return pod, nil
}

// beside reads what the rules of the set are about, if it has any.
func (s Steps) beside(ctx context.Context, side plans.Side, p *Place) error {
	together := p.Pod.Spec.Affinity != nil && p.Pod.Spec.Affinity.PodAffinity != nil && len(p.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
	spread := slices.ContainsFunc(p.Pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	})
	if !together && !spread {
		return nil
	}
	var all corev1.PodList
	if err := s.On[side].List(ctx, &all, client.InNamespace(p.Pod.Namespace)); err != nil {
		return fmt.Errorf("listing the pods of %s: %w", s.Plan.On(side), err)
	}
	ours := labels.SelectorFromSet(labels.Set{Label: p.Plan, SetLabel: p.Set})
	var peers, others []corev1.Pod
	for _, pod := range all.Items {
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		switch {
		case ours.Matches(labels.Set(pod.Labels)):
			others = append(others, pod)
		case kind(pod.Labels) != anAnchor:
			peers = append(peers, pod)
		}
	}
	p.Others = len(others) > 0
	if together {
		p.Alone = !slices.ContainsFunc(peers, func(pod corev1.Pod) bool { return named(p.Pod, pod) })
	}
	if !spread {
		return nil
	}
	var nodes corev1.NodeList
	if err := s.On[side].List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing the nodes of the %s: %w", side, err)
	}
	var err error
	p.Full, err = Full(p.Pod, nodes.Items, peers, others)
	return err
}

// named reports whether every term of affinity of a pod is about the other one.
func named(pod *corev1.Pod, other corev1.Pod) bool {
	for _, t := range pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		s, err := metav1.LabelSelectorAsSelector(scheduling.Meant(pod.Labels, t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys))
		if err != nil || !s.Matches(labels.Set(other.Labels)) {
			return false
		}
	}
	return true
}

// First returns a look that gives the places free before it looks.
func (s Steps) First(look plans.Look) plans.Look {
	if !s.Plan.Placeholder.Used() {
		return look
	}
	refused := Refusals{}
	return sets.InTurn(func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		free, err := s.Yield(ctx, m)
		return refused.Given(free), err
	}, look)
}

// Yield is the look that gives the place of each ordinal free when the ordinal's pod has gone on its old side: the room is
// free exactly when it is needed. Nothing waits for the kubelet: a placeholder has nothing to lose.
func (s Steps) Yield(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	var all []plans.Observation
	for o := range m.Ordinals.All() {
		ref := s.Plan.On(m.From)
		old, err := clusters.Get[corev1.Pod](ctx, s.On[m.From], ref.Namespace, s.Plan.Pod(m.From, o), ref.String())
		if err != nil {
			return plans.Observation{}, err
		}
		if old != nil {
			continue
		}
		pod, err := s.placeholder(ctx, m.To(), o)
		if err != nil {
			return plans.Observation{}, err
		}
		if pod == nil || pod.DeletionTimestamp != nil || !m.Stamp.Mine(pod) || estranged(pod) != "" {
			continue
		}
		all = append(all, s.remove(m.To(), pod, "since "+s.Plan.Pod(m.To(), o)+" takes its place"))
	}
	return plans.Together(all), nil
}

// Clear is the look that takes all placeholders of the plan away (S15).
func (s Steps) Clear(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if !s.Plan.Placeholder.Used() {
		return plans.Done(), nil
	}
	var all, others []plans.Observation
	for _, side := range plans.Sides() {
		var list corev1.PodList
		ref := s.Plan.On(side)
		if err := s.On[side].List(ctx, &list, client.InNamespace(ref.Namespace), client.MatchingLabels{Label: s.Plan.Name}); err != nil {
			return plans.Observation{}, fmt.Errorf("listing the placeholders of %s: %w", ref, err)
		}
		for k := range list.Items {
			have, _ := plans.Stamped(&list.Items[k])
			pod := &list.Items[k]
			if pod.DeletionTimestamp != nil || !m.Stamp.Mine(pod) || have.Epoch > m.Stamp.Epoch {
				continue
			}
			if why := estranged(pod); why != "" {
				others = append(others, plans.Stop(reasons.PlaceTaken, fmt.Sprintf("%s %s of %s %s, so it is not deleted. Delete it and resume", kind(pod.Labels), pod.Name, ref, why)))
				continue
			}
			all = append(all, s.remove(side, pod, "which is not needed any more"))
		}
	}
	if len(all) == 0 {
		all = others // only when all others are gone
	}
	return plans.Together(all), nil
}

// Removable sends the deletions of the placeholders of a wave as dry runs: what refuses them is found before the wave leaves
// (S17).
func (s Steps) Removable(ctx context.Context, m plans.StepContext) error {
	if !s.Plan.Placeholder.Used() || m.Skips.Places {
		return nil
	}
	for o := range m.Ordinals.All() {
		pod, err := s.placeholder(ctx, m.To(), o)
		if err != nil {
			return err
		}
		if pod == nil || !m.Stamp.Mine(pod) {
			continue // the ordinal goes without it
		}
		if err := writes.TryDeletePlaceholder(ctx, s.On[m.To()], pod); writes.IgnoreAnswers(err) != nil {
			return fmt.Errorf("trying to delete %s: %w", s.called(m.To(), pod.Name), err)
		}
	}
	return nil
}

func (s Steps) placeholder(ctx context.Context, side plans.Side, ordinal int32) (*corev1.Pod, error) {
	ref := s.Plan.On(side)
	return clusters.Get[corev1.Pod](ctx, s.On[side], ref.Namespace, s.Plan.Place(side, ordinal), ref.String())
}

func (s Steps) remove(side plans.Side, pod *corev1.Pod, why string) plans.Observation {
	return plans.Write(fmt.Sprintf("%s: delete %s %s, %s", side, kind(pod.Labels), pod.Name, why), plans.Undo{}, func(ctx context.Context) error {
		return writes.DeletePlaceholder(ctx, s.On[side], pod, Label)
	})
}

func (s Steps) called(side plans.Side, name string) string {
	ref := s.Plan.On(side)
	return fmt.Sprintf("placeholder %s of %s", name, ref)
}
