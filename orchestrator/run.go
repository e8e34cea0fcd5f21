package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// run is a plan under way in this process.
type run struct {
	orchestrator *Orchestrator
	plan         *plans.Plan
	what         action
	command      plans.Command
	careful      bool // as in the Declaration
	// gone reports that the user has vouched for the end of the source's cluster.
	gone bool
	// fresh reports that the plan was never begun and will begin now: every check runs first.
	fresh bool
	doing
	// finish, when closed, ends the run as soon as no ordinal is in flight, and stop after the write under way.
	finish, stop chan struct{}
	once         sync.Once
	// asked has a value when another writer has requested a pause in the journal.
	asked chan struct{}
	// broken is a panic in one of the run's other goroutines.
	broken atomic.Pointer[plans.Panic]
	// events writes events on the two sets, as soon as their clusters are known.
	events *runner.EventWriter
}

// doing is what a run does, as far as its room depends on it.
type doing struct {
	// displaced reports that the run was asked to end to make room for another plan.
	displaced bool
	// passed reports that the checks of the plan have passed, if it needs any. flies reports that ordinals are on
	// neither side, and looksOn that the plan is blocked, and continues by itself when what it waits for has ended.
	passed, flies, looksOn atomic.Bool
}

// end stops the run after the write that is under way.
func (r *run) end() { r.once.Do(func() { close(r.stop) }) }

// stopped reports whether the run was asked to end after the write that is under way.
func (r *run) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// giveWay asks the run to end for another plan: one that moves ordinals after its wave, unless a cluster is silent that the
// wave needs, and any other one at once. The caller holds the lock of the memory.
func (r *run) giveWay(silent bool) {
	if !r.finishes(silent) {
		r.end()
	} else if !r.displaced {
		close(r.finish)
	}
	r.displaced = true
}

// finishes reports whether the run ends soon by itself when it is to finish.
func (r *run) finishes(silent bool) bool {
	at := r.stage()
	return at == idle || at == flying && !silent
}

// stage returns what the run does now.
func (r *run) stage() stage {
	switch {
	case r.what != carry:
		return keeping
	case !r.passed.Load():
		return checking
	case r.looksOn.Load():
		return looking
	case r.flies.Load():
		return flying
	}
	return idle
}

// turns notes what the run does from now on, which may let others begin. Where the waves of runs are matters to plans with
// ordinals on neither side alone, of which few wait.
func (r *run) turns(what *atomic.Bool, now bool) {
	if what.Swap(now) != now && (what != &r.flies || r.orchestrator.urgent.Load()) {
		r.orchestrator.again()
	}
}

