package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
)

// draftRetryInterval is the pause before a plan that could not be made is tried again. draftTimeout is
// how long the clusters may take to provide what the plan is made of.
const (
	draftRetryInterval = time.Minute
	draftTimeout       = 2 * time.Minute
)

// drafting is a plan that is being made from one generation of an object, or why it could not be made.
type drafting struct {
	of   string
	busy bool
	err  error
	at   time.Time
}

// without handles a plan that does not exist: it buries an old journal and has the plan made, for the
// user to approve.
func (h *Orchestrator) without(ctx context.Context, name string, d *records.Declared) (reconcile.Result, error) {
	h.forget(name, d != nil)
	if d == nil || d.Over() {
		h.notices.forget(name)
	}
	if err := records.NewStore(h.Live, h.Namespace, name).Delete(ctx); err != nil || d == nil {
		h.with(name, func(s *planState) { s.draft, s.says = nil, saying{} })
		return reconcile.Result{}, err
	}
	at := standing{name: name, declared: d, state: plans.StatePlanning, wrong: reasons.Because(reasons.DeclarationInvalid, d.Wrong)}
	switch {
	case d.Object.GetDeletionTimestamp() != nil:
		return reconcile.Result{}, h.alter(ctx, d.Object.DeepCopy(), func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, records.UnderWay) })
	case at.wrong != nil:
	case plans.RefuseStoredName(name) != nil:
		at.wrong = reasons.Because(reasons.DeclarationInvalid, plans.RefuseStoredName(name))
	case d.Over(): // its record was deleted after the end
		h.with(name, func(s *planState) { s.says = saying{} })
		return reconcile.Result{}, nil
	case d.Spec.ApprovedHash != "":
		at.wrong = reasons.Because(reasons.ApprovalOutdated, fmt.Errorf("spec.approvedHash is %s, but no such plan is stored: ConfigMap %s does not exist; a plan is made only for an object without spec.approvedHash", d.Spec.ApprovedHash, records.RecordName(name)))
	default:
		var later time.Duration
		later, at.wrong = h.drafted(ctx, name, d)
		return h.showing(ctx, at, later)
	}
	return h.showing(ctx, at, 0)
}

// drafted starts making a plan in a goroutine. It returns when to call again, and why the last try
// failed. A cluster that does not respond delays no other plan.
func (h *Orchestrator) drafted(ctx context.Context, name string, d *records.Declared) (time.Duration, error) {
	of := fmt.Sprintf("%s/%d", d.Object.GetUID(), d.Object.GetGeneration())
	h.lock.Lock()
	defer h.lock.Unlock()
	s := h.state(name)
	t := s.draft
	left := time.Duration(0)
	if t != nil && t.of == of {
		left = t.at.Add(draftRetryInterval).Sub(h.Now())
	}
	switch {
	case h.ending || t != nil && t.busy:
		return 0, nil // its end requeues the plan
	case t != nil && t.of == of && left > 0:
		return left, t.err
	}
	t = &drafting{of: of, busy: true}
	s.draft = t
	h.all.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftTimeout)
		defer cancel()
		err := func() (err error) {
			defer plans.RecoverPanic(&err)
			return h.draft(ctx, name, d.Spec)
		}()
		h.lock.Lock()
		t.busy, t.err, t.at = false, err, h.Now()
		ending := h.ending
		h.lock.Unlock()
		if !ending {
			h.wake(name)
		}
	})
	return 0, nil
}

// draft makes a plan with the permissions of the orchestrator, and stores it.
func (w *Setup) draft(ctx context.Context, name string, d *plans.Declaration) error {
	refs, on := map[plans.Side]plans.Ref{}, clusters.Clusters{}
	from, target := d.Source, d.Destination.Place
	if own, _ := plans.RequestedIn(name); from.Namespace == "" {
		from.Namespace = own
	}
	target.Context, target.Namespace = cmp.Or(target.Context, from.Context), cmp.Or(target.Namespace, from.Namespace)
	target.Name, target.Kind = from.Name, cmp.Or(target.Kind, from.Kind)
	for side, place := range map[plans.Side]plans.Place{plans.Source: from, plans.Destination: target} {
		if place.Namespace == "" {
			return fmt.Errorf("spec.%s.namespace is empty, expected that of the set", side)
		}
		kind, err := plans.KindOf(place.Kind)
		if err != nil {
			return err
		}
		c, err := w.cluster(cmp.Or(place.Context, fleet.Home))
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		end, err := c.Connect()
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		uid, err := clusters.ClusterUID(ctx, end.Client)
		if err != nil {
			return fmt.Errorf("%s, cluster %s: %w", side, c.Name, err)
		}
		refs[side] = plans.Ref{Cluster: uid, Context: cmp.Or(place.Context, fleet.Home), Namespace: place.Namespace, Name: place.Name, Kind: kind}
		on[side] = end.Client
	}
	if err := spokenFor(ctx, w.Fleet.Own, name, refs, on); err != nil {
		return err
	}
	asked := d.Spec
	asked.Placeholder = asked.Placeholder.Or(w.PlaceholderImage)
	p, err := preflight.Draft(ctx, on.InTheWordsOf(refs), refs[plans.Source], refs[plans.Destination], preflight.Request{Name: name, ID: rand.String(6), Spec: asked})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the plan cannot be made: %w; grant the orchestrator read access to the set (`kubectl create rolebinding stsmigrate-looks --clusterrole view --serviceaccount %s:orchestrator` in the namespaces %s and %s, with --context of their clusters), or make the plan yourself with `stsmigrate plan`, and hand it over with `stsmigrate apply --detach`",
			err, w.Namespace, refs[plans.Source].Namespace, refs[plans.Destination].Namespace)
	}
	if err != nil {
		return fmt.Errorf("the plan cannot be made: %w", err)
	}
	store := records.NewStore(w.Live, w.Namespace, name)
	if err := store.CreatePlan(ctx, p); err != nil {
		if _, there := store.Plan(ctx); there == nil { // another process was faster
			return nil
		}
		return err
	}
	return nil
}

// cluster finds a cluster by its name; fleet.Home is the orchestrator's own one.
func (w *Setup) cluster(name string) (*fleet.Cluster, error) {
	if name == fleet.Home {
		return w.Fleet.Find(name, w.Fleet.Own)
	}
	return w.Fleet.Find(name, "")
}
