package placeholder

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// A placeholder has nothing to lose. So it goes as soon as it may be in the way of anything (S28): of an ordinal that has no
// node, of a drain, of the ordinal whose place it has. And it goes when it is of no use: on the side that is left, on a node
// that takes no pods any more, and if it is of a plan that is over. A process that was overtaken may make one at any time.

// Tidy is the look that takes such placeholders away, at any step of a wave.
func (s Steps) Tidy(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if !s.Plan.Placeholder.Used() || !m.Moves() {
		return plans.Done(), nil
	}
	var all []plans.Observation
	due := sync.OnceValues(func() ([]owed, error) { return s.due(ctx, m) })
	for _, side := range plans.Sides() {
		pods, err := s.EveryPod(ctx, side)
		if err != nil {
			return plans.Observation{}, err
		}
		in := seen{side: side, pods: pods, due: due}
		for k := range pods {
			if pods[k].DeletionTimestamp != nil || estranged(&pods[k]) != "" {
				continue
			}
			if in.set == nil {
				if in.set, err = s.Set(ctx, side); err != nil || in.set == nil {
					return plans.Done(), err
				}
			}
			why, err := s.inTheWay(ctx, m, in, &pods[k])
			if err != nil {
				return plans.Observation{}, err
			}
			if why != "" {
				all = append(all, s.remove(side, &pods[k], why))
			}
		}
	}
	return plans.Together(all), nil
}

// seen is what one look has seen of a side.
type seen struct {
	side plans.Side
	set  *appsv1.StatefulSet
	pods []corev1.Pod
	due  func() ([]owed, error)
}

// pod returns the pod of a name, or nil.
func (in seen) pod(name string) *corev1.Pod {
	for k := range in.pods {
		if in.pods[k].Name == name {
			return &in.pods[k]
		}
	}
	return nil
}

// inTheWay returns why a placeholder or an anchor has to go, or "".
func (s Steps) inTheWay(ctx context.Context, m plans.StepContext, in seen, pod *corev1.Pod) (string, error) {
	have, stamped := plans.Stamped(pod)
	ordinal, named := s.ordinalOf(in.side, pod)
	switch {
	case !stamped, have.Plan == m.Stamp.Plan && (have.Epoch > m.Stamp.Epoch || !named):
		return "", nil
	case have.Plan != m.Stamp.Plan:
		if m.Stamp.Mine(in.set) && slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == in.set.UID }) {
			return fmt.Sprintf("of plan %s, which is over: the set is this plan's now", pod.Labels[Label]), nil
		}
		return "", nil
	case in.side == m.From:
		return "which is of no use on the side that is left", nil
	}
	taken := plans.SliceOf(in.set).Has(ordinal)
	if kind(pod.Labels) == anAnchor {
		return s.anchorInTheWay(ctx, m, in, pod, ordinal, taken)
	}
	if taken {
		return "since " + s.Plan.Pod(in.side, ordinal) + " takes its place", nil
	}
	return s.needless(ctx, in, pod)
}

// needless says that the node of a pod takes no pods any more, or that a pod which is due may need its room, or returns "".
func (s Steps) needless(ctx context.Context, in seen, pod *corev1.Pod) (string, error) {
	if why, err := s.lost(ctx, in.side, pod); err != nil || why != "" {
		return why, err
	}
	waits, err := in.due()
	if err != nil || len(waits) == 0 {
		return "", err
	}
	return "since " + waits[0].name + " has no node yet, and may need its room", nil
}

// anchorInTheWay is inTheWay of an anchor, whose ordinal its side has taken or not.
func (s Steps) anchorInTheWay(ctx context.Context, m plans.StepContext, in seen, pod *corev1.Pod, ordinal int32, taken bool) (string, error) {
	if !taken {
		if why, err := s.loose(ctx, m, in, ordinal); err != nil || why != "" {
			return why, err
		}
		return s.needless(ctx, in, pod)
	}
	if why, err := s.lost(ctx, in.side, pod); err != nil || why != "" {
		return why, err
	}
	waits, err := in.due()
	if err != nil {
		return "", err
	}
	return s.drawnOrHeld(in, ordinal, waits), nil
}

// loose says that an anchor has no place any more for an ordinal that is still up, or returns "".
func (s Steps) loose(ctx context.Context, m plans.StepContext, in seen, ordinal int32) (string, error) {
	if in.pod(s.Plan.Place(in.side, ordinal)) != nil {
		return "", nil
	}
	from, err := s.Set(ctx, m.From)
	if err != nil || from == nil || !plans.SliceOf(from).Has(ordinal) {
		return "", err
	}
	return "since the placeholder is gone, and " + s.Plan.Pod(m.From, ordinal) + " has not left", nil
}

// drawnOrHeld says that the pod of an ordinal has been drawn to its node, or that an anchor may keep a pod from coming, or
// returns "". An anchor takes no room, but a pod slot, and one of a quota.
func (s Steps) drawnOrHeld(in seen, ordinal int32, waits []owed) string {
	if pod := in.pod(s.Plan.Pod(in.side, ordinal)); pod != nil && pod.Spec.NodeName != "" {
		return "since " + pod.Name + " has a node"
	}
	for _, w := range waits {
		switch {
		case w.pod != nil && unscheduled(w.pod) != "":
			return "since " + w.name + " has no node: " + unscheduled(w.pod)
		case w.pod == nil && !w.later && s.Anchors != nil && s.Anchors.silent(w.name, s.now()):
			return "since " + w.name + " is not created"
		}
	}
	return ""
}