// hear notifies the run of a requested pause. Otherwise the run would notice it only at its next write,
// for which a wave may wait long.
func (r *run) hear(j *journal.Journal) {
	if !j.Paused {
		return
	}
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// suits reports whether the run does what is wanted now. A run that carries the plan ends by itself when
// the plan is paused, blocked or over. A request that the run has not taken over yet, or another care, needs a new run.
func (r *run) suits(what action, p *plans.Plan, asked requests.Requested) bool {
	if r.plan.ID != p.ID || r.plan.Hash != p.Hash {
		return false // the run of an earlier plan of this name
	}
	switch {
	case r.what == carry && r.careful != asked.Careful:
		return false
	case r.what == carry:
	case r.what != what:
		return false
	case what == keep:
		return true
	}
	return asked.Observed == nil || asked.Command.Is(r.command)
}

// fresh reports whether a plan is checked before it is carried. A plan to be aborted is not: it has
// nothing to lose, and its failing checks may be the reason for the abort.
func fresh(j *journal.Journal, command plans.Command) bool {
	return j.Epoch == 0 && command.Direction == plans.Move
}

// safely calls do, and blocks the plan if the program itself panics. The returned error delays every
// further run for the plan: the same program would also run the one that keeps its names.
func (r *run) safely(ctx context.Context) error {
	err := func() (err error) {
		defer plans.RecoverPanic(&err)
		return r.orchestrator.act(ctx, r)
	}()
	if m := r.broken.Load(); m != nil {
		err = *m
	}
	var m plans.Panic
	if !errors.As(err, &m) {
		return err
	}
	r.orchestrator.gauges.panics.WithLabelValues().Inc()
	log.Log.WithName("plan").Error(err, "the program has failed, and the plan is blocked", "plan", r.plan.Name)
	return errors.Join(err, func() (err error) {
		defer plans.RecoverPanic(&err)
		return r.block(ctx, m.ReasonID(), m.Error()+": report it to the maintainers. `resume` tries again, `abort` rolls back")
	}())
}

// complain reports an error of one of the run's other goroutines. A panic there ends the run.
func (r *run) complain(ctx context.Context, err error) {
	var m plans.Panic
	if errors.As(err, &m) {
		r.broken.Store(&m)
		r.end()
		return
	}
	r.report(ctx, nil, engine.Progress{}, err)
}

// do carries out the run. A cluster that it cannot reach stalls only this plan.
func (r *run) do(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connecting := clusters.Urgent(ctx) // a wave may be under way
	if r.fresh {
		var connected context.CancelFunc
		connecting, connected = r.untilStopped(ctx)
		defer connected()
	}
	ends, err := r.ends(connecting)
	if err != nil {
		if r.fresh && r.stopped() {
			return engine.ErrStopped
		}
		if cancelled, failed := r.cancel(ctx); cancelled || failed != nil {
			return failed
		}
		r.orchestrator.with(r.plan.Name, func(s *planState) { s.lost = true }) // a Secret may hold the wrong cluster, too
		return r.waits(ctx, err)
	}
	c := r.process(ctx, ends)
	if r.what == keep {
		return r.keep(ctx, c)
	}
	if r.what == unname {
		return r.unname(ctx, c)
	}
	r.events = runner.NewEventWriter(ctx, r.plan, c.On, r.orchestrator.Now, func(err error) {
		log.Log.WithName("plan").Info("events", "plan", r.plan.Name, "error", err.Error())
	})
	defer r.events.Close()
	if r.fresh {
		c.Checks = &journal.Checked{}
		c.Ready = func(ctx context.Context) (*runner.Barred, error) { return r.checked(ctx, c) }
	}
	if err := r.orchestrator.guard(ctx, r.plan); err != nil {
		return r.waits(ctx, err)
	}
	p, _, err := c.Run(ctx, r.command)
	switch {
	case errors.As(err, new(plans.Panic)):
		return err
	case errors.Is(err, engine.ErrStopped), errors.As(err, new(records.ErrLeaseTaken)), errors.As(err, new(records.ErrLeaseLost)):
		return err
	case errors.Is(err, errOvertaken):
		return r.overtaken(ctx)
	case err != nil:
		return r.stuck(ctx, err)
	}
	r.ended(ctx, p)
	return nil
}

// cancel ends a plan that is to be aborted and was never begun, and reports whether it did: nothing of it is written in
// its clusters, so that they need not be reached.
func (r *run) cancel(ctx context.Context) (cancelled bool, err error) {
	if r.what != carry || r.command.Direction != plans.Abort {
		return false, nil
	}
	if err := r.orchestrator.guard(ctx, r.plan); err != nil {
		return false, err
	}
	err = r.store().Change(ctx, r.plan, func(j *journal.Journal) error {
		if err := r.still(ctx, j); err != nil {
			return err
		}
		cancelled, err = requests.Cancel(r.plan, j, r.command, r.orchestrator.Now())
		return err
	})
	if errors.Is(err, errOvertaken) {
		return false, r.overtaken(ctx)
	}
	if cancelled = cancelled && err == nil; cancelled {
		r.ended(ctx, engine.Progress{Kind: engine.Finished, Outcome: plans.Aborted})
	}
	return cancelled, err
}

// untilStopped returns a context for what only reads, which ends with the run.
func (r *run) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// checked runs every check before the first write. The plan takes its room when they have passed: until then its run ends
// for any plan that has begun.
func (r *run) checked(ctx context.Context, c runner.Runner) (*runner.Barred, error) {
	ctx, cancel := r.untilStopped(ctx)
	defer cancel()
	bar, err := r.ready(ctx, c)
	if r.stopped() {
		return nil, engine.ErrStopped // also if they have passed: its place is promised to another plan
	}
	if err == nil && bar == nil {
		r.turns(&r.passed, true)
	}
	return bar, err
}

// keep maintains what the plan needs at rest. Whatever prevents that is reported: a pod that restarts
// meanwhile is not found at its new address.
func (r *run) keep(ctx context.Context, c runner.Runner) error {
	err := c.Keep(ctx, false)
	switch {
	case err == nil:
		r.orchestrator.isNews(r.plan.Name, aboutRun, "") // the same obstacle is told anew
		return nil
	case errors.Is(err, engine.ErrStopped), errors.As(err, new(records.ErrLeaseTaken)), errors.As(err, new(records.ErrLeaseLost)):
		return err
	}
	return r.waits(ctx, err)
}

// unname removes the names that the plan has kept.
func (r *run) unname(ctx context.Context, c runner.Runner) error {
	err := c.RemoveNames(ctx, r.command, func(what string) {
		log.Log.WithName("plan").Info(what, "plan", r.plan.Name)
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errOvertaken):
		return r.overtaken(ctx)
	case errors.Is(err, engine.ErrStopped), errors.As(err, new(records.ErrLeaseTaken)):
		return err
	}
	return r.waits(ctx, err)
}

// maxOvertaken is how many runs of a plan in a row may be overtaken before the next one is delayed. More of them
// mean that two readers of the plan do not agree, and not that another writer is that fast.
const maxOvertaken = 4

// overtaken ends a run whose plan has changed since it began: the plan is reconciled again, at once or, when this
// happens again and again, later and with a reason.
func (r *run) overtaken(ctx context.Context) error {
	if times := r.orchestrator.overtaken(r.plan.Name); times > maxOvertaken {
		return r.waits(ctx, fmt.Errorf("%w, %d times in a row: expected a request (StatefulSetMigration %s) that stays the same for a moment; look for a program that keeps writing it, and report this if there is none", errOvertaken, times, r.plan.Name))
	}
	return errOvertaken
}

// stuck ends a run whose plan could not be taken over or continued.
func (r *run) stuck(ctx context.Context, why error) error {
	if r.orchestrator.final(r.plan.Name, why) {
		if elsewhere, err := r.elsewhere(ctx); err != nil || elsewhere {
			return why // which still counts after the end of the other process
		}
		if away, err := engine.OrdinalsAway(ctx, r.store(), r.plan); err != nil || away && answers.Of(why) == answers.Passing {
			return r.waits(ctx, why) // as long as it takes (L3)
		}
		return r.block(ctx, answers.Reason(why), why.Error())
	}
	return r.waits(ctx, why)
}

// block blocks the plan until the user acts, unless another process carries it out.
func (r *run) block(ctx context.Context, id reasons.ID, reason string) error {
	store := r.store()
	j, _, err := store.Journal(ctx, r.plan)
	if err != nil {
		return err
	}
	if elsewhere, err := r.elsewhere(ctx); err != nil || elsewhere {
		return err
	}
	r.tell(corev1.EventTypeWarning, "Blocked", reasons.Tagged(id, reason))
	return store.Change(ctx, r.plan, func(now *journal.Journal) error {
		if now.Epoch != j.Epoch { // another process has taken it over meanwhile
			return nil
		}
		if r.command.Observed != nil { // the request counts as answered, unless it has changed by now
			switch err := r.still(ctx, now); {
			case err == nil:
				now.Observed = *r.command.Observed
			case !errors.Is(err, errOvertaken):
				return err
			}
		}
		now.Block(id, reason)
		return nil
	})
}

// elsewhere reports whether another process carries the plan out.
func (r *run) elsewhere(ctx context.Context) (bool, error) {
	holder, _, err := r.orchestrator.holder(ctx, r.orchestrator.Live, r.plan.Name)
	return holder != "" && holder != r.orchestrator.Holder, err
}

func (r *run) store() *records.Store {
	return records.NewStore(r.orchestrator.Live, r.orchestrator.Namespace, r.plan.Name)
}

// ends connects to the clusters of both sides and checks that they are those of the plan. It ends the
// run when the server of either cluster changes.
func (r *run) ends(ctx context.Context) (map[plans.Side]*fleet.End, error) {
	out := map[plans.Side]*fleet.End{}
	for _, side := range plans.Sides() {
		ref := r.plan.On(side)
		if r.gone && side == plans.Source {
			if r.answers(ctx, ref) {
				return nil, fmt.Errorf("the cluster of %s answers requests, although --source-gone vouches that it is gone; finalize must clean up the source there", ref)
			}
			continue
		}
		c, err := r.orchestrator.Fleet.Find(ref.Context, ref.Cluster)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side, err)
		}
		go func() {
			select {
			case <-c.Gone:
				r.end()
			case <-ctx.Done():
			}
		}()
		end, err := c.Connect()
		if err != nil {
			return nil, err
		}
		uid, err := clusters.ClusterUID(ctx, end.Client)
		if err != nil {
			return nil, fmt.Errorf("%s, cluster %s: %w", side, c.Name, err)
		}
		if ref.KnownBy != "" {
			return nil, fmt.Errorf("the plan knows the cluster of the %s by namespace %s, and an orchestrator recognizes clusters by kube-system alone: carry it out with commands", side, ref.KnownBy)
		}
		if uid != ref.Cluster {
			return nil, fmt.Errorf("cluster %s has the UID %s (of namespace kube-system), expected that of the %s of the plan (%s): correct its Secret", c.Name, uid, side, ref.Cluster)
		}
		out[side] = end
	}
	return out, nil
}

