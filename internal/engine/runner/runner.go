package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavelimit"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Runner is what one process needs to execute a plan: a command that a user waits for, or a
// long-running orchestrator.
type Runner struct {
	Plan  *plans.Plan
	Store *records.Store
	// On are live clients that read and write slices as StatefulSets (InTheWordsOf).
	On      clusters.Clusters
	Configs map[plans.Side]*rest.Config
	Watches map[plans.Side]*clusters.Watches
	// Names are the clusters as all dns.Syncers share them.
	Names map[plans.Side]*dns.Cluster
	// Holder names this process in the Lease. Dead reports whether another holder is certainly gone.
	Holder string
	Dead   func(holder string) bool
	Now    func() time.Time
	// Orchestrated reports that the process does not have the rights of the user who makes the request: every
	// namespace that is written to must consent, whatever plan and journal state.
	Orchestrated bool
	// Ready, called under the Lease and before any write, returns the reason why the plan must be blocked
	// instead, or nil. nil means no such check. An error ends the run, and nothing is recorded.
	Ready func(context.Context) (*Barred, error)
	// Before, if set, changes the journal under the Lease, BEFORE this process takes the plan over. An error ends the run.
	Before func(*journal.Journal) error
	// Checks, if set, is what the checks of the plan have answered to this process. Ready fills it in, if there is one.
	Checks *journal.Checked
	// Still, if set, receives the journal as it is just before a write, and returns an error if it must no
	// longer be taken over for the request. The error ends the run, and nothing is recorded.
	Still func(context.Context, *journal.Journal) error
	// Finish, when closed, ends the run as soon as no ordinal is in flight, and Stop after the current write.
	Finish, Stop <-chan struct{}
	// Asked has a value when another writer has written the journal.
	Asked <-chan struct{}
	// Waves limits how many waves begin at once; nil for no limit.
	Waves *wavelimit.Limiter
	Pace
	// Renewed reports that credentials are renewed during the run: an API server that does not know them is
	// then no reason to block the plan.
	Renewed bool
	// Report receives every progress that differs from the one before, and every error that is retried.
	// Complain receives the errors of what runs in the background.
	Report   func(*engine.Engine, engine.Progress, error)
	Complain func(error)
}

// Pace is how a plan is carried out.
type Pace struct {
	// StepTimeout is that of engine.Options.
	StepTimeout time.Duration
	// Careful reports that the plan is carried out without any acceleration.
	Careful bool
}

// Run executes the plan until it is finished, paused, blocked or stopped. It holds the Lease meanwhile, and
// returns ErrLeaseTaken while another process does, and ErrLeaseLost when the Lease is deleted. When another
// process has taken it, the plan is Overtaken. What the request states about gates, and what the user vouches for
// with it, applies to the leg that the plan is then on. The journal is the one at the start; nil if the run did
// not begin.
func (c Runner) Run(ctx context.Context, command plans.Command) (p engine.Progress, j *journal.Journal, err error) {
	lease, err := c.Store.Acquire(ctx, c.Holder, c.Dead, c.Now)
	if err != nil {
		return p, nil, err
	}
	ended := false
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), ended) }() // else it expires by itself
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	go lease.Keep(background)
	if reason, err := c.barred(ctx); err != nil {
		return p, nil, err
	} else if reason != nil {
		return c.block(ctx, command, *reason)
	}
	if err := c.before(ctx); err != nil {
		return p, nil, err
	}
	e := c.engine()
	e.Sign = lease.Before()
	err = e.Accept(clusters.Urgent(ctx), command, c.Still) // urgent, since a wave may be under way
	if gone := new(engine.Rewound); errors.As(err, &gone) {
		return c.block(ctx, command, Barred{gone.ReasonID(), gone.Error()})
	}
	if err != nil {
		ended = c.over(ctx)
		return p, nil, err
	}
	wake := clusters.NewChangeSignal()
	wake.Recent = e.Recent
	e.Recent.Keep(c.Now, wake)
	e.Beside = beside
	wake.Watch(clusters.Urgent(background), c.Plan, c.Watches)
	if j, _, err = c.Store.Journal(ctx, c.Plan); err != nil {
		return p, nil, err
	}
	if len(c.Plan.Directories()) > 0 && (command.Direction != plans.Finalize || j.KeepNames) {
		keeper := dns.Start(clusters.Urgent(background), c.Plan, c.Names, c.leave(lease), c.Complain)
		defer keeper.Stop()
		e.StopNames = keeper.Stop
		go stopWith(background, lease, keeper)
	}
	p, err = e.Run(ctx, engine.Options{
		Wake: wake, Finish: c.Finish, Stop: c.halts(background, lease), Asked: c.Asked, StepTimeout: c.StepTimeout, LookOn: c.Orchestrated, Renewed: c.Renewed,
		Report: func(p engine.Progress, err error) { c.Report(e, p, err) },
	})
	if errors.Is(err, engine.ErrStopped) && p.Kind != engine.Stopped {
		p, err = c.stopped(ctx, lease, p)
	}
	ended = p.Outcome == plans.Finalized || p.Outcome == plans.Aborted
	return p, j, err
}

