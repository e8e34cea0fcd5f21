package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Changed returns the saved manifest of a claim, updated with the later changes to the claim that was created
// from it: size, VolumeAttributesClass, labels and annotations. All other fields belong to the place where
// the manifest was saved, and stay.
func Changed(saved, now string) (string, error) {
	var was, is map[string]any
	if err := json.Unmarshal([]byte(saved), &was); err != nil {
		return "", fmt.Errorf("a saved claim: %w", err)
	}
	if err := json.Unmarshal([]byte(now), &is); err != nil {
		return "", fmt.Errorf("a claim: %w", err)
	}
	next := unstructured.Unstructured{Object: was}
	next = *next.DeepCopy()
	for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "resources"}, {"spec", "volumeAttributesClassName"}} {
		value, ok, err := unstructured.NestedFieldCopy(is, path...)
		if err != nil {
			return "", fmt.Errorf("a claim: %w", err)
		}
		if !ok {
			unstructured.RemoveNestedField(next.Object, path...)
		} else if err := unstructured.SetNestedField(next.Object, value, path...); err != nil {
			return "", fmt.Errorf("a saved claim: %w", err)
		}
	}
	if reflect.DeepEqual(was, next.Object) {
		return saved, nil // the original text, so that the order of its fields does not matter
	}
	raw, err := json.Marshal(next.Object)
	return string(raw), err
}

// learn returns the write that updates the volume object of the side that takes the ordinal back. The write
// records what became of the disk and of its claim on the other side: the disk itself was expanded, and a
// claim for less than the disk would lose that. There is nothing to learn from a side that was only about to
// take the ordinal.
func (v mover) learn(ctx context.Context, m plans.StepContext, vol plans.Volume, pv *corev1.PersistentVolume) (plans.Observation, error) {
	if v.Plan.OneCluster() || m.Reversed {
		return plans.Done(), nil
	}
	there, err := v.volumeOf(ctx, m.From, vol.Name)
	if err != nil || there == nil || !m.Stamp.Mine(there) {
		return plans.Done(), err
	}
	next := pv.DeepCopy()
	next.Spec.Capacity, next.Spec.VolumeAttributesClassName = there.Spec.Capacity, there.Spec.VolumeAttributesClassName
	if saved := there.Annotations[plans.ClaimAnnotation]; isClaim(saved) { // else the claim that is saved here is all there is of it (S14)
		next.Annotations[plans.ClaimAnnotation] = saved
	}
	if equality.Semantic.DeepEqual(pv.Spec, next.Spec) && maps.Equal(pv.Annotations, next.Annotations) {
		return plans.Done(), nil
	}
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("volume %s on the %s: size %s, and its claim as it was on the %s", pv.Name, m.To(), next.Spec.Capacity.Storage(), m.From),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], pv, next) }), nil
}

// isClaim reports whether a saved manifest is one of a claim.
func isClaim(saved string) bool {
	var claim corev1.PersistentVolumeClaim
	return json.Unmarshal([]byte(saved), &claim) == nil && claim.Name != ""
}

// rewritten translates the volume object of one side for the other. If the names differ, the source's object
// is saved on the destination's. It could not be derived from the destination's object again, because two
// names may have become one. why is the reason why there is no such object.
func (v mover) rewritten(held *corev1.PersistentVolume, to plans.Side, ref corev1.ObjectReference) (next *corev1.PersistentVolume, why string, err error) {
	if to == plans.Source {
		if kept, ok := held.Annotations[plans.VolumeAnnotation]; ok {
			next, err = recalled(held, kept, ref)
			return next, "", err
		}
		if !v.Plan.Storage.None() {
			return nil, fmt.Sprintf("volume %s is gone, and annotation %s of the destination's volume does not contain a copy of it; recreate it by hand, for claim %s/%s", held.Name, plans.VolumeAnnotation, ref.Namespace, ref.Name), nil
		}
		return VolumeFrom(held, ref, plans.Storage{}), "", nil
	}
	csi, err := AsCSI(held)
	if err != nil {
		return nil, err.Error() + "; define the volume with a csi source", nil //nolint:nilerr // trying again would not mend it
	}
	next = VolumeFrom(csi, ref, v.Plan.Storage)
	if v.Plan.Storage.None() && csi == held {
		return next, "", nil
	}
	was := VolumeFrom(held, *held.Spec.ClaimRef, plans.Storage{})
	plans.Unmark(was)
	raw, err := json.Marshal(was)
	next.Annotations[plans.VolumeAnnotation] = string(raw)
	return next, "", err
}

// recalled recreates the source's volume object from its saved copy.
func recalled(held *corev1.PersistentVolume, kept string, ref corev1.ObjectReference) (*corev1.PersistentVolume, error) {
	var was corev1.PersistentVolume
	if err := json.Unmarshal([]byte(kept), &was); err != nil {
		return nil, fmt.Errorf("annotation %s of volume %s: %w", plans.VolumeAnnotation, held.Name, err)
	}
	next := VolumeFrom(&was, ref, plans.Storage{})
	for _, note := range []string{plans.PolicyAnnotation, plans.ClaimAnnotation} {
		next.Annotations[note] = held.Annotations[note]
	}
	next.Spec.Capacity, next.Spec.VolumeAttributesClassName = held.Spec.Capacity, held.Spec.VolumeAttributesClassName
	return next, nil
}
