package slicecontroller

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/slicecontroller/core"
)

// Reconciler makes one pass over a set whenever one of its objects changes.
type Reconciler struct {
	kind kind
	// client reads from the cache, and live reads from the API server.
	client client.Client
	live   client.Reader
	// evictions creates evictions. Unlike client, it can switch off its own retries.
	evictions rest.Interface
	events    record.EventRecorder
	now       func() time.Time
	ledger    *ledger
	canary    *canary
	queue     queue // of the sets to reconcile
	gauges    *gauges

	lock     sync.Mutex
	memories map[types.NamespacedName]*memory
}

// memory is what is remembered of a set while the set exists. Only the number of
// events and requests depends on it.
type memory struct {
	uid  types.UID
	lock sync.Mutex
	// told are hashes of the last texts that are told once: the user decides how long and how many they are.
	told   map[[sha256.Size]byte]bool
	filled map[string]corev1.PodTemplateSpec // templates as the API server stores them, by their original JSON
	// wrote is when the status of the set was last written.
	wrote time.Time
	// confirmed is the set as the last pass had it that compared it with the API server; nil if none has. Each pass reads
	// an object of its own from the cache.
	confirmed client.Object
	// young means that this process has seen the set before any controller had looked at it.
	young bool
}

// maxTold is how many texts of a set are remembered. After that many others, a text is told again.
const maxTold = 1024

// first reports whether the text what is new, and records it.
func (m *memory) first(what string) bool {
	key := sha256.Sum256([]byte(what))
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.told[key] {
		return false
	}
	if len(m.told) >= maxTold {
		clear(m.told)
	}
	m.told[key] = true
	return true
}

// lastWrite records, unless now is zero, that the status of the set is written now. It returns when it was last
// written.
func (m *memory) lastWrite(now time.Time) time.Time {
	m.lock.Lock()
	defer m.lock.Unlock()
	if !now.IsZero() {
		m.wrote = now
	}
	return m.wrote
}

// memory returns the memory of a set. That of a previous set of the same name is replaced.
func (r *Reconciler) memory(key types.NamespacedName, uid types.UID) *memory {
	r.lock.Lock()
	defer r.lock.Unlock()
	m := r.memories[key]
	if m == nil || m.uid != uid {
		m = &memory{uid: uid, told: map[[sha256.Size]byte]bool{}, filled: map[string]corev1.PodTemplateSpec{}}
		r.memories[key] = m
	}
	return m
}

// forget drops what is remembered of a deleted set.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.ledger.wait(key, "", time.Time{})
	r.gauges.forget(key)
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.memories, key)
}

// uncachedWriteTimeout is how long a write may be missing from the cache before the
// object is read from the API server.
const uncachedWriteTimeout = 5 * time.Second

// Reconcile does for a set what can be done now:
//
//  1. It reads the set from the cache. If the set is gone, it forgets everything about it.
//  2. It waits if the cache lacks one of our writes.
//  3. It leaves the set unchanged if its spec, except the pod template, is not understood.
//  4. It reads the pods, claims and revisions of the set from the cache.
//  5. It has the pod template defaulted, or uses the last usable one.
//  6. It lets core make a pass.
//  7. It requeues the set for the time when a pod becomes available, or for a retry.
func (r *Reconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	r.gauges.started(q.NamespacedName, r.now())
	o := r.kind.empty()
	err := r.client.Get(ctx, q.NamespacedName, o, client.UnsafeDisableDeepCopy)
	if r.canary.is(q.NamespacedName) && client.IgnoreNotFound(err) == nil {
		return reconcile.Result{}, r.canary.look(ctx, o, err != nil)
	}
	if apierrors.IsNotFound(err) {
		r.forget(q.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.behind(ctx, q.NamespacedName, o.GetUID()) {
		return reconcile.Result{RequeueAfter: uncachedWriteTimeout}, nil // the awaited event wakes it earlier
	}
	now := r.now()
	set, do := r.kind.read(o), effects{r, q.NamespacedName, o}
	template, elsewhere := inTemplate(r.kind.unknown(o))
	if set.Fault = unfit(set, elsewhere); set.Fault != nil {
		return reconcile.Result{}, core.Refuse(ctx, set, now, do)
	}
	w, err := r.see(ctx, set, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	w.Wrote = r.memory(q.NamespacedName, o.GetUID()).lastWrite(time.Time{})
	untried := r.fillIn(ctx, do, w, template)
	outcome, err := core.Sync(ctx, w, do)
	r.gauges.observe(w, outcome)
	return r.after(ctx, q, outcome, errors.Join(untried, err))
}

// after returns when to requeue: when a pod becomes available and, with a back-off, when something failed.
func (r *Reconciler) after(ctx context.Context, q reconcile.Request, outcome core.Outcome, err error) (reconcile.Result, error) {
	var again time.Duration
	if !outcome.Again.IsZero() {
		again = max(outcome.Again.Sub(r.now()), time.Millisecond)
	}
	failed := besides(err, core.ErrBehind)
	switch {
	case errors.Is(err, core.ErrInvalid):
		log.FromContext(ctx).Error(err, "nothing can be done until the set is changed")
		return reconcile.Result{}, nil
	case failed != nil:
		if again > 0 && r.queue != nil {
			r.queue.AddAfter(q, again) // controller-runtime ignores the Result beside an error
		}
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.kind.gvk.Kind, q.NamespacedName, failed)
	case err != nil && (again == 0 || again > uncachedWriteTimeout):
		again = uncachedWriteTimeout
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// besides returns err without expected: of joined errors, it returns those that are not expected.
func besides(err, expected error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, besides(e, expected))
		}
		return errors.Join(out...)
	}
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// behind reports whether the cache lacks one of our writes to the set. A write that is missing for long may
// have been followed by a deletion that no watch showed: then behind reads the object from the API server.
func (r *Reconciler) behind(ctx context.Context, key types.NamespacedName, uid types.UID) bool {
	open, overdue := r.ledger.wait(key, uid, r.now().Add(-uncachedWriteTimeout))
	if !open {
		return false
	}
	if o := r.ledger.oldest(key); o != nil {
		gvk, _ := r.client.GroupVersionKindFor(o) // no error: o was written with this client
		what, _ := meta.UnsafeGuessKindToResource(gvk)
		r.gauges.skips.WithLabelValues(what.Group, what.Resource).Inc()
	}
	for _, e := range overdue {
		have, _ := e.object.DeepCopyObject().(client.Object)
		err := r.live.Get(ctx, client.ObjectKeyFromObject(e.object), have)
		if client.IgnoreNotFound(err) != nil {
			// No event wakes the set meanwhile: it must not wait for a growing back-off.
			log.FromContext(ctx).Info("reading the object of an unconfirmed write from the API server failed; the set waits", "object", e.object.GetName(), "error", err.Error())
			return true
		}
		if err != nil || have.GetUID() != e.object.GetUID() {
			r.ledger.lost(e.object.GetUID())
		}
	}
	open, _ = r.ledger.wait(key, uid, time.Time{})
	return open
}
