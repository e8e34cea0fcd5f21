package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

type key struct{ kind, namespace, name string }

func (k key) String() string {
	if k.namespace == "" {
		return k.kind + " " + k.name
	}
	return k.kind + " " + k.namespace + "/" + k.name
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// store is the API server of one cluster, as far as the engine uses it: copies in and out, a resourceVersion
// per write, preconditions, finalizers, and updates that never change a status.
type store struct {
	client.Client // nil: a method that the engine is not known to use panics
	name          string
	objects       map[key]client.Object
	order         []key // sorted, so that the order of iteration is always the same
	version       int64
	made          int
	kinds         *runtime.Scheme
	// newer reports that the API server has fields which the types here do not have. future holds them
	// (newer.go).
	newer  bool
	future map[key]any
	// counts is how many objects were created and removed, by verb, kind and namespace.
	counts map[string]int
	// refuses reports whether a policy of the cluster refuses an object, of which before is nil if it is new; nil for none.
	refuses func(o, before client.Object) bool
	// defaults fills in a set that is created, as the defaults and webhooks of this cluster do; nil for nothing.
	defaults func(*appsv1.StatefulSet)
	// watches are told of every change.
	watches []func(key, clusters.Change)
	// seen is told of every version of every object, and of its end; nil before the history begins.
	seen func(o client.Object, gone bool)
}

func newStore(name string) *store {
	return &store{name: name, objects: map[key]client.Object{}, counts: map[string]int{}, future: map[key]any{}, kinds: clusters.Scheme()}
}

func kindOf(o any) string {
	switch u := o.(type) {
	case *unstructured.Unstructured:
		return u.GetKind()
	case *unstructured.UnstructuredList:
		return u.GetKind()
	}
	return reflect.TypeOf(o).Elem().Name()
}

func keyOf(o client.Object) key { return key{kindOf(o), o.GetNamespace(), o.GetName()} }

func resource(k key) schema.GroupResource { return schema.GroupResource{Resource: k.kind} }

func conflict(k key, why string) error {
	return apierrors.NewConflict(resource(k), k.name, fmt.Errorf("%s", why))
}

// all lists the live objects of a type. The caller must not change them.
func all[T client.Object](s *store) []T {
	var zero T
	kind := kindOf(zero)
	i, _ := slices.BinarySearchFunc(s.order, key{kind: kind}, compareKeys)
	var out []T
	for ; i < len(s.order) && s.order[i].kind == kind; i++ {
		out = append(out, s.objects[s.order[i]].(T))
	}
	return out
}

// get returns the live object of that name, or the zero value. The caller must not change it.
func get[T client.Object](s *store, namespace, name string) (T, bool) {
	var zero T
	o, ok := s.objects[key{kindOf(zero), namespace, name}]
	if !ok {
		return zero, false
	}
	return o.(T), true
}

func clone[T client.Object](o T) T { return o.DeepCopyObject().(T) }

// Get implements client.Reader.
func (s *store) Get(_ context.Context, k client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	full := key{kindOf(into), k.Namespace, k.Name}
	o, ok := s.objects[full]
	if !ok {
		return apierrors.NewNotFound(resource(full), k.Name)
	}
	s.answer(full, o, into)
	return nil
}

// answer fills in what a request gets: a typed object, or all fields of a stored one.
func (s *store) answer(k key, o, into client.Object) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		assign(into, o)
		return
	}
	kind := u.GroupVersionKind()
	u.Object = s.whole(k)
	u.SetGroupVersionKind(kind)
}

func assign(into, o client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
}

// List implements client.Reader for namespaces and label selectors.
func (s *store) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	selector := o.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	kind := strings.TrimSuffix(kindOf(into), "List")
	var items []runtime.Object
	for _, k := range s.order {
		x := s.objects[k]
		if k.kind == kind && (o.Namespace == "" || k.namespace == o.Namespace) && selector.Matches(labels.Set(x.GetLabels())) {
			if _, any := into.(*unstructured.UnstructuredList); any {
				items = append(items, &unstructured.Unstructured{Object: s.whole(k)})
				continue
			}
			items = append(items, x.DeepCopyObject())
		}
	}
	return meta.SetList(into, items)
}

// Create implements client.Writer.
func (s *store) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return s.createWhole(ctx, u)
	}
	k := keyOf(o)
	if _, ok := s.objects[k]; ok {
		return apierrors.NewAlreadyExists(resource(k), k.name)
	}
	if o.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	next := clone(o)
	s.made++
	next.SetUID(types.UID(fmt.Sprintf("%s-%s-%d", s.name, strings.ToLower(k.kind), s.made)))
	next.SetCreationTimestamp(metav1.Unix(int64(s.made), 0))
	next.SetGeneration(1)
	defaults(next)
	if set, ok := next.(*appsv1.StatefulSet); ok && s.defaults != nil {
		s.defaults(set)
	}
	if err := cmp.Or(admit(ctx, admissionv1.Create, nil, next), s.refused(next, nil)); err != nil {
		return err
	}
	s.put(next)
	if _, ok := next.(*batchv1.Job); ok && s.newer {
		s.future[k] = newer(next) // as if the API server had defaulted it
	}
	assign(o, next)
	return nil
}