// answers reports whether the cluster of a set can be reached and is the one of the plan.
func (r *run) answers(ctx context.Context, ref plans.Ref) bool {
	c, err := r.orchestrator.Fleet.Find(ref.Context, ref.Cluster)
	if err != nil {
		return false
	}
	end, err := c.Connect()
	if err != nil {
		return false
	}
	uid, err := clusters.ClusterUID(ctx, end.Client)
	return err == nil && uid == ref.Cluster
}

func (r *run) process(ctx context.Context, ends map[plans.Side]*fleet.End) runner.Runner {
	h := r.orchestrator
	c := runner.Runner{
		Plan: r.plan, Store: r.store(), Configs: map[plans.Side]*rest.Config{}, Watches: map[plans.Side]*clusters.Watches{}, Names: map[plans.Side]*dns.Cluster{},
		Holder: h.Holder, Dead: h.dead(ctx, r.plan.Name), Now: h.Now, Finish: r.finish, Stop: r.stop, Asked: r.asked, Waves: h.Slots, Pace: runner.Pace{StepTimeout: h.StepTimeout, Careful: r.careful}, Renewed: true, Orchestrated: true, Still: r.still,
		Report:   func(e *engine.Engine, p engine.Progress, err error) { r.report(ctx, e, p, err) },
		Complain: func(err error) { r.complain(ctx, err) },
	}
	on := clusters.Clusters{}
	for side, end := range ends {
		on[side], c.Configs[side], c.Watches[side], c.Names[side] = end.Client, end.Config, end.Watches, end.Names
	}
	if r.gone {
		on = on.Gone()
	}
	c.On = on.InTheWordsOf(map[plans.Side]plans.Ref{plans.Source: r.plan.Source, plans.Destination: r.plan.Destination})
	return c
}

