package sets

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// stranded looks after the pods of a wave that are outside the range of their set, and that the set's controller does
// not come to. It deletes them in the controller's place.
type stranded struct {
	Steps
	now func() time.Time
	// denied are the pods that this process must not delete.
	denied map[types.UID]denial
}

// denial is the answer to a deletion that is not allowed.
type denial struct {
	at  time.Time
	why string
}

// deniedFor is how long a denial counts: rights may be granted meanwhile.
const deniedFor = time.Minute

// Tended lets the looks that wait for the controller of a set to delete the pods of a wave delete them themselves, where
// the controller does not come to them (holds). Otherwise a plan whose set is OrderedReady would wait for ever: for a pod
// that nothing makes available, with the wave in flight. Vacate waits for the side that the wave leaves, and Tighten for
// the one that gets it back, where the plan was reversed.
//
// It deletes no pod of a range: the set is read after the pod, and the range takes the ordinal back only once that pod
// is gone. So a deletion that arrives late reaches no other pod (S6, S9). now is the clock of this process.
func (w Steps) Tended(now func() time.Time, tighten, vacate plans.Look) (tended, vacated plans.Look) {
	d := stranded{w, now, map[types.UID]denial{}}
	return d.look(reasons.PodLeaving, plans.StepContext.To, tighten), d.look(reasons.PodTerminating, releases, vacate)
}

// releases returns the side that a wave leaves.
func releases(m plans.StepContext) plans.Side { return m.From }

// look tends the pods of a side's wave where a look waits for this reason.
func (d stranded) look(id reasons.ID, side func(plans.StepContext) plans.Side, look plans.Look) plans.Look {
	return func(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
		s, err := look(ctx, m)
		if err != nil || s.Standing != plans.During || s.ID != id || s.Idle {
			return s, err
		}
		return d.tend(ctx, m, side(m), s)
	}
}

// tend returns the deletion of the next pod of the wave, or why it has to wait. waits is the wait for the controller.
func (d stranded) tend(ctx context.Context, m plans.StepContext, side plans.Side, waits plans.Observation) (plans.Observation, error) {
	pods, err := d.wave(ctx, m, side)
	if err != nil {
		return plans.Observation{}, err
	}
	seen, err := d.Live().Set(ctx, side) // AFTER the pods
	set := seen.Object()
	if err != nil || set == nil || !m.Stamp.Mine(set) || set.Status.ObservedGeneration < set.Generation {
		return waits, err
	}
	ordinal, pod := next(m.Ordinals, pods)
	if pod == nil || !metav1.IsControlledBy(pod, set) || rangesOf(d.Pair).again(side, set, m.Ordinals) != "" {
		return waits, nil
	}
	why, err := d.holds(ctx, side, set, ordinal, pods)
	if err != nil || why == "" {
		return waits, err
	}
	if stays, err := d.oneTooMany(ctx, m, side, set, pod); err != nil || stays != "" {
		waits.ID, waits.Reason = reasons.PodHeld, fmt.Sprintf("pod %s of %s is outside the range of its set, and is Ready: the set's controller deletes it once every other pod is available, and pod %s; %s", pod.Name, d.Plan.On(side), why, stays)
		return waits, err
	}
	if no, ok := d.denied[pod.UID]; ok && d.now().Sub(no.at) < deniedFor {
		ref := d.Plan.On(side)
		waits.ID, waits.Reason = reasons.PodStranded, fmt.Sprintf("pod %s of %s is outside the range of its set, whose controller does not come to it: pod %s; this program may not delete it (%s): kubectl --context %s -n %s delete pod %s",
			pod.Name, ref, why, no.why, ref.Context, ref.Namespace, pod.Name)
		return waits, nil
	}
	return plans.Write(fmt.Sprintf("%s: delete pod %s, which is outside the range of its set: the set's controller waits, as pod %s", side, pod.Name, why), waits.Undo,
		func(ctx context.Context) error { return d.remove(ctx, side, pod, seen) }), nil
}

// wave returns the pods of the wave that exist on a side, by their ordinals.
func (d stranded) wave(ctx context.Context, m plans.StepContext, side plans.Side) (map[int32]*corev1.Pod, error) {
	pods := map[int32]*corev1.Pod{}
	for o := range m.Ordinals.All() {
		seen, err := d.Live().Pod(ctx, side, o)
		if err != nil {
			return nil, err
		}
		if pod := seen.Object(); pod != nil {
			pods[o] = pod
		}
	}
	return pods, nil
}

