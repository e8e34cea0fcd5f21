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

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

// Changed is the saved manifest of a claim with what somebody has changed since about the claim
// that was made from it: its size, its VolumeAttributesClass, labels and annotations. The rest
// is of the place that it was saved in, and stays.
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
		return saved, nil // as it was written, whatever the order of its fields
	}
	raw, err := json.Marshal(next.Object)
	return string(raw), err
}

// learn hands out the write by which the volume object of the side that takes over again gets to
// know what has become of the disk and of its claim on the other side: an expansion is the
// disk's, and a claim for less than the disk would forget it. A side that was only about to
// take the ordinal knows nothing new.
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
	next.Annotations[plans.ClaimAnnotation] = there.Annotations[plans.ClaimAnnotation]
	if equality.Semantic.DeepEqual(pv.Spec, next.Spec) && maps.Equal(pv.Annotations, next.Annotations) {
		return plans.Done(), nil
	}
	m.Stamp.Put(next)
	return plans.Write(fmt.Sprintf("volume %s on the %s: size %s, and its claim as it was on the %s", pv.Name, m.To(), next.Spec.Capacity.Storage(), m.From),
		plans.Undo{}, func(ctx context.Context) error { return writes.Change(ctx, v.On[m.To()], pv, next) }), nil
}

// rewritten is the volume object of one side in the words of the other. Where these are others,
// the source's object is kept on the destination's, since it could not be found again from it:
// two names may have become one. A reason says why there is none.
func (v mover) rewritten(held *corev1.PersistentVolume, to plans.Side, ref corev1.ObjectReference) (next *corev1.PersistentVolume, why string, err error) {
	if to == plans.Source {
		if kept, ok := held.Annotations[plans.VolumeAnnotation]; ok {
			next, err = recalled(held, kept, ref)
			return next, "", err
		}
		if !v.Plan.Storage.None() {
			return nil, fmt.Sprintf("volume %s is gone, and annotation %s of the destination's volume does not say how it was; make it again by hand, for claim %s/%s", held.Name, plans.VolumeAnnotation, ref.Namespace, ref.Name), nil
		}
		return VolumeFrom(held, ref, plans.Storage{}), "", nil
	}
	csi, err := AsCSI(held)
	if err != nil {
		return nil, err.Error() + "; write it down as a csi volume", nil //nolint:nilerr // trying again would not mend it
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

// recalled makes the source's volume object again as it was kept.
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
