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
	due := sync.OnceValues(func() (string, error) { return s.Due(ctx, m) })
	for _, side := range plans.Sides() {
		pods, err := s.EveryPod(ctx, side)
		if err != nil {
			return plans.Observation{}, err
		}
		pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || estranged(&p) != ""
		})
		if len(pods) == 0 {
			continue
		}
		set, err := s.Set(ctx, side)
		if err != nil || set == nil {
			return plans.Done(), err
		}
		for k := range pods {
			why, err := s.inTheWay(ctx, m, side, set, &pods[k], due)
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

// inTheWay returns why a placeholder has to go, or "". due is Due of the same look.
func (s Steps) inTheWay(ctx context.Context, m plans.StepContext, side plans.Side, set *appsv1.StatefulSet, pod *corev1.Pod, due func() (string, error)) (string, error) {
	have, stamped := plans.Stamped(pod)
	switch ordinal, named := s.ordinalOf(side, pod.Name); {
	case !stamped, have.Plan == m.Stamp.Plan && (have.Epoch > m.Stamp.Epoch || !named):
		return "", nil
	case have.Plan != m.Stamp.Plan:
		if m.Stamp.Mine(set) && slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == set.UID }) {
			return fmt.Sprintf("of plan %s, which is over: the set is this plan's now", pod.Labels[Label]), nil
		}
		return "", nil
	case side == m.From:
		return "which is of no use on the side that is left", nil
	case plans.SliceOf(set).Has(ordinal):
		return "since " + s.Plan.Pod(side, ordinal) + " takes its place", nil
	}
	if why, err := s.lost(ctx, side, pod); err != nil || why != "" {
		return why, err
	}
	waits, err := due()
	if err != nil || waits == "" {
		return "", err
	}
	return "since " + waits + " has no node yet, and may need its room", nil
}

// ordinalOf returns the ordinal whose placeholder has a name on a side, and reports whether there is one.
func (s Steps) ordinalOf(side plans.Side, name string) (int32, bool) {
	for o := range s.Plan.Ordinals().All() {
		if s.Plan.Place(side, o) == name {
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
	if !s.Plan.Placeholder.Used() {
		return "", nil
	}
	for _, side := range plans.Sides() {
		if side == m.From && !s.Plan.OneCluster() {
			continue
		}
		if due, err := s.dueOn(ctx, m, side); err != nil || due != "" {
			return due, err
		}
	}
	return "", nil
}

// dueOn is Due of the set of one side.
func (s Steps) dueOn(ctx context.Context, m plans.StepContext, side plans.Side) (string, error) {
	set, err := s.Set(ctx, side)
	if err != nil || set == nil {
		return "", err
	}
	pods, err := s.EveryPod(ctx, side)
	if err != nil {
		return "", err
	}
	placed := map[string]bool{}
	for k := range pods {
		placed[pods[k].Name] = pods[k].Spec.NodeName != ""
	}
	for o := range s.Plan.Ordinals().All() {
		wave := m.Ordinals.Has(o)
		comes, stays := side == m.To() && m.Op.Enters() && wave, side != m.From || !wave
		if (comes || stays && m.From == plans.Source) && plans.SliceOf(set).Has(o) && !placed[s.Plan.Pod(side, o)] {
			return "pod " + s.Plan.Pod(side, o) + " of " + s.Plan.On(side).String(), nil
		}
	}
	return "", nil
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
