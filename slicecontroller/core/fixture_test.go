package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// fixture is an API server with one set and its dependents. The test moves its pods on, as kubelets would.
type fixture struct {
	t         *testing.T
	set       *Set
	pods      map[string]*corev1.Pod
	claims    map[string]*corev1.PersistentVolumeClaim
	revisions map[string]*appsv1.ControllerRevision
	now       time.Time
	// fails has errors for effects. Its keys are the effects as note records them, such as "+3" for the
	// creation of pod 3, or "create data-web-3". "read web-3" is a live read.
	fails map[string]error
	// defaults sets the defaults that the API server fills in.
	defaults func(*corev1.PodTemplateSpec)
	// seen changes the World of a pass.
	seen func(*World)
	// stored is the set as a live read returns it, if the cache has another one.
	stored *Set
	// dies is the number of effects after which the process dies; 0 for never. Everything that it does
	// afterwards fails without an effect.
	dies int

	// wrote is when the status was last written.
	wrote time.Time

	lock    sync.Mutex
	did     []string // effects of the last pass
	told    []string // events of the last pass
	once    map[string]bool
	uids    int
	outcome Outcome
	err     error
}

// play returns a fixture with a set and the pods that words describe: an ordinal each, followed by letters for
// its state. No letter: ready for an hour; ! running and not ready; ? pending; ~ terminating; x failed; s
// succeeded; r ready for a minute; o of the old revision.
func play(t *testing.T, pods string, change ...func(*Set)) *fixture {
	t.Helper()
	n := int32(3)
	s := &fixture{
		t: t, now: noon(), pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{},
		revisions: map[string]*appsv1.ControllerRevision{}, fails: map[string]error{}, once: map[string]bool{},
		set: &Set{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "set", Generation: 1},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &n, ServiceName: "peers", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
				},
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32)}},
			},
			Traits: Traits{Kind: schema.GroupVersionKind{Group: "apps.stsmigrate.dev", Version: "v1alpha1", Kind: "StatefulSetSlice"}},
		},
	}
	old := s.revision(1)
	if strings.Contains(pods, "o") {
		s.set.Spec.Template.Spec.Containers[0].Image = "web:2"
	}
	for _, c := range change {
		c(s.set)
	}
	latest := old
	if strings.Contains(pods, "o") {
		latest = s.revision(2)
	}
	s.set.Status.CurrentRevision, s.set.Status.UpdateRevision = old.Name, latest.Name
	for _, word := range strings.Fields(pods) {
		s.setup(word, old, latest)
	}
	return s
}

func (s *fixture) revision(number int64) *appsv1.ControllerRevision {
	r, err := s.set.newRevision(number, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.store(r)
	return r
}

// setup adds one pod to the fixture, with its claims.
func (s *fixture) setup(word string, old, latest *appsv1.ControllerRevision) *corev1.Pod {
	s.t.Helper()
	digits := strings.TrimRight(word, "!?~xsro")
	ordinal, err := strconv.Atoi(digits)
	if err != nil {
		s.t.Fatalf("pod %q: %v", word, err)
	}
	how := word[len(digits):]
	made := latest
	if strings.Contains(how, "o") {
		made = old
	}
	t, err := template(made)
	if err != nil {
		s.t.Fatal(err)
	}
	p := s.set.newPod(t, made.Name, int32(ordinal))
	s.store(p)
	for _, c := range s.set.newClaims(int32(ordinal)) {
		s.store(c)
	}
	s.is(p.Name, how)
	return s.pods[p.Name]
}

// is changes the state of a pod.
func (s *fixture) is(name, how string) {
	p := s.pods[name]
	p.Status.Phase = corev1.PodRunning
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now.Add(-time.Hour))}
	for _, letter := range how {
		switch letter {
		case '!':
			ready.Status = corev1.ConditionFalse
		case '?':
			p.Status.Phase, ready.Status = corev1.PodPending, corev1.ConditionFalse
		case 'r':
			ready.LastTransitionTime = metav1.NewTime(s.now.Add(-time.Minute))
		case 'x':
			p.Status.Phase = corev1.PodFailed
		case 's':
			p.Status.Phase = corev1.PodSucceeded
		case '~':
			p.DeletionTimestamp = &metav1.Time{Time: s.now}
		}
	}
	p.Status.Conditions = []corev1.PodCondition{ready}
}

// store stores an object, and sets the fields that an API server sets.
func (s *fixture) store(o Object) {
	s.uids++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		o.SetCreationTimestamp(metav1.NewTime(s.now.Add(time.Duration(s.uids) * time.Millisecond)))
	}
	o.SetResourceVersion(strconv.Itoa(s.uids))
	switch o := o.(type) {
	case *corev1.Pod:
		if o.Status.Phase == "" {
			o.Status.Phase = corev1.PodPending
		}
		s.pods[o.Name] = o.DeepCopy()
	case *corev1.PersistentVolumeClaim:
		s.claims[o.Name] = o.DeepCopy()
	case *appsv1.ControllerRevision:
		s.revisions[o.Name] = o.DeepCopy()
	}
}

