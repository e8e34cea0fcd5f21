package slicecontroller

import (
	"context"
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

// Reconciler makes one pass over a set whenever something that it is about has changed.
type Reconciler struct {
	kind kind
	// client reads from the cache, and live from the API server.
	client client.Client
	live   client.Reader
	// evictions are asked for with a client that can be told not to try again by itself.
	evictions rest.Interface
	events    record.EventRecorder
	now       func() time.Time
	ledger    *ledger
	canary    *canary
	queue     queue // of the sets that are to be looked at
	gauges    *gauges

	lock     sync.Mutex
	memories map[types.NamespacedName]*memory
}

// memory is what is remembered of a set for as long as it is there. Nothing rests on it
// but the number of events and requests.
type memory struct {
	uid    types.UID
	lock   sync.Mutex
	told   map[string]bool
	filled map[string]corev1.PodTemplateSpec // templates as they are stored, by what they were
	// current says that the set was seen as the API server had it.
	current bool
}

// first says whether something was not told before.
func (m *memory) first(what string) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	was := m.told[what]
	m.told[what] = true
	return !was
}

// memory is that of a set, and not of a namesake that is no more.
func (r *Reconciler) memory(key types.NamespacedName, uid types.UID) *memory {
	r.lock.Lock()
	defer r.lock.Unlock()
	m := r.memories[key]
	if m == nil || m.uid != uid {
		m = &memory{uid: uid, told: map[string]bool{}, filled: map[string]corev1.PodTemplateSpec{}}
		r.memories[key] = m
	}
	return m
}

// forget drops what is remembered of a set that is no more.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.ledger.wait(key, "", time.Time{})
	r.gauges.forget(key)
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.memories, key)
}

// uncachedWriteTimeout is how long a write may be missing from the cache before the API server is asked
// what has become of it.
const uncachedWriteTimeout = 5 * time.Second

// Reconcile does for a set what can be done now:
//
//  1. reads it from the cache; of one that is gone everything is forgotten
//  2. waits if the cache lacks a write of ours
//  3. leaves it alone if its spec, but for the pod template, is not understood
//  4. reads its pods, claims and revisions from the cache
//  5. has its pod template filled in, or goes by the last one that could be
//  6. lets the core make a pass
//  7. comes back when a pod is due to become available, or to try again
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
		return reconcile.Result{RequeueAfter: uncachedWriteTimeout}, nil // woken before, by what it waits for
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
	untried := r.fillIn(ctx, do, w, template)
	outcome, err := core.Sync(ctx, w, do)
	r.gauges.observe(w, outcome)
	return r.after(ctx, q, outcome, errors.Join(untried, err))
}

// after says when to look again: when a pod is due to become available, and, by a back-off, when something has failed.
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
			r.queue.AddAfter(q, again) // beside an error a Result counts for nothing
		}
		return reconcile.Result{}, fmt.Errorf("%s %s: %w", r.kind.gvk.Kind, q.NamespacedName, failed)
	case err != nil && (again == 0 || again > uncachedWriteTimeout):
		again = uncachedWriteTimeout
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// besides gives what has failed besides one error: of errors that were joined, those that are not it.
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

// behind says whether the cache lacks a write of ours to the set. What is missing for long
// may have been followed by a deletion that no watch has shown: the API server knows.
func (r *Reconciler) behind(ctx context.Context, key types.NamespacedName, uid types.UID) bool {
	open, overdue := r.ledger.wait(key, uid, r.now().Add(-uncachedWriteTimeout))
	if !open {
		return false
	}
	if o := r.ledger.oldest(key); o != nil {
		gvk, _ := r.client.GroupVersionKindFor(o) // it was written with this client
		what, _ := meta.UnsafeGuessKindToResource(gvk)
		r.gauges.skips.WithLabelValues(what.Group, what.Resource).Inc()
	}
	for _, e := range overdue {
		have, _ := e.object.DeepCopyObject().(client.Object)
		err := r.live.Get(ctx, client.ObjectKeyFromObject(e.object), have)
		if client.IgnoreNotFound(err) != nil {
			// Nobody wakes the set meanwhile: it must not wait for a back-off that grows.
			log.FromContext(ctx).Info("the API server cannot say what has become of a write", "object", e.object.GetName(), "error", err.Error())
			return true
		}
		if err != nil || have.GetUID() != e.object.GetUID() {
			r.ledger.lost(e.object.GetUID())
		}
	}
	open, _ = r.ledger.wait(key, uid, time.Time{})
	return open
}
