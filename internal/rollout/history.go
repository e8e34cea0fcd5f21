package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
	"github.com/stsmigrate/stsmigrate/slicecontroller/v1alpha1"
)

// History lists the pod templates that a set has had, as its ControllerRevisions keep them (KEP-961, RV-1).
// It works for both kinds, as `kubectl rollout history` does for built-in kinds.
type History struct {
	on  client.Client
	ref plans.Ref
	set *appsv1.StatefulSet
	// apart means that the set's template has no revision: it cannot be used, and its update revision is the last one
	// that could.
	apart bool
	// Revisions are sorted from the oldest to the newest.
	Revisions []Revision
}

// Revision is one pod template that a set has had.
type Revision struct {
	Number int64
	// Name is that of the ControllerRevision, which pods have as a label.
	Name string
	// Pods is the number of pods of this revision.
	Pods int
	// Cause is the user's note in the annotation kubernetes.io/change-cause.
	Cause    string
	template corev1.PodTemplateSpec
	// whole is the template as it is stored, with fields that this program does not know.
	whole map[string]any
}

const changeCause = "kubernetes.io/change-cause"

// ReadHistory reads the history of a set.
func ReadHistory(ctx context.Context, on client.Client, ref plans.Ref) (*History, error) {
	set, apart, err := setOf(ctx, on, ref)
	if err != nil {
		return nil, err
	}
	if set == nil {
		return nil, fmt.Errorf("%s does not exist", ref.Set())
	}
	var kept appsv1.ControllerRevisionList
	if err := on.List(ctx, &kept, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the ControllerRevisions of namespace %s: %w", ref.Namespace, err)
	}
	var pods corev1.PodList
	if err := on.List(ctx, &pods, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", ref.Namespace, err)
	}
	h := &History{on: on, ref: ref, set: set, apart: apart}
	for _, k := range kept.Items {
		if !metav1.IsControlledBy(&k, set) {
			continue
		}
		r := Revision{Number: k.Revision, Name: k.Name, Cause: k.Annotations[changeCause]}
		if r.template, r.whole, err = templateOf(&k); err != nil {
			return nil, fmt.Errorf("ControllerRevision %s/%s holds no pod template: %w", k.Namespace, k.Name, err)
		}
		for _, pod := range pods.Items {
			if metav1.IsControlledBy(&pod, set) && pod.Labels[appsv1.ControllerRevisionHashLabelKey] == k.Name {
				r.Pods++
			}
		}
		h.Revisions = append(h.Revisions, r)
	}
	slices.SortFunc(h.Revisions, func(a, b Revision) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name)) })
	return h, nil
}

// setOf reads a set in the form of a StatefulSet, and whether its template has no revision. That of a slice lacks the
// ordinals which it leaves out: a history has no use for them.
func setOf(ctx context.Context, on client.Client, ref plans.Ref) (_ *appsv1.StatefulSet, apart bool, err error) {
	if !ref.IsSlice() {
		set, err := clusters.ReadSet(ctx, on, ref)
		return set, false, err
	}
	var s v1alpha1.StatefulSetSlice
	slice, err := clusters.FoundSet(&s, ref, on.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &s))
	if slice == nil || err != nil {
		return nil, false, err
	}
	progress := meta.FindStatusCondition(slice.Status.Conditions, "Progressing")
	apart = progress != nil && slices.Contains([]string{"InvalidTemplate", "TemplateNotTried"}, progress.Reason)
	return slice.Native(), apart, clusters.Understood(slice)
}

// templateOf returns the pod template that a revision stores: a strategic merge patch that replaces that of
// the set.
func templateOf(r *appsv1.ControllerRevision) (known corev1.PodTemplateSpec, whole map[string]any, err error) {
	var doc struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := weight.Guard(r.Data.Raw, func() error { return json.Unmarshal(r.Data.Raw, &doc) }); err != nil {
		return known, nil, err
	}
	whole = doc.Spec.Template
	delete(whole, "$patch")
	return known, whole, runtime.DefaultUnstructuredConverter.FromUnstructured(whole, &known)
}

