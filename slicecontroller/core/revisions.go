package core

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
)

// RevisionHash is the label of a ControllerRevision with the hash that is in its name.
const RevisionHash = "controller.kubernetes.io/hash"

// longestPrefix is how many bytes of the set's name go into the name of a revision (RV-2).
const longestPrefix = 223

// versions are the current and the target revision, from which pods are made, and the asked revision, which
// is that of the template. asked is the target, unless an update to it was rolled back: then the target is
// the current revision.
type versions struct {
	current, target, asked *appsv1.ControllerRevision
	collisions             int32
	// wayGone is the name of the current revision of a set that was rolled back to it, if that revision no longer exists.
	// The target is the asked revision then.
	wayGone string
}

// template returns the pod template of a revision.
func template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var doc struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &doc); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s holds no pod template: %w", r.Name, err)
	}
	return &doc.Spec.Template, nil
}

// document returns the data that a revision stores of a set: its pod template, as a strategic merge patch
// that replaces the template of the set (RV-1). The bytes are those that the built-in controller writes, so
// that the set's controller can change without a new revision.
func document(t corev1.PodTemplateSpec) ([]byte, error) {
	fields, err := plain(&t)
	if err != nil {
		return nil, err
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// newRevision returns the revision of the set's template (RV-2).
func (s *Set) newRevision(number int64, collisions int32) (*appsv1.ControllerRevision, error) {
	data, err := document(s.Spec.Template)
	if err != nil {
		return nil, err
	}
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Labels: map[string]string{}, Annotations: maps.Clone(s.Annotations),
			OwnerReferences: []metav1.OwnerReference{s.owner()},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
	maps.Copy(r.Labels, s.Spec.Template.Labels)
	s.mark(r)
	s.name(r, collisions)
	return r, nil
}

// mark notes the template that a revision was filled in from, and reports whether that changed the revision.
func (s *Set) mark(r *appsv1.ControllerRevision) bool {
	if s.Asked == "" || r.Annotations[AskedAnnotation] == s.Asked {
		return false
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[AskedAnnotation] = s.Asked
	return true
}

// prefix is the beginning of the name of a revision, before its hash.
func (s *Set) prefix() string { return s.Name[:min(len(s.Name), longestPrefix)] + "-" }

// named reports whether a revision has the name of one of this set.
func (s *Set) named(r *appsv1.ControllerRevision) bool {
	return r.Name == s.prefix()+r.Labels[RevisionHash]
}

// name names a revision after its data and the count of collisions, also when that is 0.
func (s *Set) name(r *appsv1.ControllerRevision, collisions int32) {
	sum := fnv.New32()
	_, _ = sum.Write(r.Data.Raw) // never fails
	_, _ = sum.Write([]byte(strconv.Itoa(int(collisions))))
	hash := rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10))
	r.Name = s.prefix() + hash
	r.Labels[RevisionHash] = hash
}

// sorted returns revisions from the oldest to the newest (RV-3).
func sorted(revisions []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	out := slices.Clone(revisions)
	slices.SortStableFunc(out, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// history finds, makes and deletes the revisions of a set.
type history struct {
	*teller

	// unmarked is the error for which the target has no note of the template that it was filled in from.
	// Nothing waits for that.
	unmarked error
}

// resolve finds or creates the revision of the set's template, and finds the one that the pods had before
// (RV-3 to RV-6).
func (h *history) resolve(ctx context.Context, known []*appsv1.ControllerRevision) (versions, error) {
	v := versions{}
	if c := h.set.Status.CollisionCount; c != nil {
		v.collisions = *c
	}
	var newest *appsv1.ControllerRevision
	number := int64(1)
	if len(known) > 0 {
		newest = known[len(known)-1]
		number = newest.Revision + 1
	}
	wanted, err := h.set.newRevision(number, v.collisions)
	if err != nil {
		return v, err
	}
	older := slices.Clone(known)
	slices.Reverse(older)
	equal := slices.IndexFunc(older, func(r *appsv1.ControllerRevision) bool { return bytes.Equal(r.Data.Raw, wanted.Data.Raw) })
	switch {
	case equal == 0:
		v.target, h.unmarked = h.marked(ctx, newest)
	case equal > 0:
		v.target, err = h.rolledBack(ctx, older[equal], number)
	default:
		v.target, v.collisions, err = h.novel(ctx, newest, wanted, v.collisions)
	}
	if err != nil {
		if newest == nil {
			return v, err
		}
		v.target, h.unsure = newest, err
	}
	v.current = v.target
	if at := slices.IndexFunc(known, func(r *appsv1.ControllerRevision) bool { return r.Name == h.set.Status.CurrentRevision }); at >= 0 {
		v.current = known[at]
	}
	v.asked = v.target
	if h.set.RollsBack && v.asked.Name == h.set.Status.Failed {
		v.target = v.current
		if was := h.set.Status.CurrentRevision; v.target.Name == v.asked.Name && was != v.asked.Name && was != "" {
			v.wayGone = was
			h.unsure = errors.Join(h.unsure, fmt.Errorf("ControllerRevision %s, to which the pods were rolled back, no longer exists: until the template changes no pod is replaced, and missing pods are made from the template that has failed", was))
		}
	}
	return v, nil
}

// marked returns a revision with a note of the template that it was filled in from. After a conflict a later
// pass adds the note.
func (h *history) marked(ctx context.Context, r *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	next := r.DeepCopy()
	if !h.set.mark(next) {
		return r, nil
	}
	err := h.do.Update(ctx, next)
	switch {
	case apierrors.IsConflict(err):
		return r, nil
	case err != nil:
		return r, err
	}
	return next, nil
}

// rolledBack makes an older revision the newest one, and keeps its name (RV-3b).
func (h *history) rolledBack(ctx context.Context, r *appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	next := r.DeepCopy()
	next.Revision = number
	h.set.mark(next)
	return next, h.do.Update(ctx, next)
}

// novel returns a revision for a template that no revision has byte for byte: the newest, if only defaults
// differ (RV-3c), or a new one.
func (h *history) novel(ctx context.Context, newest, wanted *appsv1.ControllerRevision, collisions int32) (*appsv1.ControllerRevision, int32, error) {
	if newest != nil {
		same, err := h.sameByDefault(ctx, newest)
		if err != nil || same {
			return newest, collisions, err
		}
	}
	for {
		r := wanted.DeepCopy()
		h.set.name(r, collisions)
		err := h.do.Create(ctx, r)
		if !apierrors.IsAlreadyExists(err) {
			return r, collisions, err
		}
		there := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		if err := h.do.Read(ctx, there); err != nil {
			return nil, collisions, err
		}
		if owner := metav1.GetControllerOfNoCopy(there); bytes.Equal(there.Data.Raw, r.Data.Raw) && (owner == nil || owner.UID == h.set.UID) {
			return there, collisions, nil
		}
		collisions++ // RV-4; RV-5: a revision with another owner is a collision, too
	}
}

// sameByDefault reports whether the API server would store the template of a revision today as the set's
// template is: an API server with new defaults must not restart pods.
func (h *history) sameByDefault(ctx context.Context, r *appsv1.ControllerRevision) (bool, error) {
	t, err := template(r)
	if err != nil {
		return false, nil //nolint:nilerr // somebody's own revision, and not one of these pods
	}
	full, err := h.do.Default(ctx, *t)
	switch {
	case apierrors.IsInvalid(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return false, h.unlessAnother(r, t, err)
	}
	return err == nil && equality.Semantic.DeepEqual(full, h.set.Spec.Template), err
}

// unlessAnother decides about the set's template where the API server refuses to fill in defaults: the namespace admits no
// PodTemplates, and may never. A default only adds fields, so a template without a field or value of the
// revision's is another one: unlessAnother returns nil. If fields were only added, they may be new defaults, and
// it returns the refusal: a guess could restart all pods.
func (h *history) unlessAnother(r *appsv1.ControllerRevision, t *corev1.PodTemplateSpec, refused error) error {
	was, err := plain(t)
	if err != nil {
		return err
	}
	now, err := plain(&h.set.Spec.Template)
	if err != nil || !contains(now, was) {
		return err
	}
	h.do.Tell(Event{
		Type: corev1.EventTypeWarning, Reason: "TemplateNotTried", Once: strconv.FormatInt(h.set.Generation, 10),
		Message: fmt.Sprintf("no pod is replaced: the template only adds fields to that of %s, and whether they are new defaults cannot be found out: %v", r.Name, refused),
	})
	return refused
}

// plain returns a pod template as the fields of its JSON.
func plain(t *corev1.PodTemplateSpec) (fields map[string]any, err error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &fields)
	return fields, err
}

// contains reports whether a JSON value has every field of another one, and the same lists and values.
func contains(more, less any) bool {
	switch l := less.(type) {
	case map[string]any:
		m, is := more.(map[string]any)
		for key, value := range l {
			is = is && contains(m[key], value)
		}
		return is
	case []any:
		m, is := more.([]any)
		return is && slices.EqualFunc(m, l, contains)
	}
	return less == more
}

// truncate deletes the oldest revisions that no pod is of, down to the limit (RV-7). A negative limit keeps
// all.
func (h *history) truncate(ctx context.Context, known []*appsv1.ControllerRevision, v versions, pods []*corev1.Pod) error {
	limit := 10
	if l := h.set.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	if limit < 0 {
		return nil
	}
	live := map[string]bool{v.current.Name: true, v.asked.Name: true}
	for _, pod := range pods {
		live[revisionOf(pod)] = true
	}
	old := slices.DeleteFunc(slices.Clone(known), func(r *appsv1.ControllerRevision) bool { return live[r.Name] })
	var errs []error
	for k := 0; k < len(old)-limit; k++ {
		if err := h.do.Delete(ctx, old[k]); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
