package simulation

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// faulty ends an image whose application never becomes ready.
const faulty = ":faulty"

// fails reports whether a pod has an image whose application never becomes ready.
func fails(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) > 0 && strings.HasSuffix(pod.Spec.Containers[0].Image, faulty)
}

// arrives notes which ordinals have been available in the range that has them now. What takes one down later is no wave.
func (w *world) arrives() {
	for o := range w.plan.Ordinals().All() {
		in := slices.IndexFunc(plans.Sides(), func(side plans.Side) bool { return w.slice(side).Has(o) })
		switch {
		case in < 0:
			delete(w.came, o)
		case w.available(plans.Sides()[in], o):
			w.came[o] = true
		}
	}
}

// absent returns the ordinals that are in neither range, or that the plan has handed over and waits for. It is empty between
// two waves.
func (w *world) absent() plans.Slice {
	if a, b := w.slice(plans.Source), w.slice(plans.Destination); b.Start > a.End() {
		return plans.Slice{Start: a.End(), Replicas: b.Start - a.End()}
	}
	step, _, _ := w.journal.Next(w.plan)
	if step.Op != plans.Grow && step.Op != plans.Verify && step.Op != plans.Relax {
		return plans.Slice{}
	}
	for o := range step.Ordinals.All() {
		if !w.came[o] && !w.available(plans.Source, o) && !w.available(plans.Destination, o) {
			return step.Ordinals
		}
	}
	return plans.Slice{}
}

// replaces is S2 for what rolls: while a wave is away, the controller of a set takes no pod down that serves beside it, unless a
// user has changed the updateStrategy of that set meanwhile.
func (w *world) replaces(set *appsv1.StatefulSet, pod *corev1.Pod) {
	o := ordinalOf(pod.Name)
	if w.plan == nil || !ready(pod) || !plans.SliceOf(set).Has(o) || w.loosened[set.UID] {
		return
	}
	if wave := w.absent(); wave.Replicas > 0 && !wave.Has(o) {
		w.fail("S2", "a rolling update takes %s of %s down beside %s, which is away", pod.Name, set.Namespace, wave)
	}
}

// loosens notes that a user has changed the updateStrategy of a set while a wave is away. What rolls then is the user's.
func (w *world) loosens(set *appsv1.StatefulSet) {
	if w.absent().Replicas > 0 {
		w.loosened[set.UID] = true
	}
}

// tightens forgets what a user has loosened, once no wave is away.
func (w *world) tightens() {
	if len(w.loosened) > 0 && w.absent().Replicas == 0 {
		clear(w.loosened)
	}
}