// remove deletes exactly the pod that was seen, with its own grace period.
func (d stranded) remove(ctx context.Context, side plans.Side, pod *corev1.Pod, of reads.Seen[*appsv1.StatefulSet]) error {
	err := writes.DeletePod(ctx, d.On[side], pod, of)
	if apierrors.IsForbidden(err) {
		d.denied[pod.UID] = denial{d.now(), err.Error()}
		return nil // the next look tells what to do
	}
	return err
}

// next returns the highest pod of a wave that is not being deleted, or nil: the controller begins with it too.
func next(wave plans.Slice, pods map[int32]*corev1.Pod) (ordinal int32, pod *corev1.Pod) {
	for o := wave.End() - 1; o >= wave.Start; o-- {
		if pod := pods[o]; pod != nil && pod.DeletionTimestamp == nil {
			return o, pod
		}
	}
	return 0, nil
}

// holds returns why the controller of a set does not delete the pod of an ordinal outside the range, or "" if it will. It
// makes the missing pods of the range first, and goes no further while it cannot. In order it also waits until every
// pod of the range is available. Then it deletes those outside one after the other, the highest first, and one that is
// down only if no lower one is.
func (d stranded) holds(ctx context.Context, side plans.Side, set *appsv1.StatefulSet, ordinal int32, wave map[int32]*corev1.Pod) (string, error) {
	all, err := d.Pods(ctx, side, set)
	if err != nil {
		return "", err
	}
	ordered := set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for o := range plans.SliceOf(set).All() {
		name := d.Plan.Pod(side, o)
		if pod := all[name]; pod == nil || ordered && Ready(pod) != "" {
			return name + " " + Ready(pod), nil
		}
	}
	if !ordered || Ready(wave[ordinal]) == "" {
		return "", nil
	}
	lower := ""
	for o, pod := range wave {
		if o > ordinal {
			return "", nil // it is terminating, and the controller waits for its end
		}
		if o < ordinal && Ready(pod) != "" {
			lower = fmt.Sprintf("%s, which goes too, %s", pod.Name, Ready(pod))
		}
	}
	return lower, nil
}

// oneTooMany returns what a pod waits for that serves, and whose end would leave fewer than may be available (S2), or
// "". Its wave was scaled down when it might go: another ordinal went down since.
func (d stranded) oneTooMany(ctx context.Context, m plans.StepContext, side plans.Side, set *appsv1.StatefulSet, pod *corev1.Pod) (string, error) {
	if Ready(pod) != "" {
		return "", nil
	}
	here, err := count(ctx, d.Pair, side, set, m.Ordinals)
	if err != nil {
		return "", err
	}
	down := int32(len(here.down)) //nolint:gosec // pods of one set
	there, err := d.Live().Set(ctx, side.Other())
	if err != nil {
		return "", err
	}
	if other := there.Object(); other != nil {
		there, err := count(ctx, d.Pair, side.Other(), other, m.Ordinals)
		if err != nil {
			return "", err
		}
		down += int32(len(there.down)) //nolint:gosec // pods of one set
	}
	all := down + m.Ordinals.Replicas
	switch {
	case down == 0, m.From == plans.Destination && all <= m.Allowed:
		return "", nil
	case m.From == plans.Destination:
		return fmt.Sprintf("without it %d ordinals would be unavailable, and at most %d may be: it stays until that one is available, or until the user allows more with --max-unavailable %d", all, m.Allowed, all), nil
	}
	return fmt.Sprintf("without it %d ordinals would be unavailable, and at most %d may be: it stays until that one is available; `abort` goes back", all, m.Allowed), nil
}

// inOrder adds to the wait for the pod of an ordinal that there is none of because of another one: in order, the set's
// controller makes it when all pods below it are available.
func (w arrival) inOrder(ctx context.Context, m plans.StepContext, ordinal int32, set *appsv1.StatefulSet, waits plans.Observation) (plans.Observation, error) {
	if waits.Idle || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return waits, nil
	}
	all, err := w.Pods(ctx, m.To(), set)
	if err != nil {
		return plans.Observation{}, err
	}
	for o := range plans.SliceOf(set).All() {
		if why := Ready(all[w.Plan.Pod(m.To(), o)]); o < ordinal && !m.Ordinals.Has(o) && why != "" {
			waits.Reason += fmt.Sprintf("; its set makes it when all pods below it are available, and pod %s %s", w.Plan.Pod(m.To(), o), why)
			break
		}
	}
	return waits, nil
}
