package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrialName is the beginning of the generated name of a dry run.
const TrialName = "dry-run-"

// Trial returns a PodTemplate for a dry run, in which the API server fills in defaults and checks the
// template. Containers may mount volumes that only pods have, those of the claims: Trial adds these volumes,
// and Untried removes them.
func Trial(namespace string, t corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) *corev1.PodTemplate {
	t = *t.DeepCopy()
	for _, c := range claims {
		if !slices.ContainsFunc(t.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name }) {
			t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}})
		}
	}
	return &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: TrialName}, Template: t}
}

// Untried returns the template of a dry run without the volumes that Trial added, which asked does not have.
func Untried(tried *corev1.PodTemplate, asked corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t := tried.Template
	t.Spec.Volumes = t.Spec.Volumes[:len(asked.Spec.Volumes)]
	if len(t.Spec.Volumes) == 0 {
		t.Spec.Volumes = nil
	}
	return t
}
