package runner

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/dns"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/records"
)

// RemoveNames takes away the names that a finalized plan has kept, and tells of each object that goes. It holds the Lease
// meanwhile, as a Keeper would make them again. A death on the way leaves the journal as it was, so that it is done again.
func (c Runner) RemoveNames(ctx context.Context, wish plans.Command, tell func(string)) error {
	lease, err := c.Store.Acquire(ctx, c.Holder, c.Dead, c.Now)
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx), true) }() // it expires by itself
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
	return c.Store.Change(ctx, c.Plan, func(j *plans.Journal) error {
		if err := c.mayUnname(ctx, j); err != nil {
			return err
		}
		if wish.Observed != nil {
			j.Observed = *wish.Observed
		}
		j.KeepNames, j.Waiting = false, ""
		return nil
	})
}

// mayUnname says why the journal is none any more whose names are to go.
func (c Runner) mayUnname(ctx context.Context, j *plans.Journal) error {
	if err := engine.KeepsNames(c.Plan, j); err != nil || c.Still == nil {
		return err
	}
	return c.Still(ctx, j)
}

// unname deletes one object after the other, while nobody else can have the Lease.
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
			return fmt.Errorf("taking the names of plan %s away: %w", c.Plan.Name, err)
		}
	}
}
