package orchestrator

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/refusals"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Orchestrator carries out the detached plans of a namespace.
type Orchestrator struct {
	Setup

	news chan event.GenericEvent

	lock   sync.Mutex
	ending bool
	runs   map[string]*run
	all    sync.WaitGroup
	plans  map[string]known
	tries  map[string]*tries
	lost   map[string]bool        // plans that wait for a cluster
	told   map[string]string      // the last reported error of a plan
	says   map[string]saying      // what this process has the status of a plan say
	leases records.LeaseSightings // Leases of plans that other processes carry out
	// waiting holds the plans for which this process has no room.
	waiting map[string]*waiter
	drafts  map[string]*drafting
	// notices is nil where there is no receiver.
	notices *notices
	// checks limits how many plans are checked for the first time at once.
	checks *wavelimit.Limiter
}

// maxConcurrentChecks is how many plans are checked at once per cluster. The checks of many plans take
// the same time in total, but the plans that are checked first can move meanwhile. The finished checks
// of a plan are lost when its process dies.
const maxConcurrentChecks = 4

// Setup is what an Orchestrator needs.
type Setup struct {
	// Live reads and writes plans without a cache. Cached reads from the watches of the namespace.
	Live      client.Client
	Cached    client.Client
	Namespace string
	Fleet     *fleet.Fleet
	// Version is the version of the program.
	Version string
	// Holder names this process in the Leases. Dead reports whether another holder is certainly gone.
	Holder string
	Dead   func(holder string) bool
	Now    func() time.Time
	// Slots limits how many waves are under way at once.
	Slots *wavelimit.Limiter
	// StepTimeout is the StepTimeout of Options.
	StepTimeout time.Duration
	// MaxPlans is how many plans may be under way in this process at once; 0 means no limit.
	MaxPlans int
	// ForgetAfter is how long the record of an ended plan is kept; 0 means for ever.
	ForgetAfter time.Duration
	// Requesters reports that admission writes down who has set each request of a StatefulSetMigration.
	Requesters bool
	Events     record.EventRecorder
	// Board has the rows of the page of all plans.
	Board  *dashboard.Board
	gauges *gauges
	spans  tracer
}

// known is a plan that was read before. A plan never changes.
type known struct {
	uid  types.UID
	plan *plans.Plan
}

// tries records when this process may begin a plan.
type tries struct {
	// from is where the plan was when this process last began it.
	from place
	// anew reports that another process had the plan meanwhile: the next start is spread as the first one.
	anew     bool
	failures int
	// overtaken counts the last runs that were overtaken, in a row.
	overtaken int
	refusals  refusals.Counter
	after     time.Time
}

// New returns an Orchestrator that does nothing yet.
func New(s Setup) *Orchestrator {
	return &Orchestrator{
		Setup: s, news: make(chan event.GenericEvent, 1024),
		runs: map[string]*run{}, plans: map[string]known{}, tries: map[string]*tries{}, lost: map[string]bool{}, told: map[string]string{}, says: map[string]saying{}, leases: records.LeaseSightings{}, waiting: map[string]*waiter{}, drafts: map[string]*drafting{},
		checks: wavelimit.New(maxConcurrentChecks),
	}
}

// action is what to do about a plan now.
type action string

const (
	nothing action = ""
	carry   action = "carry"  // carry the plan out
	keep    action = "keep"   // keep its names, and let drains through
	unname  action = "unname" // remove the names that it has kept
)

// actionFor returns what the journal and the Declaration ask for. A plan that has begun and not ended,
// and of which nothing moves now, keeps its names and lets drains of either side through.
func actionFor(p *plans.Plan, j *journal.Journal, d *plans.Declaration) (action, requests.Requested) {
	if !j.Detached {
		return nothing, requests.Requested{}
	}
	asked := requests.Read(p, j, d)
	switch {
	case asked.Work:
		return carry, asked
	case asked.RemoveNames:
		return unname, asked
	case len(p.Directories()) == 0 && !engine.OneSideOpen(p, j), j.Epoch == 0:
	case j.Over():
	default:
		return keep, asked
	}
	return nothing, asked
}

