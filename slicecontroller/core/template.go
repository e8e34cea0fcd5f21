package core

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AskedAnnotation is the annotation of a ControllerRevision that names the template which its own was filled in from.
// A process that has just started knows by it what an API server would make of the template of a set, without asking.
const AskedAnnotation = "apps.stsmigrate.dev/filled-in-from"

// Fault is why something in the spec of a set cannot be acted on.
type Fault struct {
	// Reason and Message are those of a condition and of an Event.
	Reason, Message string
	// Passing says that it may pass by itself, and that nobody has to do anything.
	Passing bool
}

// LastGood gives the pod template that the set had last that could be used: that of its newest revision.
func (w World) LastGood() (corev1.PodTemplateSpec, bool) {
	own := w.ownRevisions()
	for k := len(own) - 1; k >= 0; k-- {
		if t, err := template(own[k]); err == nil {
			return *t, true
		}
	}
	return corev1.PodTemplateSpec{}, false
}

// FilledIn gives what became of a template, if a revision of the set was made from it.
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

// ownRevisions are those that the set controls, from the oldest to the newest.
func (w World) ownRevisions() []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for _, r := range sorted(w.Revisions) {
		if metav1.IsControlledBy(r, w.Set) {
			out = append(out, r)
		}
	}
	return out
}