// defaults sets the fields that an API server defaults.
func defaults(o client.Object) {
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		one, keep := int32(1), appsv1.RetainPersistentVolumeClaimRetentionPolicyType
		o.Status = appsv1.StatefulSetStatus{}
		o.Spec.Replicas = cmp.Or(o.Spec.Replicas, &one)
		o.Spec.PodManagementPolicy = cmp.Or(o.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
		if o.Spec.PersistentVolumeClaimRetentionPolicy == nil {
			o.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: keep, WhenScaled: keep}
		}
	case *corev1.Pod:
		o.Status.Phase = corev1.PodPending
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		o.Finalizers = []string{"kubernetes.io/pvc-protection"}
	case *corev1.PersistentVolume:
		o.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending}
		o.Finalizers = []string{"kubernetes.io/pv-protection"}
	case *policyv1.PodDisruptionBudget:
		o.Status = policyv1.PodDisruptionBudgetStatus{}
	}
}

// Update implements client.Writer. Fields that are not sent are lost.
func (s *store) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	k := keyOf(o)
	old, ok := s.objects[k]
	switch {
	case !ok:
		return apierrors.NewNotFound(resource(k), k.name)
	case o.GetUID() != "" && o.GetUID() != old.GetUID():
		return conflict(k, "the UID in the precondition is another")
	case o.GetResourceVersion() != "" && o.GetResourceVersion() != old.GetResourceVersion():
		return conflict(k, "the object has been modified")
	}
	next := clone(o)
	next.SetUID(old.GetUID())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	next.SetGeneration(old.GetGeneration())
	changed, err := merge(next, old)
	if err != nil {
		return apierrors.NewInvalid(schema.GroupKind{Kind: k.kind}, k.name, nil)
	}
	if changed {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if err := cmp.Or(admit(ctx, admissionv1.Update, old, next), s.refused(next, old)); err != nil {
		return err
	}
	s.put(next)
	delete(s.future, k)
	assign(o, next)
	return nil
}

// Patch implements client.Writer for JSON merge patches.
func (s *store) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	k := keyOf(o)
	was, ok := s.objects[k]
	if !ok {
		return apierrors.NewNotFound(resource(k), k.name)
	}
	raw, err := patch.Data(o)
	must(err)
	var change map[string]any
	must(json.Unmarshal(raw, &change))
	doc := s.whole(k)
	mergeInto(doc, change)
	next, _ := reflect.New(reflect.TypeOf(was).Elem()).Interface().(client.Object)
	if err := s.split(doc, next, func(o client.Object) error { return s.Update(ctx, o) }); err != nil {
		return err
	}
	if _, whole := o.(*unstructured.Unstructured); !whole || s.objects[k] != nil { // the last finalizer may be gone
		s.answer(k, next, o)
	}
	return nil
}

// mergeInto applies a JSON merge patch (RFC 7386).
func mergeInto(doc, change map[string]any) {
	for field, v := range change {
		inner, isMap := v.(map[string]any)
		have, _ := doc[field].(map[string]any)
		switch {
		case v == nil:
			delete(doc, field)
		case isMap:
			if have == nil {
				have = map[string]any{}
			}
			mergeInto(have, inner)
			doc[field] = have
		default:
			doc[field] = v
		}
	}
}

// merge keeps the status of the old object, reports whether a spec that raises the generation has changed,
// and returns an error if an immutable field has changed.
func merge(next, old client.Object) (changed bool, err error) {
	allowed := true
	switch n := next.(type) {
	case *appsv1.StatefulSet:
		o := old.(*appsv1.StatefulSet)
		n.Status = *o.Status.DeepCopy()
		changed = !equality.Semantic.DeepEqual(n.Spec, o.Spec)
		allowed = equality.Semantic.DeepEqual(n.Spec.VolumeClaimTemplates, o.Spec.VolumeClaimTemplates) && n.Spec.PodManagementPolicy == o.Spec.PodManagementPolicy
	case *policyv1.PodDisruptionBudget:
		o := old.(*policyv1.PodDisruptionBudget)
		n.Status = *o.Status.DeepCopy()
		changed = !equality.Semantic.DeepEqual(n.Spec, o.Spec)
	case *corev1.PersistentVolumeClaim:
		o := old.(*corev1.PersistentVolumeClaim)
		n.Status = *o.Status.DeepCopy()
		allowed = equality.Semantic.DeepEqual(n.Spec, o.Spec)
	case *corev1.PersistentVolume:
		o := old.(*corev1.PersistentVolume)
		n.Status = *o.Status.DeepCopy()
		allowed = equality.Semantic.DeepEqual(n.Spec.PersistentVolumeSource, o.Spec.PersistentVolumeSource)
	case *corev1.ConfigMap:
		o := old.(*corev1.ConfigMap)
		fixed := o.Immutable != nil && *o.Immutable
		allowed = !fixed || equality.Semantic.DeepEqual(n.Data, o.Data) && n.Immutable != nil && *n.Immutable
	}
	if !allowed {
		return false, fmt.Errorf("field is immutable")
	}
	return changed, nil
}