// Find returns a revision by its number; 0 is the newest revision other than that of the set's template, which has to
// have been seen by its controller.
func (h *History) Find(number int64) (Revision, error) {
	if number == 0 && h.set.Status.ObservedGeneration < h.set.Generation {
		return Revision{}, fmt.Errorf("the controller of %s has not seen generation %d yet, and which revision was before is not known: run the command again later, or name the revision with --to-revision", h.ref.Set(), h.set.Generation)
	}
	var known []string
	for k := len(h.Revisions) - 1; k >= 0; k-- {
		r := h.Revisions[k]
		if r.Number == number || number == 0 && (h.apart || r.Name != h.set.Status.UpdateRevision) {
			return r, nil
		}
		known = append(known, fmt.Sprint(r.Number))
	}
	if number == 0 {
		return Revision{}, fmt.Errorf("%s has had no other pod template", h.ref.Set())
	}
	return Revision{}, fmt.Errorf("%s has no revision %d: expected one of %s", h.ref.Set(), number, strings.Join(known, ", "))
}

// Undo gives the set the pod template of a revision, unless its spec has changed since it was read; dry
// requests a dry run. An update to that template begins or, if the pods are of it already, ends. A status
// that changes meanwhile, as it does all the time while an update fails, is no reason to refuse: the write
// is built again from the newer object.
func (h *History) Undo(ctx context.Context, r Revision, dry bool) error {
	var opts []client.PatchOption
	if dry {
		opts = append(opts, client.DryRunAll)
	}
	for range undoTries {
		was, err := h.asItIs(ctx)
		if err != nil {
			return err
		}
		next, err := undone(was, r)
		if err != nil {
			return fmt.Errorf("%s: %w", h.ref.Set(), err)
		}
		err = writes.Change(ctx, h.on, was, next, opts...)
		switch {
		case apierrors.IsConflict(err):
		case err != nil:
			return fmt.Errorf("%s: %w", h.ref.Set(), err)
		default:
			return nil
		}
	}
	return changedMeanwhile(h.ref)
}

// undoTries is how often Undo reads a set that has changed between the read and the write.
const undoTries = 10

// undone returns the set with the template of a revision, and with the change cause of that revision.
func undone(was *unstructured.Unstructured, r Revision) (*unstructured.Unstructured, error) {
	next := was.DeepCopy()
	if err := unstructured.SetNestedMap(next.Object, r.whole, "spec", "template"); err != nil {
		return nil, err
	}
	notes := map[string]string{}
	maps.Copy(notes, next.GetAnnotations())
	delete(notes, changeCause)
	if r.Cause != "" {
		notes[changeCause] = r.Cause
	}
	next.SetAnnotations(notes)
	return next, nil
}

// asItIs reads the whole set as its own kind, and checks that its spec is still the one that h has.
func (h *History) asItIs(ctx context.Context) (*unstructured.Unstructured, error) {
	u, err := entire(ctx, h.on, h.ref)
	if err != nil {
		return nil, err
	}
	if u == nil || u.GetUID() != h.set.UID || u.GetGeneration() != h.set.Generation {
		return nil, changedMeanwhile(h.ref)
	}
	if s, marked := plans.Stamped(u); marked {
		return nil, fmt.Errorf("%s is being moved by plan %s, and a move keeps its pod template: finish that first", h.ref.Set(), s.Plan)
	}
	return u, nil
}

// Is reports whether the set already has the template of a revision.
func (h *History) Is(r Revision) bool {
	return r.Name == h.set.Status.UpdateRevision && h.set.Status.ObservedGeneration == h.set.Generation && !h.apart || equality.Semantic.DeepEqual(r.template, h.set.Spec.Template)
}
