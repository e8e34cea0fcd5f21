package records

import (
	"encoding/json"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/api/v1alpha1"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// A process that watches a namespace keeps in memory what is written there, and a user who may write there could fill that
// memory. So little is kept of each object: what decides whether there is something to do. The rest is read when it is needed.

// mostKept is how many bytes are kept of the content of an object.
const mostKept = 64 << 10

// leftOut is an annotation of an object in memory of which something was left out. No stored object has it: no name of an
// annotation has a space. Its value is ended for what is not needed any more.
const (
	leftOut = "left out"
	content = "content"
	asEnded = "ended"
)

// Keep returns what is kept in memory of an object. It may be asked twice about one object.
func Keep(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		keepRecord(o)
	case *coordinationv1.Lease:
		keepMeta(&o.ObjectMeta)
	case *unstructured.Unstructured:
		keepDeclared(o)
	}
	return o, nil
}

// LeftOut reports whether an object in memory lacks a part of its content.
func LeftOut(o client.Object) bool { return o.GetAnnotations()[leftOut] != "" }

// KeptAsEnded reports whether an object in memory lacks its content because its plan has ended, and nothing is left to do.
func KeptAsEnded(o client.Object) bool { return o.GetAnnotations()[leftOut] == asEnded }

// keepRecord keeps of a ConfigMap that it is there, and the content of a journal under way: a plan is decoded once, and a
// timeline is not read.
func keepRecord(cm *corev1.ConfigMap) {
	was := cm.Annotations[leftOut]
	raw, isJournal := cm.Data[journalKey]
	isJournal = isJournal && cm.Name == journalName(cm.Labels[plans.PlanLabel])
	keepMeta(&cm.ObjectMeta, EndedLabel)
	switch {
	case was != "":
	case isJournal && overIn(raw):
		was = asEnded
	case !isJournal || len(raw) > mostKept:
		was = content
	default:
		cm.Data, cm.BinaryData = map[string]string{journalKey: raw}, nil
		return
	}
	cm.Data, cm.BinaryData = nil, nil
	leave(cm, was)
}

// overIn reports whether a journal is that of a plan of which nothing is left to do.
func overIn(raw string) bool {
	var j journal.Journal
	return weight.Unmarshal([]byte(raw), &j) == nil && j.Kind == plans.JournalKind && j.Over()
}

// keepDeclared keeps a StatefulSetMigration. Of one whose plan has ended, and whose status says so of this spec, the spec
// decides nothing.
func keepDeclared(o *unstructured.Unstructured) {
	was := o.GetAnnotations()[leftOut]
	slim := NewDeclared(o.GetNamespace(), "")
	slim.SetName(o.GetName())
	to, _ := slim.Object["metadata"].(map[string]any)
	from, _ := o.Object["metadata"].(map[string]any)
	take := func(fields ...string) {
		for _, field := range fields {
			if value, has := from[field]; has {
				to[field] = value
			}
		}
	}
	take("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
	if finalizers := ours(o.GetFinalizers()); len(finalizers) > 0 {
		slim.SetFinalizers(finalizers)
	}
	switch d := StatusIn(o); {
	case was == asEnded, was == "" && d.State.Ended() && d.ObservedGeneration == o.GetGeneration():
		was = asEnded
		keepStatus(slim, d)
	case was == "" && weight.Of(o.Object) <= mostKept:
		take("managedFields")
		keepRequesters(slim, o)
		for _, field := range []string{"spec", "status"} {
			if value, has := o.Object[field]; has {
				slim.Object[field] = value
			}
		}
	default:
		was = content
	}
	o.Object = slim.Object
	if was != "" {
		leave(o, was)
	}
}

// keepRequesters keeps who has set each request, as admission has written it down.
func keepRequesters(slim, o *unstructured.Unstructured) {
	by := map[string]string{}
	for _, field := range []string{plans.ApprovalField, plans.DirectionField, plans.RequestField, plans.PausedField} {
		if user := o.GetAnnotations()[RequesterAnnotation(field)]; user != "" {
			by[RequesterAnnotation(field)] = user
		}
	}
	if len(by) > 0 {
		slim.SetAnnotations(by)
	}
}

// keepStatus keeps of a status that the plan has ended, and whether that was told.
func keepStatus(slim *unstructured.Unstructured, s v1alpha1.StatefulSetMigrationStatus) {
	status := map[string]any{"state": string(s.State), "observedGeneration": s.ObservedGeneration}
	if n := s.Notified; n != nil {
		status["notified"] = map[string]any{"change": n.Change}
	}
	slim.Object["status"] = status
}

// keepMeta keeps what identifies an object, the labels of this program and those annotations.
func keepMeta(m *metav1.ObjectMeta, annotations ...string) {
	slim := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, Finalizers: ours(m.Finalizers),
	}
	for _, name := range []string{plans.PlanLabel, HeartbeatLabel, EndedLabel} {
		if value, has := m.Labels[name]; has {
			metav1.SetMetaDataLabel(&slim, name, value)
		}
	}
	for _, name := range annotations {
		if value, has := m.Annotations[name]; has && len(value) < mostEnding {
			metav1.SetMetaDataAnnotation(&slim, name, value)
		}
	}
	*m = slim
}

// ours returns the finalizers of this program.
func ours(finalizers []string) []string {
	for _, f := range finalizers {
		if f == UnderWay {
			return []string{UnderWay}
		}
	}
	return nil
}

// leave writes down in memory that something was left out.
func leave(o client.Object, what string) {
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[leftOut] = what
	o.SetAnnotations(a)
}

// EndedLabel marks the ConfigMap of a plan that has ended and keeps no names. Its value is the outcome.
const EndedLabel = "stsmigrate.dev/ended"

// mostEnding is how long the annotation with an Ending may be.
const mostEnding = 4 << 10

// Ending is what is said of a plan that has ended without reading it. It is in an annotation of the ConfigMap of the plan,
// which has the name of the label.
type Ending struct {
	Outcome        plans.Outcome `json:"outcome"`
	At             *metav1.Time  `json:"at,omitempty"`
	Source         string        `json:"source,omitempty"`
	Destination    string        `json:"destination,omitempty"`
	Moved          int32         `json:"moved"`
	Ordinals       int32         `json:"ordinals"`
	MaxUnavailable int32         `json:"maxUnavailable,omitempty"`
}

// EndingOf returns the Ending of the plan in a ConfigMap; nil if it has none.
func EndingOf(cm *corev1.ConfigMap) *Ending {
	raw, has := cm.Annotations[EndedLabel]
	e := &Ending{}
	if !has || len(raw) >= mostEnding || json.Unmarshal([]byte(raw), e) != nil || cm.Labels[EndedLabel] != string(e.Outcome) {
		return nil
	}
	return e
}

// SetEnding marks the ConfigMap of a plan that is over, and reports whether that has changed it.
func SetEnding(o client.Object, p *plans.Plan, j *journal.Journal) bool {
	if o.GetLabels()[EndedLabel] == string(j.Outcome) {
		return false
	}
	e := Ending{Outcome: j.Outcome, At: j.EndedAt, Source: p.Source.String(), Destination: p.Destination.String(), Ordinals: p.Count, MaxUnavailable: p.MaxUnavailable}
	e.Moved, _ = j.Places(p)
	raw, err := json.Marshal(e)
	if err != nil {
		return false
	}
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[EndedLabel], annotations[EndedLabel] = string(j.Outcome), string(raw)
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return true
}