// beside runs something beside the engine.
func beside(one func()) (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		one()
	}()
	return func() { <-ended }
}

// before changes the journal as the caller wants it BEFORE the plan is taken over.
func (c Runner) before(ctx context.Context) error {
	if c.Before == nil {
		return nil
	}
	return c.Store.Change(ctx, c.Plan, c.Before)
}

// engine returns an engine for the plan, with the checks that it makes before each wave.
func (c Runner) engine() *engine.Engine {
	e := engine.New(c.Plan, c.Store, c.On)
	e.Now, e.Holder, e.Permit, e.Checks = c.Now, c.Holder, c.Waves.Of(c.Plan), c.Checks
	waves := preflight.Waves{Plan: c.Plan, On: e.Recent.Clients(c.Plan, c.On), Orchestrated: c.orchestrated(), Now: c.Now}
	if c.Checks != nil {
		waves.Passed(c.Checks.At.Time)
	}
	ask(e, &waves)
	e.Voided = waves.Void
	if e.Careful = c.Careful; c.Careful {
		e.Without(engine.Accelerations()...)
	}
	e.Gates.Prober = gates.Through(c.Configs, c.Now)
	return e
}

// Checked lets an engine ask the checks before its waves, as every process does that carries a plan out.
func Checked(e *engine.Engine, on clusters.Clusters, now func() time.Time) {
	ask(e, &preflight.Waves{Plan: e.Plan(), On: on, Now: now})
}

func ask(e *engine.Engine, waves *preflight.Waves) {
	e.CheckWave = func(ctx context.Context, j *journal.Journal, wave plans.Slice) (wavecheck.Answer, error) {
		found, err := waves.Check(ctx, j, wave)
		if err == nil {
			found, err = found.Decided()
		}
		return wavecheck.Answer{Why: check.Words(found.Bars), Unfit: found.Unfit()}, err
	}
}

// halts returns a channel that is closed when the run must end after the current write: the user wants that, or the
// Lease is lost. Without the Lease nothing keeps the names, and a wave would wait for its names for ever.
func (c Runner) halts(ctx context.Context, lease *records.Lease) <-chan struct{} {
	halt := make(chan struct{})
	go func() {
		defer close(halt)
		select {
		case <-c.Stop:
		case <-lease.Lost():
		case <-ctx.Done():
		}
	}()
	return halt
}

// stopped returns how a run ends that had to stop: its user wanted that, or its Lease is lost. It says the same about a
// plan that another process has taken over, whether the Lease or the journal shows that first.
func (c Runner) stopped(ctx context.Context, lease *records.Lease, p engine.Progress) (engine.Progress, error) {
	select {
	case <-c.Stop:
		return p, engine.ErrStopped
	default:
	}
	err := lease.Mine(ctx)
	if lost := new(records.ErrLeaseLost); errors.As(err, lost) && lost.Taken {
		reason := fmt.Sprintf("another process has taken plan %s over (it has the Lease now); this one has stopped", c.Plan.Name)
		return engine.Progress{Kind: engine.Blocked, Overtaken: true, ID: reasons.TakenOver, Reason: reason}, nil
	}
	return p, cmp.Or(err, engine.ErrStopped)
}

// over reports whether another process has ended the plan before this one had the Lease. Without that the Lease
// would stay: no later process takes it, and removes it.
func (c Runner) over(ctx context.Context) bool {
	j, _, err := c.Store.Journal(ctx, c.Plan)
	return err == nil && j.Ended()
}

// Barred is the reason why a plan must not continue.
type Barred struct {
	ID  reasons.ID
	Why string
}

// barred returns the reason why nothing may be written, or nil. It is called under the Lease, BEFORE the
// first write to either cluster.
func (c Runner) barred(ctx context.Context) (*Barred, error) {
	err := c.agreed(ctx)
	switch {
	case errors.As(err, new(access.ErrNotAgreed)):
		return &Barred{reasons.NoConsent, err.Error()}, nil
	case err != nil || c.Ready == nil:
		return nil, err
	}
	return c.Ready(ctx)
}

func (c Runner) orchestrated() check.Orchestrated {
	if !c.Orchestrated {
		return nil
	}
	return c.Now
}

// stopWith ends a Syncer when the Lease is lost: the epoch fences the engine, and nothing fences the Syncer.
func stopWith(ctx context.Context, lease *records.Lease, keeper *dns.Syncer) {
	select {
	case <-lease.Lost():
		keeper.Stop()
	case <-ctx.Done():
	}
}