// sync makes one pass, and returns its effects: + and - with the ordinal for pods that are created and
// deleted, words for the rest. The effects of a Parallel set are sorted.
func (s *fixture) sync() string {
	s.t.Helper()
	s.did, s.told = nil, nil
	w := World{
		Set: s.set, Now: s.now, Wrote: s.wrote, Claim: s.claim,
		Pods: sortedByName(s.pods), Revisions: sortedByName(s.revisions),
	}
	for _, c := range sortedByName(s.claims) {
		if slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == s.set.UID }) {
			w.Owned = append(w.Owned, c)
		}
	}
	if s.seen != nil {
		s.seen(&w)
	}
	s.outcome, s.err = Sync(s.t.Context(), w, s)
	if !s.set.ordered() {
		slices.SortFunc(s.did, func(a, b string) int { // effects in words come first
			return cmp.Or(cmp.Compare(strings.IndexAny(a, "+-"), strings.IndexAny(b, "+-")), strings.Compare(a, b))
		})
	}
	return strings.Join(s.did, " ")
}

func (s *fixture) claim(name string) *corev1.PersistentVolumeClaim {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.claims[name].DeepCopy()
}

func sortedByName[T Object](all map[string]T) []T {
	var out []T
	for _, name := range slices.Sorted(maps.Keys(all)) {
		seen, _ := all[name].DeepCopyObject().(T) // a cache does not change during a pass
		out = append(out, seen)
	}
	return out
}

// expect makes a pass that must not fail, and compares its effects.
func (s *fixture) expect(want string) {
	s.t.Helper()
	got := s.sync()
	if s.err != nil || got != want {
		s.t.Errorf("got %q, expected %q (error: %v)", got, want, s.err)
	}
}

// live makes passes and moves the pods on until nothing happens any more. It returns the effects of each
// pass.
func (s *fixture) live() []string {
	s.t.Helper()
	var out []string
	for range 100 {
		did := s.sync()
		if did != "" {
			out = append(out, did)
		}
		if moved := s.moveOn(); did == "" && !moved {
			return out
		}
	}
	s.t.Fatalf("it never comes to rest: %v", out)
	return nil
}

func (s *fixture) moveOn() (moved bool) {
	for name, p := range s.pods {
		switch {
		case terminating(p):
			delete(s.pods, name)
			moved = true
		case p.Status.Phase == corev1.PodPending && !strings.HasPrefix(p.Spec.Containers[0].Image, "broken"):
			s.is(name, "")
			moved = true
		}
	}
	return moved
}

// note records an effect, and returns its error.
func (s *fixture) note(words string) error {
	if s.dies > 0 && len(s.did) >= s.dies {
		return errDead
	}
	s.did = append(s.did, words)
	return s.fails[words]
}

var errDead = errors.New("the process is dead")

func words(verb string, o Object) string {
	switch o := o.(type) {
	case *corev1.Pod:
		ordinal := strings.TrimPrefix(o.Name, "web-")
		if sign, ok := map[string]string{"create": "+", "delete": "-"}[verb]; ok {
			return sign + ordinal
		}
		return verb + " " + ordinal
	case *corev1.PersistentVolumeClaim:
		return verb + " " + o.Name
	case *appsv1.ControllerRevision:
		return fmt.Sprintf("%s revision %d", verb, o.Revision)
	}
	return verb
}

func (s *fixture) Fresh(context.Context) (metav1.Object, error) {
	if s.stored != nil {
		return s.stored, nil
	}
	return s.set, s.fails["fresh"]
}

func (s *fixture) Read(_ context.Context, o Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.fails["read "+o.GetName()]; err != nil {
		return err
	}
	switch o := o.(type) {
	case *corev1.Pod:
		if have := s.pods[o.Name]; have != nil {
			have.DeepCopyInto(o)
			return nil
		}
	case *corev1.PersistentVolumeClaim:
		if have := s.claims[o.Name]; have != nil {
			have.DeepCopyInto(o)
			return nil
		}
	case *appsv1.ControllerRevision:
		if have := s.revisions[o.Name]; have != nil {
			have.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, o.GetName())
}

func (s *fixture) there(o Object) Object {
	switch o.(type) {
	case *corev1.Pod:
		if p := s.pods[o.GetName()]; p != nil {
			return p
		}
	case *corev1.PersistentVolumeClaim:
		if c := s.claims[o.GetName()]; c != nil {
			return c
		}
	case *appsv1.ControllerRevision:
		if r := s.revisions[o.GetName()]; r != nil {
			return r
		}
	}
	return nil
}

func (s *fixture) Create(_ context.Context, o Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.there(o) != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
	}
	if err := s.note(words("create", o)); err != nil {
		return err
	}
	s.store(o)
	return nil
}

func (s *fixture) Update(_ context.Context, o Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.note(words("update", o)); err != nil {
		return err
	}
	if there := s.there(o); there == nil || there.GetResourceVersion() != o.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
	}
	s.store(o)
	return nil
}

