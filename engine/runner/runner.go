package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/dns"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/gates"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight"
	"github.com/stsmigrate/stsmigrate/preflight/access"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/records"
)

// Runner is what one process needs to carry a plan out: a command that a person waits
// for, or a long-running orchestrator.
type Runner struct {
	Plan  *plans.Plan
	Store *records.Store
	// On are live clients in the words of the plan (InTheWordsOf).
	On      clusters.Clusters
	Configs map[plans.Side]*rest.Config
	Watches map[plans.Side]*clusters.Watches
	// Names are what Keepers of names share.
	Names map[plans.Side]*dns.Cluster
	// Holder names this process in the Lease, and Dead says of another one whether it is
	// certainly gone.
	Holder string
	Dead   func(holder string) bool
	Now    func() time.Time
	// Orchestrated says that the rights are not those of the person who asks: every namespace that is written to has
	// to agree, whatever plan and journal say.
	Orchestrated bool
	// Ready says, under the Lease and before anything is written, why the plan must be held instead,
	// or nothing; nil lets it go on. An error ends it, and nothing is recorded.
	Ready func(context.Context) (string, error)
	// Still, if any, says of the journal as it is just before a write why it must not be taken over for the wish any
	// more: the error ends it, and nothing is recorded.
	Still func(context.Context, *plans.Journal) error
	// Stop, when closed, ends the run after the write that is under way.
	Stop <-chan struct{}
	// Asked has a value when somebody else has written the journal.
	Asked <-chan struct{}
	// Waves are what waves wait for before they begin; nil for nothing.
	Waves *engine.WaveLimiter
	// StepTimeout is that of Options.
	StepTimeout time.Duration
	// Renewed says that credentials are renewed while this runs: that an API server does not
	// know them is then no reason to hold.
	Renewed bool
	// Report gets every progress that differs from the one before, and every error that is
	// tried again; Complain those of what runs besides.
	Report   func(*engine.Engine, engine.Progress, error)
	Complain func(error)
}

// Run lets the plan go its way until it is finished, paused, held or stopped. It holds the
// Lease meanwhile, and answers ErrHeld while another process does. What the wish says of gates, and what a person
// vouches for with it, is about the way that the plan is then going. The journal is the one it began with.
func (c Runner) Run(ctx context.Context, wish plans.Command) (p engine.Progress, j *plans.Journal, err error) {
	lease, err := c.Store.Acquire(ctx, c.Holder, c.Dead, c.Now)
	if err != nil {
		return p, nil, err
	}
	ended := false
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), ended) }() // it expires by itself
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	go lease.Keep(background)
	if reason, err := c.barred(ctx); err != nil {
		return p, nil, err
	} else if reason != "" {
		return c.block(ctx, wish, reason)
	}
	e := engine.New(c.Plan, c.Store, c.On)
	e.Now, e.Permit = c.Now, c.Waves.Of(c.Plan)
	e.CheckWave = func(ctx context.Context, j *plans.Journal, wave plans.Slice) (string, error) {
		found, err := preflight.CheckWave(ctx, c.Plan, c.On, j, wave, c.orchestrated())
		return check.Words(found), err
	}
	e.Gates.Prober = gates.Through(c.Configs, c.Now)
	if err := e.Accept(clusters.Urgent(ctx), wish, c.Still); err != nil { // a wave may be under way
		return p, nil, err
	}
	wake := clusters.NewChangeSignal()
	wake.Watch(clusters.Urgent(background), c.Plan, c.Watches)
	if j, _, err = c.Store.Journal(ctx, c.Plan); err != nil {
		return p, nil, err
	}
	if len(c.Plan.Directories()) > 0 && (wish.Direction != plans.Finalize || j.KeepNames) { // else a Clean takes the names away
		keeper := dns.Start(clusters.Urgent(background), c.Plan, c.Names, c.leave(lease), c.Complain)
		defer keeper.Stop()
		e.StopNames = keeper.Stop
		go stopWith(background, lease, keeper)
	}
	p, err = e.Run(ctx, engine.Options{
		Wake: wake, Stop: c.Stop, Asked: c.Asked, StepTimeout: c.StepTimeout, Renewed: c.Renewed,
		Report: func(p engine.Progress, err error) { c.Report(e, p, err) },
	})
	ended = p.Outcome == plans.Finalized || p.Outcome == plans.Aborted
	return p, j, err
}

