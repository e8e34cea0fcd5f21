package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/preflight/volumes"
)

// Check runs the whole catalogue and reports everything that it finds (not only the
// first). Nothing has been written when it returns. j is the journal of a stored plan of
// which nothing has been begun, or nil.
func Check(ctx context.Context, p *plans.Plan, on clusters.Clusters, j *plans.Journal, orchestrated check.Orchestrated) (*Report, error) {
	r := &Report{APIVersion: plans.APIVersion, Kind: "CheckReport", Plan: p.Name, Source: p.Source, Destination: p.Destination}
	i := check.Inspect(p, on)
	i.Taken, i.Orchestrated = j != nil && j.Epoch > 0, orchestrated
	access, others := accessChecks(), lookingChecks()
	var err error
	if r.Checks, err = results(ctx, i, access); err != nil {
		return nil, err
	}
	if len(r.Failed()) > 0 {
		r.NotRun = len(others)
		return r, nil
	}
	if i.Now, err = Survey(ctx, on, p.Source, p.Destination, p.MaxUnavailable, "", p.Patches); err != nil && !errors.As(err, new(errClash)) { // a check finds that
		return nil, err
	}
	more, err := results(ctx, i, others)
	if err != nil {
		return nil, err
	}
	r.Checks = append(r.Checks, more...)
	r.Backends, err = volumes.Backends(ctx, i)
	return r, err
}

// CheckWave asks again, before the given ordinals move, what can have changed since Check
// and would not be found, or be found too late, by the looks of the engine. on must be
// clients that may be used side by side, such as those of Connect. It gives
// what must be mended before they move: warnings have been given before the first
// write, and what the plan ignores is ignored here too. Of a plan that is being walked back only what would stop
// it anyway is asked, with the ordinals down (S17): the way out is never barred by more.
func CheckWave(ctx context.Context, p *plans.Plan, on clusters.Clusters, j *plans.Journal, ordinals plans.Slice, orchestrated check.Orchestrated) ([]check.Finding, error) {
	if j.Leg.Direction == plans.Finalize {
		return nil, nil
	}
	i := check.Inspect(p, on)
	i.Ordinals, i.Midway, i.Taken, i.Orchestrated = ordinals, true, true, orchestrated
	if j.Leg.Direction == plans.Abort {
		i.From = plans.Destination
	}
	var err error
	if i.Now.Set, err = i.Set(ctx, plans.Source); err != nil {
		return nil, err
	}
	if i.Now.Existing, err = i.Set(ctx, plans.Destination); err != nil {
		return nil, err
	}
	if i.Now.Set == nil || i.Now.Existing == nil {
		return nil, nil // the next look says which of them is gone
	}
	again := slices.DeleteFunc(catalogue(), func(c row) bool { return !c.wave || j.Leg.Direction == plans.Abort && !c.back })
	results, err := results(ctx, i, again)
	if err != nil {
		return nil, err
	}
	return (&Report{Checks: results}).Failed(), nil
}

// results runs checks side by side, and gives what they found in their order.
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
			out[k] = c.result(found, slices.Contains(i.Plan.Ignored, c.name))
			return nil
		})
	}
	return out, g.Wait()
}

func (c row) result(found []check.Finding, ignored bool) Result {
	r := Result{Group: c.group, Name: c.name, About: c.about, Level: check.Pass}
	for _, f := range found {
		f.Check = c.name
		if f.Level == "" {
			f.Level = check.Fail
		}
		if ignored && c.ignorable {
			f.Level, f.Ignored = check.Warn, true
		}
		if r.Level != check.Fail {
			r.Level = f.Level
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}
