package slicecontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/slicecontroller/admission"
	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// effects carries out the decisions of core for one set.
type effects struct {
	*Reconciler
	key    types.NamespacedName
	object client.Object // the set as it is in the cache
}

// Fresh implements core.Reads.
func (e effects) Fresh(ctx context.Context) (metav1.Object, error) {
	now := e.kind.empty()
	return now, e.live.Get(ctx, e.key, now)
}

// Read implements core.Reads.
func (e effects) Read(ctx context.Context, o core.Object) error {
	return e.live.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// maxRememberedTemplates is how many templates of a set are remembered: those of the set and of its newest
// revision are needed again and again.
const maxRememberedTemplates = 8

// Default implements core.Reads: it creates a PodTemplate as a dry run, and the API server defaults it as
// it would the template of a set. The last results for a set are kept.
func (e effects) Default(ctx context.Context, t corev1.PodTemplateSpec) (corev1.PodTemplateSpec, error) {
	asked, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	m := e.memory(e.key, e.object.GetUID())
	m.lock.Lock()
	defer m.lock.Unlock()
	if filled, known := m.filled[string(asked)]; known {
		return filled, nil
	}
	tried := admission.Trial(e.key.Namespace, t, e.kind.read(e.object).Spec.VolumeClaimTemplates)
	if err := e.client.Create(ctx, tried, client.DryRunAll); err != nil {
		return t, fmt.Errorf("creating the pod template as a dry run: %w", err)
	}
	if len(m.filled) >= maxRememberedTemplates {
		clear(m.filled)
	}
	filled := admission.Untried(tried, t)
	m.filled[string(asked)] = filled
	return filled, nil
}

// Create implements core.Writes (AM-3).
func (e effects) Create(ctx context.Context, o core.Object) error {
	if err := e.known(ctx, o); err != nil {
		return err
	}
	if err := e.client.Create(ctx, o); err != nil {
		return err
	}
	e.wrote(ctx, o, false)
	return nil
}

// Update implements core.Writes. It sends only the changed fields: a later Kubernetes has fields that this
// release does not know, and a write without them would change or clear them. The object must still have
// the resourceVersion that it was read with; otherwise Update returns a conflict.
func (e effects) Update(ctx context.Context, o core.Object) error {
	was := like(o)
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(o), was); err != nil {
		return err
	}
	if was.GetResourceVersion() != o.GetResourceVersion() { // the pass read it itself, after a conflict: the cache is behind
		if err := e.Read(ctx, was); err != nil {
			return err
		}
	}
	if was.GetUID() != o.GetUID() || was.GetResourceVersion() != o.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("it has changed since this pass read it"))
	}
	was.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind()) // a cache sets it, but not in lists
	if err := e.client.Patch(ctx, o, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	e.wrote(ctx, o, false)
	return nil
}

// like returns an empty object of the same type.
func like(o client.Object) client.Object {
	out, _ := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	return out
}

// current checks that the set is as the API server has it, BEFORE a pod goes: the cache may have newer pods beside an
// older set. In a process that just started, an update would go back to a former template: a process asks once. While
// the watch of the sets stalls, a pod may be outside a former range only: a pass that deletes such a pod asks again.
func (e effects) current(ctx context.Context, pod client.Object) error {
	m := e.memory(e.key, e.object.GetUID())
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.confirmed == e.object || m.confirmed != nil && e.kind.read(e.object).Has(pod.GetName()) {
		return nil
	}
	return e.confirm(ctx, m, "pod "+pod.GetName()+" is deleted")
}

// known checks once in a process that the set is as the API server has it, BEFORE a pod or a claim is created: a process
// that just started may have an old set beside newer pods, and an ordinal that has left the range meanwhile may be
// elsewhere by now. A set that no controller has looked at has given up no ordinal.
func (e effects) known(ctx context.Context, o core.Object) error {
	_, pod := o.(*corev1.Pod)
	_, claim := o.(*corev1.PersistentVolumeClaim)
	if !pod && !claim {
		return nil
	}
	m := e.memory(e.key, e.object.GetUID())
	m.lock.Lock()
	defer m.lock.Unlock()
	if e.kind.read(e.object).Status.ObservedGeneration == 0 {
		m.young = true
	}
	if m.confirmed != nil || m.young {
		return nil
	}
	return e.confirm(ctx, m, o.GetName()+" is created")
}

// confirm compares the set with the API server.
func (e effects) confirm(ctx context.Context, m *memory, before string) error {
	now, err := e.Fresh(ctx)
	if err != nil {
		return fmt.Errorf("reading the set before %s: %v", before, err) //nolint:errorlint // an answer about the set is none about another object
	}
	if now.GetUID() != e.object.GetUID() || now.GetGeneration() != e.object.GetGeneration() {
		return fmt.Errorf("%w generation %d of the set, which has generation %d there", core.ErrBehind, now.GetGeneration(), e.object.GetGeneration())
	}
	m.confirmed = e.object
	return nil
}

