package v1alpha1

import (
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// More is the annotation of a StatefulSet for the fields of a slice that apps/v1 lacks, as JSON: a slice
// that is moved, or becomes a StatefulSet for a while, loses nothing. A slice never has it.
const More = "apps.stsmigrate.dev/slice"

// more holds the fields of a slice that apps/v1 lacks.
type more struct {
	Paused                  bool      `json:"paused,omitempty"`
	ProgressDeadlineSeconds *int32    `json:"progressDeadlineSeconds,omitempty"`
	OnFailure               OnFailure `json:"onFailure,omitempty"`
	Evict                   bool      `json:"evict,omitempty"`
	DeletionProtection      bool      `json:"deletionProtection,omitempty"`
	ReserveOrdinals         []int32   `json:"reserveOrdinals,omitempty"`
	// VolumeClaimUpdatePolicy is set if it is not the default.
	VolumeClaimUpdatePolicy VolumeClaimUpdatePolicy `json:"volumeClaimUpdatePolicy,omitempty"`
}

// usualDeadline is the default of the API server, in seconds.
const usualDeadline = 600

// noted returns the metadata of a slice as its StatefulSet has it.
func (s *StatefulSetSlice) noted() metav1.ObjectMeta {
	m := more{Paused: s.Spec.Paused, Evict: s.Spec.UpdateStrategy.Evict, DeletionProtection: s.Spec.DeletionProtection, ReserveOrdinals: s.Spec.ReserveOrdinals}
	if d := s.Spec.ProgressDeadlineSeconds; d != nil && *d != usualDeadline {
		m.ProgressDeadlineSeconds = d
	}
	if f := s.Spec.UpdateStrategy.OnFailure(); f != Halt {
		m.OnFailure = f
	}
	if v := s.Spec.VolumeClaimUpdatePolicy; v != OnClaimDelete {
		m.VolumeClaimUpdatePolicy = v
	}
	meta := s.ObjectMeta
	raw, err := json.Marshal(m)
	if err != nil || string(raw) == "{}" { // there is no error: m has only booleans, numbers and strings
		return meta
	}
	meta.Annotations = maps.Clone(meta.Annotations)
	metav1.SetMetaDataAnnotation(&meta, More, string(raw))
	return meta
}

// heed takes from the metadata what noted added. An annotation that cannot be read is kept.
func (s *StatefulSetSlice) heed() {
	var m more
	if raw, there := s.Annotations[More]; !there || json.Unmarshal([]byte(raw), &m) != nil {
		return
	}
	s.Annotations = maps.Clone(s.Annotations)
	delete(s.Annotations, More)
	s.Spec.Paused, s.Spec.ProgressDeadlineSeconds = m.Paused, m.ProgressDeadlineSeconds
	s.Spec.VolumeClaimUpdatePolicy, s.Spec.ReserveOrdinals = m.VolumeClaimUpdatePolicy, m.ReserveOrdinals
	s.Spec.UpdateStrategy.Evict, s.Spec.DeletionProtection = m.Evict, m.DeletionProtection
	for _, rollout := range []*Rollout{s.Spec.UpdateStrategy.RollingUpdate, s.Spec.UpdateStrategy.EnforcedRollingUpdate} {
		if rollout != nil {
			rollout.OnFailure = m.OnFailure
		}
	}
}
