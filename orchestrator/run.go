package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/dns"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/engine/runner"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/records"
)

// run is a plan under way in this process.
type run struct {
	hub  *Orchestrator
	plan *plans.Plan
	what action
	wish plans.Command
	// gone says that a person has vouched for the end of the source's cluster.
	gone bool
	// fresh says that nothing has been begun, and now is to be: everything is checked first.
	fresh bool
	// displaced says that it was ended for a plan that needs the room more.
	displaced bool
	stop      chan struct{}
	once      sync.Once
	// asked has a value when the journal was written by somebody who wants a pause.
	asked chan struct{}
	// broken is a panic in what the run has other goroutines do.
	broken atomic.Pointer[plans.Panic]
	// herald tells the two sets, as soon as their clusters are known.
	herald *runner.EventWriter
}

// end lets it stop after the write that is under way.
func (r *run) end() { r.once.Do(func() { close(r.stop) }) }

// hear tells it of a pause that is asked for: else it would learn of that at its next write only,
// for which a wave may wait long.
func (r *run) hear(j *plans.Journal) {
	if !j.Paused {
		return
	}
	select {
	case r.asked <- struct{}{}:
	default:
	}
}

// suits says whether the run is what is wanted now. One that carries the plan ends by itself
// when it is paused, held or over; a wish that it has not taken over yet begins a new one.
func (r *run) suits(what action, p *plans.Plan, asked engine.Requested) bool {
	if r.plan.ID != p.ID || r.plan.Hash != p.Hash {
		return false // that of an earlier plan of this name
	}
	switch {
	case r.what == carry:
	case r.what != what:
		return false
	case what == keep:
		return true
	}
	return asked.Observed == nil || asked.Command.Is(r.wish)
}

// fresh says whether a plan is to be checked before it is carried: one that is to be aborted has
// nothing to lose, and may be so because its checks fail.
func fresh(j *plans.Journal, wish plans.Command) bool {
	return j.Epoch == 0 && wish.Direction == plans.Move
}

// begin starts a run. The lock is held.
func (h *Orchestrator) begin(ctx context.Context, p *plans.Plan, j *plans.Journal, what action, wish plans.Command) {
	r := &run{hub: h, plan: p, what: what, wish: wish, gone: wish.Assurance.SourceGone || j.Assurances.SourceGone, fresh: fresh(j, wish), stop: make(chan struct{}), asked: make(chan struct{}, 1)}
	h.runs[p.Name] = r
	h.gauges.running.WithLabelValues().Inc()
	h.all.Go(func() {
		err := r.safely(context.WithoutCancel(ctx)) // it outlives the pass that began it, and is ended by stop
		h.lock.Lock()
		delete(h.runs, p.Name)
		h.freed()
		h.gauges.running.WithLabelValues().Dec()
		if err == nil || errors.Is(err, engine.ErrStopped) || errors.As(err, new(records.ErrLeaseTaken)) {
			delete(h.tries, p.Name)
		} else {
			h.failed(p.Name)
		}
		ending := h.ending
		h.lock.Unlock()
		if !ending {
			h.wake(p.Name)
		}
	})
}

// safely acts, and holds the plan if the program itself fails over it. The error lets the plan rest
// before anything else is begun for it: its names would be kept by the same program.
func (r *run) safely(ctx context.Context) error {
	err := func() (err error) {
		defer plans.RecoverPanic(&err)
		return r.do(ctx)
	}()
	if m := r.broken.Load(); m != nil {
		err = *m
	}
	var m plans.Panic
	if !errors.As(err, &m) {
		return err
	}
	r.hub.gauges.panics.WithLabelValues().Inc()
	log.Log.WithName("plan").Error(err, "the program has failed, and the plan is blocked", "plan", r.plan.Name)
	return errors.Join(err, func() (err error) {
		defer plans.RecoverPanic(&err)
		return r.block(ctx, m.Error()+": tell those who make it. `resume` tries again, `abort` rolls back")
	}())
}

// complain tells of an error of what the run has others do. A panic there ends the run.
func (r *run) complain(ctx context.Context, err error) {
	var m plans.Panic
	if errors.As(err, &m) {
		r.broken.Store(&m)
		r.end()
		return
	}
	r.report(ctx, nil, engine.Progress{}, err)
}

// do acts. What it cannot reach stalls only this plan.
func (r *run) do(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connecting := ctx
	if !r.fresh { // a wave may be under way
		connecting = clusters.Urgent(ctx)
	}
	ends, err := r.ends(connecting)
	if err != nil {
		return r.waits(ctx, err)
	}
	c := r.process(ctx, ends)
	if r.what == keep {
		return c.Keep(ctx, false)
	}
	if r.what == unname {
		return r.unname(ctx, c)
	}
	r.herald = runner.NewEventWriter(ctx, r.plan, c.On, r.hub.Now, func(err error) {
		log.Log.WithName("plan").Info("events", "plan", r.plan.Name, "error", err.Error())
	})
	defer r.herald.Close()
	if r.fresh {
		turn := r.hub.checks.Of(r.plan)
		defer turn.Release()
		if !turn.Wait(r.stop) { // BEFORE the Lease: another process may be free sooner
			return engine.ErrStopped
		}
		c.Ready = func(ctx context.Context) (string, error) {
			defer turn.Release()
			return r.ready(ctx, c)
		}
	}
	if err := r.hub.guard(ctx, r.plan); err != nil {
		return r.waits(ctx, err)
	}
	p, _, err := c.Run(ctx, r.wish)
	switch {
	case errors.As(err, new(plans.Panic)):
		return err
	case errors.Is(err, engine.ErrStopped), errors.As(err, new(records.ErrLeaseTaken)):
		return err
	case errors.Is(err, errOvertaken):
		return nil // it is looked at anew
	case err != nil:
		return r.stuck(ctx, err)
	}
	r.ended(ctx, p)
	return nil
}

