package runner

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// RemoveNames deletes the names that a finalized plan has kept, and calls tell for each deleted object. It
// holds the Lease meanwhile, as a dns.Syncer would recreate them. A crash leaves the journal unchanged, so
// that the removal is repeated.
func (c Runner) RemoveNames(ctx context.Context, command plans.Command, tell func(string)) error {
	lease, err := c.Store.Acquire(ctx, c.Holder, c.Dead, c.Now)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), true) }() // else it expires by itself
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	go lease.Keep(background)
	if err := c.agreed(ctx); err != nil {
		return err
	}
	j, _, err := c.Store.Journal(ctx, c.Plan)
	if err != nil {
		return err
	}
	if err := c.mayUnname(ctx, j); err != nil {
		return err
	}
	if err := c.unname(ctx, lease, tell); err != nil {
		return err
	}
	return c.Store.Change(ctx, c.Plan, func(j *journal.Journal) error {
		if err := c.mayUnname(ctx, j); err != nil {
			return err
		}
		if command.Observed != nil {
			j.Observed = *command.Observed
		}
		j.KeepNames, j.Waiting = false, ""
		return nil
	})
}

// mayUnname returns the reason why the names of this journal must no longer be removed, or nil.
func (c Runner) mayUnname(ctx context.Context, j *journal.Journal) error {
	if err := requests.KeepsNames(c.Plan, j); err != nil || c.Still == nil {
		return err
	}
	return c.Still(ctx, j)
}

// unname deletes one object after the other, while no other process can have the Lease.
func (c Runner) unname(ctx context.Context, lease *records.Lease, tell func(string)) error {
	look := dns.Remove(c.Plan, c.On, func() {})
	for n := new(records.Attempts); ; {
		s, err := look(ctx, plans.StepContext{})
		if err != nil || s.Standing == plans.After {
			return err
		}
		select {
		case <-c.Stop:
			return engine.ErrStopped
		default:
		}
		if err := lease.Current(); err != nil {
			return err
		}
		err = s.Write(ctx)
		switch {
		case err == nil:
			tell(s.Reason)
			n = new(records.Attempts)
		case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err), !n.Again(ctx):
			return fmt.Errorf("removing the names of plan %s: %w", c.Plan.Name, err)
		}
	}
}
