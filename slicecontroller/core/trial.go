package core

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trial is a PodTemplate with which the API server says, as a dry run, what it fills in and what
// it refuses. Containers mount volumes that only pods have, those of the claims: they are added,
// and Untried takes them off again.
func Trial(namespace string, t corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) *corev1.PodTemplate {
	t = *t.DeepCopy()
	for _, c := range claims {
		if !slices.ContainsFunc(t.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name }) {
			t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}})
		}
	}
	return &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "dry-run-"}, Template: t}
}

// Untried is what became of the template, without what Trial has added: the volumes that asked
// did not have.
func Untried(tried *corev1.PodTemplate, asked corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t := tried.Template
	t.Spec.Volumes = t.Spec.Volumes[:len(asked.Spec.Volumes)]
	if len(t.Spec.Volumes) == 0 {
		t.Spec.Volumes = nil
	}
	return t
}
