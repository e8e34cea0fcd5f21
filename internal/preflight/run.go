package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Check runs the whole catalogue and reports every finding, not only the first. It writes nothing. j is the
// journal of a stored plan of which no step has begun, or nil.
func Check(ctx context.Context, p *plans.Plan, on clusters.Clusters, j *journal.Journal, by check.Caller) (*Report, error) {
	r := &Report{APIVersion: plans.APIVersion, Kind: "CheckReport", Plan: p.Name, Source: p.Source, Destination: p.Destination}
	on = on.Listed(p)
	i := check.Inspect(p, on)
	i.Taken, i.Draft, i.Caller = j != nil && j.Epoch > 0, j == nil, by
	access, others := accessChecks(), lookingChecks()
	var err error
	if r.Checks, err = results(ctx, i, access); err != nil {
		return nil, err
	}
	if len(r.Failed()) > 0 {
		r.NotRun = len(others)
		return r, nil
	}
	moving, err := moving(ctx, i)
	if err != nil {
		return nil, err
	}
	if len(moving.Findings) > 0 { // the other checks would only stumble over that move
		r.Checks, r.NotRun = append(r.Checks, moving), len(others)-1
		return r, nil
	}
	if i.Now, err = Survey(ctx, on, p.Source, p.Destination, p.Declared().MaxUnavailable, "", p.Patches); err != nil && !errors.As(err, new(errClash)) { // the check budget-alone reports it
		return nil, err
	}
	more, err := results(ctx, i, others)
	if err != nil {
		return nil, err
	}
	r.Checks = append(r.Checks, more...)
	if r.Clients, err = clientServices(ctx, i); err != nil {
		return nil, err
	}
	r.Backends, err = volumes.Backends(ctx, i)
	return r, err
}

// moving asks the check not-migrating alone, of the sets as they are.
func moving(ctx context.Context, i check.Inspection) (r Result, err error) {
	if i.Now.Set, err = i.Set(ctx, plans.Source); err != nil {
		return r, err
	}
	if i.Now.Existing, err = i.Set(ctx, plans.Destination); err != nil {
		return r, err
	}
	all := lookingChecks()
	own := all[slices.IndexFunc(all, func(c row) bool { return c.name == notMigrating })]
	answers, err := results(ctx, i, []row{own})
	if err != nil {
		return r, err
	}
	return answers[0], nil
}

// results runs checks concurrently, and returns their results in the order of the checks.
func results(ctx context.Context, i check.Inspection, checks []row) ([]Result, error) {
	out := make([]Result, len(checks))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(check.MaxConcurrentRequests)
	for k, c := range checks {
		g.Go(func() (err error) {
			defer plans.RecoverPanic(&err)
			found, err := c.run(ctx, i)
			if err != nil {
				return fmt.Errorf("check %s: %w", c.name, err)
			}
			out[k] = c.result(i.Untried(found), slices.Contains(i.Ignored, c.name) && c.may(i))
			return nil
		})
	}
	return out, g.Wait()
}

// may reports whether the user may go on in spite of what the check finds.
func (c row) may(i check.Inspection) bool {
	return c.ignorable || c.accepted && i.From == plans.Destination
}

func (c row) result(found []check.Finding, ignored bool) Result {
	r := Result{Group: c.group, Name: c.name, About: c.about, Level: check.Pass}
	for _, f := range found {
		f.Check = c.name
		if f.Level == "" {
			f.Level = check.Fail
		}
		if ignored {
			f.Level, f.Ignored = check.Warn, true
		}
		if r.Level != check.Fail {
			r.Level = f.Level
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}