// ordinalOf returns the ordinal whose placeholder or anchor has a name on a side, and reports whether there is one.
func (s Steps) ordinalOf(side plans.Side, pod *corev1.Pod) (int32, bool) {
	for o := range s.Plan.Ordinals().All() {
		name := s.Plan.Place(side, o)
		if kind(pod.Labels) == anAnchor {
			name = plans.Anchor(s.Plan, side, o)
		}
		if name == pod.Name {
			return o, true
		}
	}
	return 0, false
}

// lost says that the node of a placeholder takes no pods any more, or returns "": its ordinal would not come up there, and a
// drain would have to wait for it.
func (s Steps) lost(ctx context.Context, side plans.Side, pod *corev1.Pod) (string, error) {
	if pod.Spec.NodeName == "" {
		return "", nil
	}
	node, err := clusters.Get[corev1.Node](ctx, s.On[side], "", pod.Spec.NodeName, s.Plan.On(side).String())
	switch {
	case err != nil:
		return "", err
	case node == nil:
		return "since node " + pod.Spec.NodeName + " is gone", nil
	case sets.IsDrained(node):
		return "since node " + node.Name + " is being drained", nil
	case !storage.NodeReady(node):
		return "since node " + node.Name + " is not Ready", nil
	}
	return "", nil
}

// Due returns a pod of the sets that is to come and has no node yet, in the cluster of the side that receives the wave of a
// step, or "": no placeholder may take the room that it needs. In a Move that is any ordinal. An Abort goes on while one that
// it does not wait for is down, so there it is one of the wave that comes up.
func (s Steps) Due(ctx context.Context, m plans.StepContext) (string, error) {
	all, err := s.due(ctx, m)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0].name, nil
}

// owed is a pod that is to come and has no node yet.
type owed struct {
	name string
	pod  *corev1.Pod // nil if it is not there
	// later reports that its set makes it when another one is ready.
	later bool
}

// due is Due of all of them.
func (s Steps) due(ctx context.Context, m plans.StepContext) (out []owed, err error) {
	if !s.Plan.Placeholder.Used() {
		return nil, nil
	}
	for _, side := range plans.Sides() {
		if side == m.From && !s.Plan.OneCluster() {
			continue
		}
		on, err := s.dueOn(ctx, m, side)
		if err != nil {
			return nil, err
		}
		out = append(out, on...)
	}
	return out, nil
}

// dueOn is due of the set of one side.
func (s Steps) dueOn(ctx context.Context, m plans.StepContext, side plans.Side) (out []owed, err error) {
	set, err := s.Set(ctx, side)
	if err != nil || set == nil {
		return nil, err
	}
	pods, err := s.EveryPod(ctx, side)
	if err != nil {
		return nil, err
	}
	in := seen{pods: pods}
	inTurn, first := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement, false
	for o := range s.Plan.Ordinals().All() {
		if !plans.SliceOf(set).Has(o) || !awaited(m, side, o) {
			continue
		}
		pod := in.pod(s.Plan.Pod(side, o))
		if pod == nil || pod.Spec.NodeName == "" {
			out = append(out, owed{name: "pod " + s.Plan.Pod(side, o) + " of " + s.Plan.On(side).String(), pod: pod, later: first})
		}
		first = first || inTurn && (pod == nil || !clusters.IsReady(pod))
	}
	return out, nil
}

// awaited reports whether a step counts on the pod of an ordinal that the range of a side has.
func awaited(m plans.StepContext, side plans.Side, ordinal int32) bool {
	wave := m.Ordinals.Has(ordinal)
	comes, stays := side == m.To() && m.Op.Enters() && wave, side != m.From || !wave
	return comes || stays && m.From == plans.Source
}

// estranged says that a placeholder is not this program's alone any more, or returns "". It is not deleted then: another
// controller counts it as one of its own, or keeps something in it.
func estranged(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return fmt.Sprintf("is controlled by %s %s, whose selector matches it", owner.Kind, owner.Name)
	}
	if pod.Labels[Label] == "" {
		return fmt.Sprintf("has lost its label %s, without which it is not deleted", Label)
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return fmt.Sprintf("mounts claim %s, which it was given when it was made", v.PersistentVolumeClaim.ClaimName)
		}
	}
	return ""
}

// member says that another writer has given a placeholder the labels by which the pods of a set are selected, or returns "".
func member(pod *corev1.Pod, set *appsv1.StatefulSet) string {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
		return ""
	}
	return fmt.Sprintf("was given labels by which the pods of the set are selected (%s)", selector)
}

// maxRefusals is how often the deletion of a placeholder is refused before an ordinal that is down goes on without it.
const maxRefusals = 5

// Refusals counts the deletions of placeholders that were refused. None of it matters after a crash.
type Refusals map[string]int

// Given returns an observation whose write is not sent again for ever: an ordinal that is down does not wait for it.
func (r Refusals) Given(s plans.Observation) plans.Observation {
	if s.Standing != plans.Before {
		return s
	}
	if r[s.Reason] >= maxRefusals {
		return plans.Done()
	}
	send := s.Write
	s.Write = func(ctx context.Context) error {
		err := send(ctx)
		if writes.IgnoreAnswers(err) != nil {
			r[s.Reason]++
		}
		return err
	}
	return s
}
