package plans

import (
	"fmt"
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// While a wave is away, the rolling updates of both sets are pinned: a partition is above all of their ordinals. A new pod
// template then takes no pod down beside the wave (S2). The partition that a set had is on the set in the same write.

// PinnedAnnotation on a set whose rolling updates are pinned has the partition that it gets back.
const PinnedAnnotation = "stsmigrate.dev/pinned-partition"

// PausedAnnotation on a StatefulSet whose update a user has paused has the partition that it gets back (sets.PausedFrom).
const PausedAnnotation = "stsmigrate.dev/paused-partition"

// AboveAll is the partition of a set that is pinned. It protects every ordinal, also one that is added meanwhile, whether
// it is counted from the first one, as a StatefulSet does, or is an ordinal.
const AboveAll int32 = math.MaxInt32

// The words for a set that had no partition, and for one that had no block for rolling updates at all.
const (
	noPartition = "none"
	noBlock     = "default"
)

// Pinned reports whether the controller of a set replaces no pod for another template.
func Pinned(set *appsv1.StatefulSet) bool {
	_, noted := set.Annotations[PinnedAnnotation]
	return byHand(set) || noted && partitionOf(set) == AboveAll
}

// Others reports whether a set has ordinals outside a wave. Without them there is nothing to pin: whatever its controller
// replaces is of the wave, and a template that the user corrects for a wave that does not come up counts at once.
func Others(set *appsv1.StatefulSet, wave Slice) bool {
	for o := range SliceOf(set).All() {
		if !wave.Has(o) {
			return true
		}
	}
	return false
}

// PinChanged reports whether another writer has changed the partition, or the strategy, of a set that is pinned.
func PinChanged(set *appsv1.StatefulSet) bool {
	_, noted := set.Annotations[PinnedAnnotation]
	return noted && !Pinned(set)
}

// PinLost reports whether a set has the partition of one that is pinned, and not the annotation with its own.
// Besides the plan only `rollout pause` gives a set this one, with its own annotation.
func PinLost(set *appsv1.StatefulSet) bool {
	_, noted := set.Annotations[PinnedAnnotation]
	_, paused := set.Annotations[PausedAnnotation]
	return !noted && !paused && !byHand(set) && partitionOf(set) == AboveAll
}

// byHand reports whether the pods of a set are replaced when a user deletes them.
func byHand(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

func partitionOf(set *appsv1.StatefulSet) int32 {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return *r.Partition
	}
	return 0
}

// Pin pins the rolling updates of a set that will be sent.
func Pin(set *appsv1.StatefulSet) {
	was, s := noBlock, &set.Spec.UpdateStrategy
	if PinLost(set) {
		Note(set, nil)
		return
	}
	switch {
	case s.RollingUpdate == nil:
		s.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
	case s.RollingUpdate.Partition == nil:
		was = noPartition
	default:
		was = strconv.Itoa(int(*s.RollingUpdate.Partition))
	}
	above := AboveAll
	s.RollingUpdate.Partition = &above
	annotate(set, PinnedAnnotation, was)
}

// Note gives a set that has lost the note of its own partition that of the other set, or none: no plan begins with a
// source that has one, and a destination is made like it.
func Note(set, other *appsv1.StatefulSet) {
	was := noBlock
	if other != nil && other.Annotations[PinnedAnnotation] != "" {
		was = other.Annotations[PinnedAnnotation]
	}
	annotate(set, PinnedAnnotation, was)
}

// Unpin gives a set that is pinned its own partition back, unless another writer has given it one since. It fails for an
// annotation that this program has not written.
func Unpin(set *appsv1.StatefulSet) error {
	if PinLost(set) {
		Note(set, nil)
	}
	was, noted := set.Annotations[PinnedAnnotation]
	if noted && Pinned(set) && !byHand(set) {
		r := set.Spec.UpdateStrategy.RollingUpdate
		switch was {
		case noBlock:
			if r.Partition = nil; *r == (appsv1.RollingUpdateStatefulSetStrategy{}) {
				set.Spec.UpdateStrategy.RollingUpdate = nil
			}
		case noPartition:
			r.Partition = nil
		default:
			own, err := strconv.ParseInt(was, 10, 32)
			if err != nil || own < 0 {
				return fmt.Errorf("annotation %s is %q, which this program does not write: set the partition (spec.updateStrategy.rollingUpdate.partition) as it was, and take the annotation off", PinnedAnnotation, was)
			}
			p := int32(own)
			r.Partition = &p
		}
	}
	delete(set.Annotations, PinnedAnnotation)
	return nil
}

// Unpinned returns a set as it is when nothing pins its rolling updates.
func Unpinned(set *appsv1.StatefulSet) *appsv1.StatefulSet {
	if _, noted := set.Annotations[PinnedAnnotation]; !noted && !PinLost(set) {
		return set
	}
	out := set.DeepCopy()
	_ = Unpin(out) // an annotation that another writer has put there is left to the look that gives the partition back
	return out
}