// barred gives the reason why nothing may be written, or "". It is asked under the Lease, BEFORE the first write to either
// cluster.
func (c Runner) barred(ctx context.Context) (string, error) {
	err := c.agreed(ctx)
	switch {
	case errors.As(err, new(access.ErrNotAgreed)):
		return err.Error(), nil
	case err != nil || c.Ready == nil:
		return "", err
	}
	return c.Ready(ctx)
}

func (c Runner) orchestrated() check.Orchestrated {
	if !c.Orchestrated {
		return nil
	}
	return c.Now
}

// stopWith ends a Keeper when the Lease is lost: the engine is fenced by its epoch, and the Keeper by nothing.
func stopWith(ctx context.Context, lease *records.Lease, keeper *dns.Syncer) {
	select {
	case <-lease.Lost():
		keeper.Stop()
	case <-ctx.Done():
	}
}

// block records why a plan must not go on: nothing has been written by this process. That is the answer to the wish.
func (c Runner) block(ctx context.Context, wish plans.Command, reason string) (engine.Progress, *plans.Journal, error) {
	err := c.Store.Change(ctx, c.Plan, func(j *plans.Journal) error {
		if c.Still != nil {
			if err := c.Still(ctx, j); err != nil {
				return err
			}
		}
		if wish.Observed != nil {
			j.Observed = *wish.Observed
		}
		j.Block(reason)
		return nil
	})
	return engine.Progress{Kind: engine.Blocked, Reason: reason}, nil, err
}

// Keep keeps what a plan needs that nobody moves, until Stop is closed or nothing is to be kept any more: its
// names answered, and drains let through. It holds the Lease meanwhile, and ends with an error when another
// process has taken it; ended says that the plan will not need one again.
func (c Runner) Keep(ctx context.Context, ended bool) error {
	lease, err := c.Store.Acquire(ctx, c.Holder, c.Dead, c.Now)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), ended) }() // it expires by itself
	if err := c.agreed(ctx); err != nil {
		return err
	}
	var tending sync.WaitGroup
	defer tending.Wait() // BEFORE the Lease goes
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Orchestrated { // a command may be followed by another one soon
		lease.Stretch()
	}
	go lease.Keep(background)
	var keeper *dns.Syncer
	if len(c.Plan.Directories()) > 0 {
		keeper = dns.Start(clusters.Urgent(background), c.Plan, c.Names, c.leave(lease), c.Complain) // a wave of another plan may rest on what they share
		defer keeper.Stop()
	}
	if !ended && c.Plan.MaxUnavailable == 1 {
		wake := clusters.NewChangeSignal()
		wake.WatchDrains(background, c.Plan, c.Watches)
		tending.Go(func() { engine.New(c.Plan, c.Store, c.On).Attend(background, wake, c.Complain) })
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

// leave lets a Keeper of names write: as long as nobody else can have the Lease, and, to make something
// anew, if the Lease and the journal say so now.
func (c Runner) leave(lease *records.Lease) dns.MayWrite {
	return func(ctx context.Context, anew bool) error {
		if !anew {
			return lease.Current()
		}
		if err := c.agreed(ctx); err != nil {
			return err
		}
		j, _, err := c.Store.Journal(ctx, c.Plan)
		if err != nil {
			return err
		}
		if j.Outcome == plans.Aborted || j.Outcome == plans.Finalized && !j.KeepNames {
			return errNamesOver
		}
		err = lease.Mine(ctx)
		if errors.As(err, new(records.ErrLeaseLost)) {
			return errors.Join(err, dns.ErrOver)
		}
		return errors.Join(err, lease.Current())
	}
}

// errNamesOver says that a plan has come to an end without its names being kept.
var errNamesOver = fmt.Errorf("the plan has ended: %w", dns.ErrOver)

// agreed is asked by who carries a plan out for somebody else.
func (c Runner) agreed(ctx context.Context) error {
	if !c.Orchestrated {
		return nil
	}
	found, err := access.Agreed(ctx, c.Plan, c.On, c.Now())
	if err != nil {
		return err
	}
	if found = slices.DeleteFunc(found, func(f check.Finding) bool { return f.Level == check.Warn }); len(found) > 0 {
		return access.ErrNotAgreed{Findings: found}
	}
	return nil
}