// block records why a plan must not continue, as the result of the request. This process has written nothing.
func (c Runner) block(ctx context.Context, command plans.Command, reason Barred) (engine.Progress, *journal.Journal, error) {
	err := c.Store.Change(ctx, c.Plan, func(j *journal.Journal) error {
		if c.Still != nil {
			if err := c.Still(ctx, j); err != nil {
				return err
			}
		}
		if command.Observed != nil {
			j.Observed = *command.Observed
		}
		if j.Blocked != reason.Why {
			j.Timeline.Record(c.Now(), journal.Event{Kind: journal.PlanBlocked, ID: reason.ID, By: c.Holder, What: reason.Why})
		}
		j.Block(reason.ID, reason.Why)
		return nil
	})
	return engine.Progress{Kind: engine.Blocked, ID: reason.ID, Reason: reason.Why}, nil, err
}

// Keep maintains what a plan at rest needs, until Stop is closed or nothing must be maintained any more: it
// keeps the names answered and lets drains through. It holds the Lease meanwhile, and returns an error when
// another process has taken it. ended reports that the plan will not need a Lease again.
func (c Runner) Keep(ctx context.Context, ended bool) error {
	lease, err := c.Store.Acquire(ctx, c.Holder, c.Dead, c.Now)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), ended) }() // else it expires by itself
	if err := c.agreed(ctx); err != nil {
		return err
	}
	c.unwait(ctx)
	var tending sync.WaitGroup
	defer tending.Wait() // BEFORE the Lease is released
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Orchestrated { // a command may be followed by another one soon
		lease.Stretch()
	} else {
		lease.OnlyKeeps()
	}
	go lease.Keep(background)
	var keeper *dns.Syncer
	if len(c.Plan.Directories()) > 0 {
		keeper = dns.Start(clusters.Urgent(background), c.Plan, c.Names, c.leave(lease), c.Complain)
		defer keeper.Stop()
	}
	if !ended && c.Plan.MaxUnavailable == 1 {
		wake := clusters.NewChangeSignal()
		wake.WatchDrains(background, c.Plan, c.Watches)
		tending.Go(func() { engine.New(c.Plan, c.Store, c.On).Drains.Attend(background, wake, c.Complain) })
	}
	select {
	case <-c.Stop:
	case <-ctx.Done():
	case <-lease.Lost():
		if keeper != nil {
			keeper.Stop()
		}
		if err := c.leave(lease)(ctx, true); !errors.Is(err, errNamesOver) {
			return err
		}
	}
	return nil
}

// unwait removes from the journal what an orchestrator waited for before it could keep the plan: the reason
// would be shown again whenever no process has the plan. Nothing else depends on it.
func (c Runner) unwait(ctx context.Context) {
	if !c.Orchestrated {
		return
	}
	err := c.Store.Change(ctx, c.Plan, func(j *journal.Journal) error { j.Waiting = ""; return nil })
	if err != nil {
		c.Complain(err)
	}
}

// leave returns when a dns.Syncer may write: while no other process can have the Lease, and, to create
// something, only if the Lease and the journal confirm it now.
func (c Runner) leave(lease *records.Lease) dns.MayWrite {
	return func(ctx context.Context, anew bool) error {
		if !anew {
			return lease.Current()
		}
		j, _, err := c.Store.Journal(ctx, c.Plan)
		switch {
		case errors.As(err, new(records.ErrNoJournal)), errors.As(err, new(journal.ErrOtherPlan)):
			return errors.Join(errNamesOver, err) // it was forgotten, and no process will remove what is created from here on
		case err != nil:
			return err
		case j.Over():
			return errNamesOver
		}
		if err := c.agreed(ctx); err != nil {
			return err
		}
		err = lease.Mine(ctx)
		if errors.As(err, new(records.ErrLeaseLost)) {
			return errors.Join(err, dns.ErrOver)
		}
		return errors.Join(err, lease.Current())
	}
}

// errNamesOver is the error of a plan that has ended and whose names are not kept.
var errNamesOver = fmt.Errorf("the plan has ended: %w", dns.ErrOver)

// agreed checks consent, for a process that executes a plan on behalf of others. It returns
// access.ErrNotAgreed if a namespace does not consent.
func (c Runner) agreed(ctx context.Context) error {
	if !c.Orchestrated {
		return nil
	}
	found, err := access.Agreed(ctx, c.Plan, c.On, c.Now())
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(f check.Finding) bool { return f.Level == check.Warn })
	if found, err = check.Decided(reasons.NoConsent, found); len(found) > 0 {
		return access.ErrNotAgreed{Findings: found}
	}
	return err
}
