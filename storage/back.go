package storage

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// Changed returns the saved manifest of a claim, updated with the later changes to the claim that was created
// from it: size, VolumeAttributesClass, labels and annotations. All other fields belong to the place where
// the manifest was saved, and stay.
func Changed(saved, now string) (string, error) {
	var was, is map[string]any
	if err := weight.Unmarshal([]byte(saved), &was); err != nil {
		return "", fmt.Errorf("a saved claim: %w", err)
	}
	if err := weight.Unmarshal([]byte(now), &is); err != nil {
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

// isClaim reports whether a saved manifest is one of a claim.
func isClaim(saved string) bool {
	var claim corev1.PersistentVolumeClaim
	return weight.Unmarshal([]byte(saved), &claim) == nil && claim.Name != ""
}

// recalled recreates the source's volume object from its saved copy.
func recalled(held *corev1.PersistentVolume, kept string, ref corev1.ObjectReference) (*corev1.PersistentVolume, error) {
	var was corev1.PersistentVolume
	if err := weight.Unmarshal([]byte(kept), &was); err != nil {
		return nil, fmt.Errorf("annotation %s of volume %s: %w", plans.VolumeAnnotation, held.Name, err)
	}
	next := VolumeFrom(&was, ref, plans.Storage{})
	for _, note := range []string{plans.PolicyAnnotation, plans.ClaimAnnotation} {
		next.Annotations[note] = held.Annotations[note]
	}
	next.Spec.Capacity, next.Spec.VolumeAttributesClassName = held.Spec.Capacity, held.Spec.VolumeAttributesClassName
	return next, nil
}