// Reconcile makes the runs of this process match the StatefulSetMigration and the journal of a plan:
//
//  1. reads object, plan and journal from the cache; a run reads them live
//  2. makes the plan if there is none, and the journal once the plan is approved
//  3. records in the journal what the object declares
//  4. ends a run that is not wanted any more; its end requeues the plan
//  5. leaves the plan to another process that holds its Lease, until that expires
//  6. delays its start, so that processes with fewer plans are faster
//  7. begins a run
//  8. updates the status, and removes the finalizers of object and plan when both may be deleted
func (h *Orchestrator) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	result, err := h.pass(ctx, q.Name)
	if isUnreadable(err) {
		return h.unread(ctx, q.Name, err)
	}
	return result, err
}

func (h *Orchestrator) pass(ctx context.Context, name string) (result reconcile.Result, err error) {
	defer plans.RecoverPanic(&err)
	d, err := records.ReadDeclared(ctx, h.Cached, h.Namespace, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	p, j, err := h.read(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p == nil {
		h.forget(name)
		return h.without(ctx, name, d)
	}
	h.isNews(recordOf(name), "")
	h.undraft(name)
	if j == nil {
		h.halt(name) // it writes nothing without the journal, and recovery needs its Lease
		return h.opened(ctx, p, d)
	}
	holder, left, err := h.holder(ctx, h.Cached, p.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if j, err = h.hear(ctx, p, j, d); err != nil {
		return reconcile.Result{}, err
	}
	spec := h.said(j, d)
	state := records.State(p, j, holder)
	h.gauges.plan(p, j, state, holder, h.Holder)
	what, asked := actionFor(p, j, spec)
	result = h.settle(ctx, p, j, what, asked)
	if result.RequeueAfter, err = h.crowded(ctx, p, j, result.RequeueAfter); err != nil {
		return result, err
	}
	again, unshown := h.show(ctx, standing{name: p.Name, declared: d, plan: p, journal: j, state: state, holder: holder, asked: asked})
	unshown = errors.Join(unshown, h.letGo(ctx, p, j))
	if h.isNews("front of "+p.Name, text(unshown)) && unshown != nil {
		log.Log.WithName("plan").Info("status or finalizers of the StatefulSetMigration cannot be written", "plan", p.Name, "error", unshown.Error())
	}
	if unshown != nil && result.RequeueAfter == 0 {
		result.RequeueAfter = mirrorRetryInterval // otherwise the last state would never be shown
	}
	if result.RequeueAfter == 0 {
		result.RequeueAfter, err = h.old(ctx, p, j)
	}
	result.RequeueAfter = sooner(sooner(result.RequeueAfter, again), left) // nothing reports that a Lease is renewed no longer
	return result, err
}

// sooner returns the shorter of two pauses, of which 0 means that there is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// old deletes the record of a plan that ended long ago. Otherwise it returns how long to wait before
// that; 0 means that there is nothing to wait for.
func (h *Orchestrator) old(ctx context.Context, p *plans.Plan, j *journal.Journal) (time.Duration, error) {
	if left, ever := h.keptFor(j); !ever || left > 0 {
		return left, nil
	}
	return 0, records.NewStore(h.Live, h.Namespace, p.Name).Forget(ctx, p, h.Holder, h.dead(ctx, p.Name), h.Now)
}

// keptFor returns how long the record of a plan must still be kept, and whether it is deleted
// automatically at all.
func (h *Orchestrator) keptFor(j *journal.Journal) (time.Duration, bool) {
	if h.ForgetAfter == 0 || !j.Over() || j.EndedAt == nil {
		return 0, false
	}
	return max(h.ForgetAfter-h.Now().Sub(j.EndedAt.Time), 0), true
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// mirrorRetryInterval is the pause before a failed status update is tried again.
const mirrorRetryInterval = 10 * time.Second

// settle does what Reconcile describes from the fourth step on.
func (h *Orchestrator) settle(ctx context.Context, p *plans.Plan, j *journal.Journal, what action, asked requests.Requested) reconcile.Result {
	h.lock.Lock()
	defer h.lock.Unlock()
	if r := h.runs[p.Name]; r != nil {
		if r.hear(j); !r.suits(what, p, asked) {
			r.end()
		}
		return reconcile.Result{}
	}
	if what == nothing || h.ending {
		delete(h.tries, p.Name)
		h.waitsNoMore(p.Name)
		return reconcile.Result{}
	}
	if wait := h.leased(ctx, p.Name); wait > 0 {
		h.elsewhere(p.Name, j)
		h.waitsNoMore(p.Name)
		return reconcile.Result{RequeueAfter: wait}
	}
	if wait := h.turn(p.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}
	}
	if h.hasRoom(p.Name, urgencyOf(p, j, what)) {
		h.triesOf(p.Name).from = placeOf(j)
		h.begin(ctx, p, j, what, asked.Command)
	}
	return reconcile.Result{}
}

// read returns plan and journal, nil for each that does not exist (yet).
func (h *Orchestrator) read(ctx context.Context, name string) (*plans.Plan, *journal.Journal, error) {
	store := records.NewStore(h.Cached, h.Namespace, name)
	uid, err := store.UID(ctx)
	if errors.As(err, new(records.ErrNoPlan)) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	h.lock.Lock()
	k := h.plans[name]
	h.lock.Unlock()
	if k.plan == nil || k.uid != uid {
		if k.plan, err = store.Plan(ctx); err != nil {
			return nil, nil, err
		}
		k.uid = uid
		h.lock.Lock()
		h.plans[name] = k
		h.lock.Unlock()
	}
	j, _, err := store.Journal(ctx, k.plan)
	if errors.As(err, new(records.ErrNoJournal)) || errors.As(err, new(journal.ErrOtherPlan)) {
		return k.plan, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return k.plan, j, nil
}

// halt ends the run of a plan, if there is one.
func (h *Orchestrator) halt(name string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if r := h.runs[name]; r != nil {
		r.end()
	}
}

// forget drops everything remembered of a plan that no longer exists.
func (h *Orchestrator) forget(name string) {
	h.halt(name)
	h.lock.Lock()
	defer h.lock.Unlock()
	delete(h.plans, name)
	delete(h.tries, name)
	delete(h.told, name)
	delete(h.told, "front of "+name)
	delete(h.told, recordOf(name))
	delete(h.told, "notified of "+name)
	delete(h.leases, records.LeaseName(name))
	h.waitsNoMore(name)
	h.gauges.forget(name)
	h.Board.Remove(h.Namespace, name)
}

// holder returns which process carries a plan out, or "", and how long that is certain. It compares no two clocks:
// two processes whose clocks differ would otherwise not agree, and each replace the status that the other one writes.
func (h *Orchestrator) holder(ctx context.Context, from client.Reader, name string) (string, time.Duration, error) {
	var l coordinationv1.Lease
	if err := from.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: records.LeaseName(name)}, &l); err != nil {
		return "", 0, client.IgnoreNotFound(err)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	holder, left := h.leases.Holder(&l, h.Dead, h.Now)
	return holder, left, nil
}

// leased returns how long the Lease of a plan keeps this process away; 0 means not at all. The caller
// holds the lock.
func (h *Orchestrator) leased(ctx context.Context, name string) time.Duration {
	var l coordinationv1.Lease
	if h.Cached.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: records.LeaseName(name)}, &l) != nil {
		return 0 // there is no Lease, or the write that takes it fails
	}
	return records.LeaseLeft(&l, h.Holder, h.Dead, h.leases.Since(&l, h.Now), h.Now())
}

// dead returns a function that reports whether the holder of a plan's Lease is gone: because Dead is
// certain of it, or because this process has watched the Lease expire.
func (h *Orchestrator) dead(ctx context.Context, name string) func(holder string) bool {
	return func(holder string) bool {
		if h.Dead(holder) {
			return true
		}
		var l coordinationv1.Lease
		if h.Cached.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: records.LeaseName(name)}, &l) != nil ||
			l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != holder {
			return false // this process has not watched the present holder yet
		}
		h.lock.Lock()
		defer h.lock.Unlock()
		return h.leased(ctx, name) == 0
	}
}

