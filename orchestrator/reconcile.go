package orchestrator

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Orchestrator carries out the detached plans of a namespace.
type Orchestrator struct {
	memory

	// all waits for the runs and the drafts of this process.
	all sync.WaitGroup
	// notices is nil where there is no receiver.
	notices *notices
	// drafts has an element for every plan that is being made.
	drafts chan struct{}
	// act carries out a run.
	act func(context.Context, *run) error
}

// Setup is what an Orchestrator needs. Its methods are what can be done of a plan without remembering it.
type Setup struct {
	// Live reads and writes plans without a cache. Cached reads from the watches of the namespace.
	Live      client.Client
	Cached    client.Client
	Namespace string
	Fleet     *fleet.Fleet
	Release
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
	Requests
	Events record.EventRecorder
	// Board has the rows of the page of all plans.
	Board  *dashboard.Board
	gauges *gauges
	spans  tracer
}

// known is a plan that was read before. A plan never changes.
type known struct {
	uid types.UID
	// plan is nil if it is to be read again.
	plan  *plans.Plan
	bytes int64
	// wrong is why this version of its ConfigMap cannot be read.
	wrong   error
	version string
}

// Release is what the program is from.
type Release struct {
	// Version is the version of the program.
	Version string
	// PlaceholderImage has the program that waits in placeholders, for plans that name no image.
	PlaceholderImage string
}

// New returns an Orchestrator that does nothing yet.
func New(s Setup) *Orchestrator {
	h := &Orchestrator{
		memory: memory{Setup: s, news: make(chan event.GenericEvent, 1024), plans: map[string]*planState{}, told: reported{}, peers: records.NewPeers(s.Cached, s.Namespace, s.Holder, s.Now), pulse: newPulse(s)},
		act:    func(ctx context.Context, r *run) error { return r.do(ctx) },
		drafts: make(chan struct{}, maxConcurrentDrafts),
	}
	h.reached = func(of plans.Ref) error { return h.Fleet.Reached(of.Context, of.Cluster) }
	h.Fleet.OnChange(h.again)
	return h
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
//  1. reads object, plan and journal from the cache; a run reads them live. There is nothing to do about a plan that is
//     over (closed)
//  2. makes the plan if there is none, and the journal once the plan is approved
//  3. records in the journal what the object declares
//  4. ends a run that is not wanted any more; its end requeues the plan
//  5. leaves the plan to another process that holds its Lease, until that expires
//  6. delays its start, so that processes with fewer plans are faster
//  7. begins a run
//  8. updates the status, and removes the finalizers of object and plan when both may be deleted
func (h *Orchestrator) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	defer h.pulse.pass()()
	if err := h.census(ctx); err != nil {
		return reconcile.Result{}, err
	}
	defer h.saw(q.Name) // whatever comes of it: one plan that cannot be read keeps no room from the others
	if later, closed, err := (ending{h}).closed(ctx, q.Name); err != nil || closed {
		return reconcile.Result{RequeueAfter: later}, err
	}
	result, err := h.pass(ctx, q.Name)
	if isUnreadable(err) {
		return h.unread(ctx, q.Name, err)
	}
	return result, err
}

