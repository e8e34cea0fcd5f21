package core

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AskedAnnotation is the annotation of a ControllerRevision that names the template from which its own
// template was filled in. By it a process that has just started knows, without a request, what an API server
// would make of a set's template.
const AskedAnnotation = "apps.stsmigrate.dev/filled-in-from"

// Fault is why something in the spec of a set cannot be acted on.
type Fault struct {
	// Reason and Message are those of a condition and of an Event.
	Reason, Message string
	// Passing means that the fault may pass by itself, and that no user has to act.
	Passing bool
}

// LastGood returns the last usable pod template of the set: that of its newest revision. It reports whether
// there is one.
func (w World) LastGood() (corev1.PodTemplateSpec, bool) {
	own := w.ownRevisions()
	for k := len(own) - 1; k >= 0; k-- {
		if t, err := template(own[k]); err == nil {
			return *t, true
		}
	}
	return corev1.PodTemplateSpec{}, false
}

// FilledIn returns the template with defaults that a revision of the set has for the template named asked.
// It reports whether there is one.
func (w World) FilledIn(asked string) (corev1.PodTemplateSpec, bool) {
	for _, r := range w.ownRevisions() {
		if r.Annotations[AskedAnnotation] == asked {
			if t, err := template(r); err == nil {
				return *t, true
			}
		}
	}
	return corev1.PodTemplateSpec{}, false
}

// ownRevisions returns the revisions that the set controls, from the oldest to the newest.
func (w World) ownRevisions() []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for _, r := range sorted(w.Revisions) {
		if metav1.IsControlledBy(r, w.Set) {
			out = append(out, r)
		}
	}
	return out
}