// unname takes the names away that the plan has kept.
func (r *run) unname(ctx context.Context, c runner.Runner) error {
	err := c.RemoveNames(ctx, r.wish, func(what string) {
		log.Log.WithName("plan").Info(what, "plan", r.plan.Name)
	})
	switch {
	case err == nil, errors.Is(err, errOvertaken):
		return nil // it is looked at anew
	case errors.Is(err, engine.ErrStopped), errors.As(err, new(records.ErrLeaseTaken)):
		return err
	}
	return r.waits(ctx, err)
}

// stuck ends a run whose plan could not be taken over, or not be carried on.
func (r *run) stuck(ctx context.Context, why error) error {
	if r.hub.final(r.plan.Name, why) {
		return r.block(ctx, why.Error())
	}
	return r.waits(ctx, why)
}

// block leaves the plan to a person, unless another process goes on with it.
func (r *run) block(ctx context.Context, reason string) error {
	store := r.store()
	j, _, err := store.Journal(ctx, r.plan)
	if err != nil {
		return err
	}
	if elsewhere, err := r.elsewhere(ctx); err != nil || elsewhere {
		return err
	}
	r.tell(corev1.EventTypeWarning, "Blocked", reason)
	return store.Change(ctx, r.plan, func(now *plans.Journal) error {
		if now.Epoch != j.Epoch { // somebody has taken it over meanwhile
			return nil
		}
		if r.wish.Observed != nil { // it is answered, unless it is another by now
			switch err := r.still(ctx, now); {
			case err == nil:
				now.Observed = *r.wish.Observed
			case !errors.Is(err, errOvertaken):
				return err
			}
		}
		now.Block(reason)
		return nil
	})
}

// elsewhere says whether another process goes on with the plan.
func (r *run) elsewhere(ctx context.Context) (bool, error) {
	holder, err := r.store().Holder(ctx, r.hub.Now)
	return holder != "" && holder != r.hub.Holder, err
}

func (r *run) store() *records.Store {
	return records.NewStore(r.hub.Live, r.hub.Namespace, r.plan.Name)
}

// ends connects to the clusters of both sides, checks that they are those of the plan, and
// ends the run when either is reached at another server.
func (r *run) ends(ctx context.Context) (map[plans.Side]*fleet.End, error) {
	out := map[plans.Side]*fleet.End{}
	for _, side := range plans.Sides() {
		ref := r.plan.On(side)
		if r.gone && side == plans.Source {
			if r.answers(ctx, ref) {
				return nil, fmt.Errorf("the cluster of %s answers: it is not gone, as a person has vouched (--source-gone); finalize has to clean it up", ref)
			}
			continue
		}
		c, err := r.hub.Fleet.Find(ref.Context, ref.Cluster)
		if err != nil {
			r.hub.lock.Lock()
			r.hub.lost[r.plan.Name] = true
			r.hub.lock.Unlock()
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
		if uid != ref.Cluster {
			return nil, fmt.Errorf("cluster %s is another one (kube-system has the UID %s) than the %s of the plan (%s): correct its Secret", c.Name, uid, side, ref.Cluster)
		}
		out[side] = end
	}
	return out, nil
}

// answers reports whether the cluster of a set is there.
func (r *run) answers(ctx context.Context, ref plans.Ref) bool {
	c, err := r.hub.Fleet.Find(ref.Context, ref.Cluster)
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
	h := r.hub
	c := runner.Runner{
		Plan: r.plan, Store: r.store(), Configs: map[plans.Side]*rest.Config{}, Watches: map[plans.Side]*clusters.Watches{}, Names: map[plans.Side]*dns.Cluster{},
		Holder: h.Holder, Dead: h.dead(ctx, r.plan.Name), Now: h.Now, Stop: r.stop, Asked: r.asked, Waves: h.Slots, StepTimeout: h.StepTimeout, Renewed: true, Orchestrated: true, Still: r.still,
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

// errOvertaken says that the plan was begun, held or paused while it waited for its checks.
var errOvertaken = errors.New("the plan is not what it was")

// ready runs every check as the identity that will write, before the first write, and says what
// fails.
func (r *run) ready(ctx context.Context, c runner.Runner) (string, error) {
	j, _, err := c.Store.Journal(ctx, r.plan)
	if err != nil {
		return "", err
	}
	if err := r.still(ctx, j); err != nil {
		return "", err
	}
	if !fresh(j, r.wish) {
		return "", errOvertaken
	}
	report, err := preflight.Check(ctx, r.plan, c.On, j, r.hub.Now)
	if err != nil {
		return "", err
	}
	failed := report.Failed()
	if len(failed) == 0 {
		return "", nil
	}
	return "a check before the first write fails, and nothing was written: " + check.Words(failed), nil
}

// waits records why nothing goes on for now.
func (r *run) waits(ctx context.Context, why error) error {
	r.report(ctx, nil, engine.Progress{}, why)
	if elsewhere, err := r.elsewhere(ctx); err != nil || elsewhere {
		return why
	}
	return errors.Join(why, r.store().Change(ctx, r.plan, func(j *plans.Journal) error {
		j.Waiting = why.Error()
		return nil
	}))
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{plans.PlanLabel: name}}
}