// Delete implements core.Writes (AM-3).
func (e effects) Delete(ctx context.Context, o core.Object) error {
	if pod, is := o.(*corev1.Pod); is {
		if err := e.current(ctx, pod); err != nil {
			return err
		}
	}
	uid := o.GetUID()
	if err := e.client.Delete(ctx, o, client.Preconditions{UID: &uid}); err != nil {
		return err
	}
	e.wrote(ctx, o, true)
	return nil
}

// Evict implements core.Writes. The client does not retry by itself, as it would after a Retry-After: core
// decides when to retry, and other sets wait for this worker.
func (e effects) Evict(ctx context.Context, pod *corev1.Pod) error {
	if err := e.current(ctx, pod); err != nil {
		return err
	}
	uid, version := pod.UID, pod.ResourceVersion
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}},
	}
	err := e.evictions.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").MaxRetries(0).Body(eviction).Do(ctx).Error()
	if err != nil {
		return err
	}
	e.wrote(ctx, pod, true)
	return nil
}

// Hold implements core.Writes.
func (e effects) Hold(ctx context.Context, held bool) error {
	next, _ := e.object.DeepCopyObject().(client.Object)
	if held {
		controllerutil.AddFinalizer(next, core.Protection)
	} else {
		controllerutil.RemoveFinalizer(next, core.Protection)
	}
	if err := e.client.Patch(ctx, next, client.MergeFromWithOptions(e.object, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	e.wrote(ctx, next, next.GetDeletionTimestamp() != nil)
	return nil
}

// Adopt implements core.Ownership: the patch names the UID, so that it fails for
// another object of the same name.
func (e effects) Adopt(ctx context.Context, o core.Object, owner metav1.OwnerReference) error {
	return e.patch(ctx, o, map[string]any{"ownerReferences": []any{owner}, "uid": o.GetUID()})
}

// Release implements core.Ownership.
func (e effects) Release(ctx context.Context, o core.Object, owner types.UID) error {
	return e.patch(ctx, o, map[string]any{"ownerReferences": []any{map[string]any{"$patch": "delete", "uid": owner}}, "uid": o.GetUID()})
}

func (e effects) patch(ctx context.Context, o core.Object, metadata map[string]any) error {
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	next, _ := o.DeepCopyObject().(client.Object)
	if err := e.client.Patch(ctx, next, client.RawPatch(types.StrategicMergePatchType, raw)); err != nil {
		return err
	}
	e.wrote(ctx, next, false)
	return nil
}

// maxStatusRetries is how often a status is written again if the set changed meanwhile (ST-8).
const maxStatusRetries = 5

// WriteStatus implements core.Effects.
func (e effects) WriteStatus(ctx context.Context, status core.Status) error {
	next, _ := e.object.DeepCopyObject().(client.Object)
	var err error
	for range maxStatusRetries {
		e.kind.tell(next, status)
		if err = e.client.Status().Update(ctx, next); !apierrors.IsConflict(err) {
			break
		}
		now, readErr := e.Fresh(ctx)
		if readErr != nil {
			return readErr
		}
		fresh, _ := now.(client.Object)
		theirs, ours := e.kind.read(fresh).Status, e.kind.read(e.object).Status
		if now.GetUID() != e.object.GetUID() || !equality.Semantic.DeepEqual(theirs, ours) {
			return err // another writer changed the status: the set must be looked at again
		}
		next = fresh
	}
	if err != nil {
		return err
	}
	e.memory(e.key, e.object.GetUID()).lastWrite(e.now())
	e.wrote(ctx, next, false)
	return nil
}

// Tell implements core.Effects.
func (e effects) Tell(about core.Event) {
	if about.Once != "" && !e.memory(e.key, e.object.GetUID()).first(about.Reason+" "+about.Once) {
		return
	}
	about.Message = core.Cut(about.Message, maxQuotedBytes) // it may quote the set or the API server at any length
	tell(e.events, e.client.Scheme(), e.object, about)
}

// wrote records a write in the ledger, and removes it again if the cache already has it. This order misses
// nothing: what the cache receives later reaches the ledger by its event.
func (e effects) wrote(ctx context.Context, o client.Object, gone bool) {
	e.ledger.add(entry{set: e.object.GetUID(), key: e.key, object: o, gone: gone, since: e.now()})
	have := like(o)
	err := e.client.Get(ctx, client.ObjectKeyFromObject(o), have, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil && have.GetUID() == o.GetUID():
		e.ledger.saw(have)
	case apierrors.IsNotFound(err) && gone:
		e.ledger.lost(o.GetUID())
	}
}