// Delete implements client.Writer.
func (s *store) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var d client.DeleteOptions
	d.ApplyOptions(opts)
	k := keyOf(o)
	old, ok := s.objects[k]
	if !ok {
		return apierrors.NewNotFound(resource(k), k.name)
	}
	if p := d.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return conflict(k, "a precondition failed")
		}
	}
	if err := admit(ctx, admissionv1.Delete, old, nil); err != nil {
		return err
	}
	own := propagated(old, d)
	if len(old.GetFinalizers()) == 0 && own == "" && !lasts(old, d) {
		s.remove(k)
		return nil
	}
	if old.GetDeletionTimestamp() == nil {
		next := clone(old)
		if own != "" {
			next.SetFinalizers(append(slices.Clone(old.GetFinalizers()), own))
		}
		now := metav1.NewTime(time.Unix(s.version, 0))
		next.SetDeletionTimestamp(&now)
		s.put(next)
	}
	return nil
}

// lasts reports whether a kubelet has to end a pod before it is gone.
func lasts(o client.Object, d client.DeleteOptions) bool {
	pod, is := o.(*corev1.Pod)
	return is && pod.Spec.NodeName != "" && (d.GracePeriodSeconds == nil || *d.GracePeriodSeconds > 0)
}

// propagated returns the finalizer with which an object waits for the collector to deal with what it owns, or "". A Job
// has no pods here.
func propagated(o client.Object, d client.DeleteOptions) string {
	if _, isJob := o.(*batchv1.Job); isJob || d.PropagationPolicy == nil {
		return ""
	}
	return map[metav1.DeletionPropagation]string{metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents}[*d.PropagationPolicy]
}

// trial returns a store in which writes leave no trace, for a dry run.
func (s *store) trial() *store {
	next := *s
	next.watches, next.seen = nil, nil
	next.objects, next.order, next.counts, next.future = maps.Clone(s.objects), slices.Clone(s.order), map[string]int{}, maps.Clone(s.future)
	return &next
}

// put stores an object as it is, status included, as controllers do. An object that is being deleted is
// removed with its last finalizer.
func (s *store) put(o client.Object) {
	k := keyOf(o)
	old, ok := s.objects[k]
	pod, isPod := o.(*corev1.Pod)
	if isPod {
		was, _ := old.(*corev1.Pod)
		dates(pod, was, metav1.Unix(s.version+1, 0))
	}
	if ok && equality.Semantic.DeepEqual(old, o) {
		return
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && !isPod {
		s.remove(k)
		return
	}
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	s.objects[k] = o
	change := clusters.Change{Version: o.GetResourceVersion(), UID: o.GetUID(), Generation: o.GetGeneration(), Turned: !ok}
	if n, node := o.(*corev1.Node); node {
		was, _ := old.(*corev1.Node)
		change = clusters.NodeChange(was, n)
	}
	defer s.tell(k, change)
	if !ok {
		i, _ := slices.BinarySearchFunc(s.order, k, compareKeys)
		s.order = slices.Insert(s.order, i, k)
		s.counts["made "+k.kind+" "+k.namespace]++
	}
	s.note(o, false)
}

// note adds a version to the history.
func (s *store) note(o client.Object, gone bool) {
	if s.seen != nil {
		s.seen(o, gone)
	}
}

func (s *store) remove(k key) {
	s.version++
	defer s.note(s.objects[k], true)
	delete(s.objects, k)
	delete(s.future, k)
	i, _ := slices.BinarySearchFunc(s.order, k, compareKeys)
	s.order = slices.Delete(s.order, i, i+1)
	s.counts["gone "+k.kind+" "+k.namespace]++
	s.tell(k, clusters.Change{Gone: true, Turned: true})
}

func (s *store) tell(k key, c clusters.Change) {
	for _, tell := range s.watches {
		tell(k, c)
	}
}