func (s *fixture) Delete(_ context.Context, o Object) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.note(words("delete", o)); err != nil {
		return err
	}
	there := s.there(o)
	switch {
	case there == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, o.GetName())
	case there.GetUID() != o.GetUID():
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
	}
	if _, ok := there.(*corev1.PersistentVolumeClaim); ok {
		s.t.Errorf("claim %s is deleted", o.GetName())
	}
	if p, ok := there.(*corev1.Pod); ok {
		s.goes(p)
		return nil
	}
	delete(s.revisions, o.GetName())
	return nil
}

func (s *fixture) Evict(_ context.Context, p *corev1.Pod) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.note(words("evict", p)); err != nil {
		return err
	}
	there := s.pods[p.Name]
	switch {
	case there == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, p.Name)
	case there.UID != p.UID || there.ResourceVersion != p.ResourceVersion:
		return apierrors.NewConflict(schema.GroupResource{}, p.Name, nil)
	}
	s.goes(there)
	return nil
}

// goes begins the end of a pod. The garbage collector deletes a claim after the pod that it names as its owner. So a
// claim that must be kept names no pod that goes.
func (s *fixture) goes(p *corev1.Pod) {
	p.DeletionTimestamp = &metav1.Time{Time: s.now}
	o, _ := Ordinal(s.set.Name, p.Name)
	if whenScaled, _ := s.set.claimsGo(); whenScaled && !s.set.has(o) {
		return
	}
	for name, c := range s.claims {
		if slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == p.UID }) {
			s.t.Errorf("pod %s goes while claim %s names it as its owner", p.Name, name)
		}
	}
}

func (s *fixture) Hold(_ context.Context, held bool) error {
	if err := s.note(map[bool]string{true: "hold", false: "let go"}[held]); err != nil {
		return err
	}
	s.set.Finalizers = slices.DeleteFunc(s.set.Finalizers, func(f string) bool { return f == Protection })
	if held {
		s.set.Finalizers = append(s.set.Finalizers, Protection)
	}
	return nil
}

func (s *fixture) Adopt(_ context.Context, o Object, owner metav1.OwnerReference) error {
	if err := s.note(words("adopt", o)); err != nil {
		return err
	}
	there := s.there(o)
	others := slices.DeleteFunc(there.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) // a patch merges them by UID
	there.SetOwnerReferences(append(others, owner))
	return nil
}

func (s *fixture) Release(_ context.Context, o Object, owner types.UID) error {
	if err := s.note(words("release", o)); err != nil {
		return err
	}
	there := s.there(o)
	there.SetOwnerReferences(slices.DeleteFunc(there.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }))
	return nil
}

func (s *fixture) WriteStatus(_ context.Context, status Status) error {
	if err := s.fails["status"]; err != nil {
		return err
	}
	if s.dies > 0 && len(s.did) >= s.dies {
		return errDead
	}
	s.set.Status, s.wrote = status, s.now
	return nil
}

func (s *fixture) Default(_ context.Context, t corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	if s.defaults != nil {
		s.defaults(&t)
	}
	return t, s.fails["default"]
}

func (s *fixture) Tell(e Event) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if e.Once != "" {
		if s.once[e.Reason+e.Once] {
			return
		}
		s.once[e.Reason+e.Once] = true
	}
	s.told = append(s.told, e.Type+" "+e.Reason+" "+e.Message)
}

// Changes of the set, for play.

func replicas(n int32) func(*Set) { return func(s *Set) { s.Spec.Replicas = &n } }

func start(k int32) func(*Set) {
	return func(s *Set) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: k} }
}
func parallel(s *Set) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }
func onDelete(s *Set) {
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}
func enforced(s *Set)     { s.Spec.UpdateStrategy.Type = EnforcedRollingUpdate }
func withoutBlock(s *Set) { s.Spec.UpdateStrategy.RollingUpdate = nil }
func partition(n int32) func(*Set) {
	return func(s *Set) { s.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}
func minReady(n int32) func(*Set)       { return func(s *Set) { s.Spec.MinReadySeconds = n } }
func deleting(s *Set)                   { s.DeletionTimestamp = &metav1.Time{Time: noon()} }
func traits(c func(*Traits)) func(*Set) { return func(s *Set) { c(&s.Traits) } }

func unavailable(m string) func(*Set) {
	return func(s *Set) {
		v := intstr.Parse(m)
		s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &v
	}
}

func claims(names ...string) func(*Set) {
	return func(s *Set) {
		for _, n := range names {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: map[string]string{"disk": n}}})
		}
	}
}

// retains sets the policies by letters, R or D: when scaled, when deleted.
func retains(letters string) func(*Set) {
	policy := map[byte]appsv1.PersistentVolumeClaimRetentionPolicyType{'R': appsv1.RetainPersistentVolumeClaimRetentionPolicyType, 'D': appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	return func(s *Set) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: policy[letters[0]], WhenDeleted: policy[letters[1]]}
	}
}
