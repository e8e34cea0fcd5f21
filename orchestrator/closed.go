package orchestrator

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Plans that are over are most of those that a namespace has. A process remembers nothing of them but that they are there
// (records.Keep): what is said of them is in the metadata of their ConfigMaps.

// ending is an Orchestrator that has a plan before it which may be over.
type ending struct{ *Orchestrator }

// remains is what is kept in memory of a plan. What is not there is nil.
type remains struct {
	plan, journal *corev1.ConfigMap
	object        *unstructured.Unstructured
}

func (h ending) remains(ctx context.Context, name string) (r remains, err error) {
	r.plan, r.journal, r.object = h.recordOf(name), h.recordOf(name), records.NewDeclared(h.Namespace, name)
	r.journal.Name += "-journal"
	missing := func(o client.Object) bool {
		if err == nil {
			err = h.Cached.Get(ctx, client.ObjectKeyFromObject(o), o)
		}
		is := apierrors.IsNotFound(err)
		err = client.IgnoreNotFound(err)
		return is
	}
	if missing(r.plan) {
		r.plan = nil
	}
	if missing(r.journal) {
		r.journal = nil
	}
	if !h.serves(name) || missing(r.object) {
		r.object = nil
	}
	return r, err
}

// closed reports whether a plan is over and nothing is left to do about it, and when its record is to be deleted. It reads
// nothing but what is kept. Whatever it is not sure of is for a whole pass.
func (h ending) closed(ctx context.Context, name string) (later time.Duration, is bool, err error) {
	r, err := h.remains(ctx, name)
	if err != nil || r.object != nil && !h.rests(r.object) {
		return 0, false, err
	}
	if r.plan == nil { // its record was deleted after the end
		return 0, r.journal == nil && r.object != nil && h.drop(name, nil), nil
	}
	e := records.EndingOf(r.plan)
	if e == nil || held(r.plan) || r.journal == nil || !records.KeptAsEnded(r.journal) {
		return 0, false, nil
	}
	if r.object != nil && records.StatusIn(r.object).State != plans.State(e.Outcome) {
		return 0, false, nil
	}
	later, ever := h.keptFor(true, e.At)
	if ever && later == 0 {
		return 0, false, nil
	}
	return later, h.drop(name, e), nil
}

// held reports whether an object waits for its finalizer to be removed, or is being deleted.
func held(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil || controllerutil.ContainsFinalizer(o, records.UnderWay)
}

// rests reports whether the status of an object says how its plan has ended, and the receiver of notifications was told.
func (h ending) rests(o *unstructured.Unstructured) bool {
	return !held(o) && records.KeptAsEnded(o) && h.notices.told(records.StatusIn(o))
}

// drop forgets a plan that is closed, unless this process still has a run of it. The page goes on to show it.
func (h ending) drop(name string, e *records.Ending) bool {
	h.lock.Lock()
	s := h.plans[name]
	busy := s != nil && s.run != nil
	if s != nil && !busy {
		h.waitsNoMore(s)
		h.recall.unlearn(s)
		delete(h.plans, name)
	}
	h.lock.Unlock()
	if busy {
		return false
	}
	h.gauges.forget(name)
	h.notices.forget(name)
	if e == nil {
		h.Board.Remove(h.Namespace, name)
		return true
	}
	r := dashboard.Row{
		Namespace: h.Namespace, Plan: name, State: plans.State(e.Outcome), Source: e.Source, Destination: e.Destination,
		Moved: e.Moved, Ordinals: e.Ordinals, MaxUnavailable: e.MaxUnavailable,
	}
	if e.At != nil {
		since := e.At.UTC()
		r.Since = &since
	}
	h.Board.Set(r)
	return true
}