func (h *Orchestrator) pass(ctx context.Context, name string) (result reconcile.Result, err error) {
	defer plans.RecoverPanic(&err)
	d, err := h.declared(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	p, j, err := h.read(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if p == nil {
		return h.without(ctx, name, d)
	}
	h.with(name, func(s *planState) {
		s.told.isNews(aboutRecord, "")
		s.draft, s.by = nil, h.approver(d)
	})
	if gone, err := h.retracted(ctx, p, j, d); gone || err != nil {
		return reconcile.Result{}, err // the deletion requeues the plan
	}
	if j == nil {
		h.with(name, (*planState).end) // it writes nothing without the journal, and recovery needs its Lease
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
	if h.isNews(p.Name, aboutStatus, text(unshown)) && unshown != nil {
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
func (m *memory) old(ctx context.Context, p *plans.Plan, j *journal.Journal) (time.Duration, error) {
	if left, ever := m.keptFor(j.Over(), j.EndedAt); !ever || left > 0 {
		return left, nil
	}
	return 0, records.NewStore(m.Live, m.Namespace, p.Name).Forget(ctx, p, m.Holder, m.dead(ctx, p.Name), m.Now)
}

// keptFor returns how long the record of a plan must still be kept, and whether it is deleted
// automatically at all.
func (w *Setup) keptFor(over bool, ended *metav1.Time) (time.Duration, bool) {
	if w.ForgetAfter == 0 || !over || ended == nil {
		return 0, false
	}
	return max(w.ForgetAfter-w.Now().Sub(ended.Time), 0), true
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
	s := h.state(p.Name)
	if r := s.run; r != nil {
		if r.hear(j); !r.suits(what, p, asked) {
			r.end()
		}
		return reconcile.Result{}
	}
	if what == nothing || h.ending {
		s.tries = nil
		h.waitsNoMore(s)
		return reconcile.Result{}
	}
	if wait := h.leased(ctx, p.Name); wait > 0 {
		s.elsewhere(j)
		h.waitsNoMore(s)
		return reconcile.Result{RequeueAfter: wait}
	}
	if wait := s.turn(h.Now(), len(h.running())); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}
	}
	h.seen(p.Name)
	if h.hasRoom(s, urgencyOf(p, j, what), needs(j, what, asked.Command)) {
		s.tried().from = placeOf(j)
		h.begin(ctx, p, j, what, asked)
	}
	return reconcile.Result{}
}

// begin starts a run. The caller holds the lock.
func (h *Orchestrator) begin(ctx context.Context, p *plans.Plan, j *journal.Journal, what action, asked requests.Requested) {
	command := asked.Command
	r := &run{orchestrator: h, plan: p, what: what, command: command, careful: asked.Careful, gone: command.Assurance.SourceGone || j.Assurances.SourceGone, fresh: fresh(j, command), stop: make(chan struct{}), finish: make(chan struct{}), asked: make(chan struct{}, 1)}
	r.looksOn.Store(j.LooksOn())
	r.flies.Store(what == carry && j.Down(p))
	r.passed.Store(!r.fresh)
	h.state(p.Name).run = r
	h.gauges.running.WithLabelValues().Inc()
	h.all.Go(func() {
		err := r.safely(context.WithoutCancel(ctx)) // the run outlives this reconcile; stop ends it
		h.lock.Lock()
		s := h.state(p.Name)
		s.run = nil
		h.divide()
		h.gauges.running.WithLabelValues().Dec()
		s.delay(h.Now(), err)
		ending := h.ending
		h.lock.Unlock()
		if !ending {
			h.wake(p.Name)
		}
	})
}

// read returns plan and journal, nil for each that does not exist (yet).
func (m *memory) read(ctx context.Context, name string) (*plans.Plan, *journal.Journal, error) {
	var cm corev1.ConfigMap
	from, buried := there(&m.Setup), false
	if m.with(name, func(s *planState) { buried = s.buried }); buried {
		from = m.Cached
	}
	if err := from.Get(ctx, client.ObjectKeyFromObject(m.recordOf(name)), &cm); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	m.with(name, func(s *planState) { s.buried = false })
	p, err := m.planIn(ctx, name, &cm)
	if errors.As(err, new(records.ErrNoPlan)) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	j, _, err := records.NewStore(entire(&m.Setup), m.Namespace, name).Journal(ctx, p)
	if errors.As(err, new(records.ErrNoJournal)) || errors.As(err, new(journal.ErrOtherPlan)) {
		return p, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return p, j, nil
}

// planIn returns the plan of a ConfigMap, which is read once.
func (m *memory) planIn(ctx context.Context, name string, cm *corev1.ConfigMap) (*plans.Plan, error) {
	var k known
	m.with(name, func(s *planState) { k = s.known })
	switch {
	case k.uid == cm.UID && k.plan != nil:
		return k.plan, nil
	case k.uid == cm.UID && k.wrong != nil && k.version == cm.ResourceVersion:
		return nil, k.wrong
	}
	p, err := records.NewStore(entire(&m.Setup), m.Namespace, name).Plan(ctx)
	if err == nil {
		err = m.unserved(m.Namespace, p)
	}
	k = known{uid: cm.UID, plan: p, version: cm.ResourceVersion}
	if errors.As(err, new(records.ErrUnreadable)) {
		p, k.plan, k.wrong = nil, nil, err
	} else if err != nil {
		return nil, err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.recall.learn(m.plans, m.state(name), k)
	return p, err
}

// Learn passes a Secret to the fleet, and requeues the plans that wait for a cluster, or could not be made.
func (m *memory) Learn(s *corev1.Secret) error {
	err := m.Fleet.Learn(s)
	m.lock.Lock()
	var waiting []string
	for name, p := range m.plans {
		if p.lost {
			waiting = append(waiting, name)
			p.tries, p.lost = nil, false
		}
		if t := p.draft; t != nil && fleet.Holds(s) {
			t.outdated = true
			waiting = append(waiting, name)
		}
	}
	m.divide() // a cluster may be another one now, or not be silent any more
	m.lock.Unlock()
	for _, name := range waiting {
		m.wake(name)
	}
	return err
}