// startDelayPerPlan is how much every plan under way delays the start of a new one in the same process,
// and maxStartDelay is the longest delay. Among equal processes, the one with the fewest plans begins
// first.
const (
	startDelayPerPlan = 20 * time.Millisecond
	maxStartDelay     = 2 * time.Second
)

// turn returns how long to wait before this process may begin a plan.
func (h *Orchestrator) turn(name string) time.Duration {
	now, t := h.Now(), h.tries[name]
	if t == nil {
		t = &tries{anew: true}
		h.tries[name] = t
	}
	if t.anew {
		pause := min(time.Duration(len(h.runs))*startDelayPerPlan, maxStartDelay)
		spread := now.Add(pause + rand.N(startDelayPerPlan)) //nolint:gosec // it spreads, and hides nothing
		if t.anew = false; t.after.Before(spread) {
			t.after = spread
		}
	}
	return t.after.Sub(now)
}

// place is where a plan is. It changes with every progress, and with no takeover.
type place struct {
	leg     plans.Leg
	done    int
	outcome plans.Outcome
}

func placeOf(j *journal.Journal) place { return place{j.Leg, j.Done, j.Outcome} }

// elsewhere notes that another process has the Lease of a plan. What has failed here still counts, unless
// the plan has got on meanwhile: otherwise two processes that are both refused would forget their pauses and
// refusals in turn, and the plan would never be blocked (L3). The caller holds the lock.
func (h *Orchestrator) elsewhere(name string, j *journal.Journal) {
	switch t := h.tries[name]; {
	case t == nil:
	case t.from != placeOf(j):
		delete(h.tries, name)
	default:
		t.anew = true
	}
}