// errOvertaken reports that the plan has changed since the run began: it was begun, blocked, paused,
// deleted or given another direction while the run waited for its checks.
var errOvertaken = errors.New("the plan has changed since the run began")

// ready runs every check before the first write, with the identity that will write. It returns what
// fails, or nil if nothing does.
func (r *run) ready(ctx context.Context, c runner.Runner) (*runner.Barred, error) {
	j, _, err := c.Store.Journal(ctx, r.plan)
	if err != nil {
		return nil, err
	}
	if err := r.still(ctx, j); err != nil {
		return nil, err
	}
	if !fresh(j, r.command) {
		return nil, errOvertaken
	}
	if err := spokenFor(ctx, r.orchestrator.Fleet.Own, r.plan.Name, map[plans.Side]plans.Ref{plans.Source: r.plan.Source, plans.Destination: r.plan.Destination}, c.On); err != nil {
		if reasons.Of(err) == reasons.NoConsent {
			return &runner.Barred{ID: reasons.NoConsent, Why: err.Error()}, nil
		}
		return nil, err
	}
	report, err := preflight.Check(ctx, r.plan, c.On, j, check.Caller{Orchestrated: r.orchestrator.Now})
	if err != nil {
		return nil, err
	}
	*c.Checks = report.Answers(r.orchestrator.Now())
	failed, err := check.Decided(reasons.ChecksFailed, report.Failed())
	if err != nil || len(failed) == 0 {
		return nil, err
	}
	return &runner.Barred{ID: reasons.ChecksFailed, Why: "a check before the first write fails, and nothing was written: " + check.Words(failed)}, nil
}

// waits records in the journal why the plan makes no progress for now.
func (r *run) waits(ctx context.Context, why error) error {
	r.report(ctx, nil, engine.Progress{}, why)
	if elsewhere, err := r.elsewhere(ctx); err != nil || elsewhere {
		return why
	}
	return errors.Join(why, r.store().Change(ctx, r.plan, func(j *journal.Journal) error {
		j.WaitingID, j.Waiting = cmp.Or(reasons.Of(why), reasons.ClusterNotReached), why.Error()
		return nil
	}))
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{plans.PlanLabel: name}}
}
