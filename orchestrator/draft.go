package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// draftRetryInterval is the pause before a plan that could not be made is tried again. It doubles with every failure, up
// to maxDraftRetryInterval. draftTimeout is how long the clusters may take to provide what the plan is made of.
const (
	draftRetryInterval    = time.Minute
	maxDraftRetryInterval = 30 * time.Minute
	draftTimeout          = 2 * time.Minute
	// maxConcurrentDrafts is how many plans a process makes at once.
	maxConcurrentDrafts = 4
)

// drafting is a plan that is being made from one revision of an object, or why it could not be made.
type drafting struct {
	of   string
	busy bool
	// outdated reports that a Secret with clusters has changed since the last try began.
	outdated bool
	// err is why the last try has failed, also while the next one is under way.
	err   error
	at    time.Time
	tries int
}

// left returns how long the next try has to wait.
func (t *drafting) left(now time.Time) time.Duration {
	if t.outdated {
		return 0
	}
	return max(t.at.Add(min(draftRetryInterval<<min(t.tries-1, 10), maxDraftRetryInterval)).Sub(now), 0)
}

// without handles a plan that does not exist: it buries an old journal and has the plan made, for the
// user to approve.
func (h *Orchestrator) without(ctx context.Context, name string, d *records.Declared) (reconcile.Result, error) {
	h.forget(name, d != nil)
	if d == nil || d.Over() {
		h.notices.forget(name)
	}
	if err := h.bury(ctx, name, d != nil); err != nil || d == nil {
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
		later := draftLookInterval
		if at.holder, at.wrong = h.drafter(ctx, name), lastTold(d); at.holder == h.Holder {
			later, at.wrong = h.drafted(ctx, name, d)
		}
		return h.showing(ctx, at, later)
	}
	return h.showing(ctx, at, 0)
}

// bury deletes the journal of an old plan of a name, once for an object that is declared.
func (h *Orchestrator) bury(ctx context.Context, name string, declared bool) error {
	h.lock.Lock()
	buried := h.plans[name] != nil && h.plans[name].buried
	h.lock.Unlock()
	if buried {
		return nil
	}
	if err := records.NewStore(h.Live, h.Namespace, name).Delete(ctx); err != nil || !declared {
		return err
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	h.state(name).buried = true
	return nil
}

// draftLookInterval is how often a process that does not make a plan looks whether the one that does is still alive.
const draftLookInterval = records.LeaseSeconds * time.Second

// drafter returns which of the live orchestrators makes the plan of an object. They agree without a word, except while
// one begins or ends: then two may, and the plan that is stored first counts.
func (h *Orchestrator) drafter(ctx context.Context, name string) string {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.peers.First(ctx, name)
}

// lastTold returns why no plan could be made of this generation of an object, as its status says, or nil.
func lastTold(d *records.Declared) error {
	c := meta.FindStatusCondition(d.Status.Conditions, "Stalled")
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != d.Object.GetGeneration() {
		return nil
	}
	text, tagged := strings.CutSuffix(c.Message, reasons.Tagged(reasons.ID(c.Reason), " ")[1:])
	if !tagged {
		return errors.New(c.Message)
	}
	return reasons.Because(reasons.ID(c.Reason), errors.New(text))
}

// revision identifies what a plan is made of. A user who has granted a right or repaired something can have the plan
// tried at once by an annotation.
func revision(d *records.Declared) string {
	return fmt.Sprintf("%s/%d/%v", d.Object.GetUID(), d.Object.GetGeneration(), d.Object.GetAnnotations())
}

// drafted starts making a plan in a goroutine. It returns when to call again, and why the last try has failed. A
// cluster that does not respond delays no other plan.
func (h *Orchestrator) drafted(ctx context.Context, name string, d *records.Declared) (time.Duration, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	s := h.state(name)
	t := s.draft
	if t == nil || !t.busy && t.of != revision(d) {
		t = &drafting{of: revision(d), err: lastTold(d)}
		s.draft = t
	}
	switch {
	case h.ending || t.busy:
		return 0, t.err // its end requeues the plan
	case t.tries > 0 && t.left(h.Now()) > 0:
		return t.left(h.Now()), t.err
	}
	if t.outdated {
		t.tries = 0
	}
	t.busy, t.outdated = true, false
	h.all.Go(func() {
		err := h.draftInTurn(ctx, name, t.of)
		h.lock.Lock()
		t.busy, t.err, t.at = false, err, h.Now()
		t.tries++
		ending := h.ending
		h.lock.Unlock()
		if !ending {
			h.wake(name)
		}
	})
	return 0, t.err
}

// draftInTurn makes a plan of an object when few others are being made, unless the object has changed meanwhile. ctx
// ends the wait only.
func (h *Orchestrator) draftInTurn(ctx context.Context, name, of string) (err error) {
	defer plans.RecoverPanic(&err)
	select {
	case h.drafts <- struct{}{}:
		defer func() { <-h.drafts }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftTimeout)
	defer cancel()
	d, err := h.declared(ctx, name)
	if err != nil || d == nil || d.Spec == nil || revision(d) != of {
		return err
	}
	return h.draft(ctx, name, d.Spec)
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
	places := map[plans.Side]plans.Place{plans.Source: from, plans.Destination: target}
	for _, side := range plans.Sides() { // in this order, so that each try fails with the same words
		place := places[side]
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
		object := records.NewDeclared(w.Namespace, name)
		return fmt.Errorf("the plan cannot be made: %w; grant the orchestrator read access to the set (`kubectl create rolebinding stsmigrate-looks --clusterrole view --serviceaccount %s:orchestrator` in the namespaces %s and %s, with --context of their clusters), and annotate the object (`kubectl -n %s annotate --overwrite stsm %s tried=again`), or make the plan yourself with `stsmigrate plan`, and hand it over with `stsmigrate apply --detach`",
			err, w.Namespace, refs[plans.Source].Namespace, refs[plans.Destination].Namespace, object.GetNamespace(), object.GetName())
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