// failed delays the next try of a plan that could not be begun or continued, longer after every failure, up to the ten
// seconds of L3: an ordinal may be in flight.
func (h *Orchestrator) failed(name string) {
	t := h.triesOf(name)
	t.after = h.Now().Add(min(time.Second<<min(t.failures, 4), 10*time.Second))
	t.failures++
}

// overtaken counts a run that was overtaken, and returns how many there were in a row.
func (h *Orchestrator) overtaken(name string) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	t := h.triesOf(name)
	t.overtaken++
	return t.overtaken
}

// final reports whether a plan that cannot be continued needs the user (L3).
func (h *Orchestrator) final(name string, why error) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.triesOf(name).refusals.GiveUp(why, refusals.Rule{Patience: h.StepTimeout, Renewed: true}, h.Now())
}

// triesOf returns the tries of a plan. The caller holds the lock.
func (h *Orchestrator) triesOf(name string) *tries {
	if h.tries[name] == nil {
		h.tries[name] = &tries{}
	}
	return h.tries[name]
}

// plansOf returns a request for the plan that an object of the namespace belongs to.
func plansOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[plans.PlanLabel]
	if o.GetObjectKind().GroupVersionKind().Kind == plans.DeclarationKind {
		name = o.GetName() // users write these without a label
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// isNews reports whether an error of a plan differs from the last one, so that an outage is reported
// once. An empty error forgets the last one.
func (h *Orchestrator) isNews(plan, err string) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	was := h.told[plan]
	if err == "" {
		delete(h.told, plan)
	} else {
		h.told[plan] = err
	}
	return was != err
}

// wake requeues a plan.
func (h *Orchestrator) wake(name string) {
	h.news <- event.GenericEvent{Object: &corev1.ConfigMap{ObjectMeta: named(h.Namespace, name)}}
}

// Learn passes a Secret to the fleet, and requeues the plans that wait for a cluster.
func (h *Orchestrator) Learn(s *corev1.Secret) error {
	err := h.Fleet.Learn(s)
	h.lock.Lock()
	var waiting []string
	for name := range h.lost {
		waiting = append(waiting, name)
		delete(h.tries, name)
	}
	clear(h.lost)
	h.lock.Unlock()
	for _, name := range waiting {
		h.wake(name)
	}
	return err
}
