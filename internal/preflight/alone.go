package preflight

import (
	"context"
	"errors"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// ByPlan is the name under which a report says why no plan can be made at all. It is no check of the catalogue.
const ByPlan = "plan"

// Alone is what can be said of a set that has no destination: whether it could move to a namespace that has nothing of it.
type Alone struct {
	// Plan is that of such a move, nil if none can be made. It is never carried out.
	Plan *plans.Plan
	// On are the clients that the checks have read with. Nothing is found at its destination.
	On     clusters.Clusters
	Report *Report
	// Pods is how many ordinals it has.
	Pods int32
	// Unasked are the checks that were not asked, or not of everything, each with the rights that are missing.
	Unasked map[string][]clusters.Right
	// Within is why its volumes mean nothing in another cluster, or "".
	Within string
}

// Undecided reports whether a check was not asked that could refuse the move.
func (a *Alone) Undecided() bool {
	return slices.ContainsFunc(catalogue(), func(c row) bool { return c.worst == check.Fail && len(a.Unasked[c.name]) > 0 })
}

// AskAlone asks the checks that need no destination. on is a client of Many, in the words of the set's kind. It returns nil
// for a set that does not exist.
func AskAlone(ctx context.Context, on client.Client, set plans.Ref, by check.Caller) (*Alone, error) {
	set.Cluster = "this"
	to := set
	if to.Namespace = "elsewhere"; set.Namespace == to.Namespace {
		to.Namespace = "somewhere-else"
	}
	a := &Alone{
		On: clusters.Nowhere(on), Unasked: map[string][]clusters.Right{},
		Report: &Report{APIVersion: plans.APIVersion, Kind: "CheckReport", Plan: plans.NameFor(set.Name), Source: set},
	}
	is, err := clusters.ReadSet(ctx, on, set) // with the right to look at it, which what follows would take for a set that is gone
	if err == nil && is == nil {
		return nil, nil
	}
	in := build.Inputs{}
	if err == nil {
		a.Pods = plans.SliceOf(is).Replicas
		in, err = Survey(ctx, clusters.Nowhere(clusters.Lenient(on)), set, to, nil, "", nil)
	}
	switch {
	case err != nil && !Refuses(err):
		return nil, err
	case err != nil && !errors.As(err, new(errClash)): // which the check budget-alone reports
		a.refused(set, err)
	}
	if in.Set == nil {
		return a, nil
	}
	in.Name, in.ID, in.Dependencies, in.MaxUnavailable = a.Report.Plan, "alone", []plans.Dependency{}, max(in.MaxUnavailable, 1)
	if a.Plan, err = build.Plan(in); err != nil {
		a.Plan = nil
		a.refused(set, err)
		return a, nil
	}
	i := check.Inspect(a.Plan, a.On)
	i.Now, i.Draft, i.Caller = in, true, by
	return a, a.ask(ctx, i)
}

// refused reports why no plan can be made.
func (a *Alone) refused(set plans.Ref, why error) {
	a.Report.Checks = append(a.Report.Checks, noPlan(set, why))
}

// noPlan is the result under which a report says why no plan can be made.
func noPlan(set plans.Ref, why error) Result {
	r := row{group: "Plan", name: ByPlan, about: "a plan can be made of it"}
	return r.result([]check.Finding{{Object: set.Set(), Saw: plans.Line(why.Error()), Want: "a set of which a plan can be made", Remedy: "put that right, and ask again"}}, false)
}

// Refused returns the report about a set of which no plan can be made.
func Refused(source, destination plans.Ref, why error) *Report {
	return &Report{
		APIVersion: plans.APIVersion, Kind: "CheckReport", Plan: plans.NameFor(source.Name), Source: source, Destination: destination,
		Checks: []Result{noPlan(source, why)},
	}
}

// Refuses reports whether an error is about what was read, and not about the reading.
func Refuses(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status) && !errors.As(err, new(*url.Error)) && !errors.As(err, new(plans.Panic)) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// ask asks the checks. A move that is under way is found first: the others would only stumble over it.
func (a *Alone) ask(ctx context.Context, i check.Inspection) error {
	rows := slices.DeleteFunc(catalogue(), func(c row) bool { return !c.alone })
	at := slices.IndexFunc(rows, func(c row) bool { return c.name == notMigrating })
	moving, err := results(ctx, i, rows[at:at+1])
	if err != nil {
		return err
	}
	if len(moving[0].Findings) > 0 {
		a.Report.Checks, a.Report.NotRun = append(a.Report.Checks, moving[0]), len(rows)-1
		return nil
	}
	missed := make([]*clusters.Missed, len(rows))
	for n, c := range rows {
		rows[n].run = seeing(c.run, &missed[n])
	}
	answers, err := results(ctx, i, rows)
	if err != nil {
		return err
	}
	for n, c := range rows {
		if rights := missed[n].Rights(); len(rights) > 0 {
			a.Unasked[c.name] = rights
			if len(answers[n].Findings) == 0 {
				continue // it has not passed
			}
		}
		a.Report.Checks = append(a.Report.Checks, answers[n])
	}
	a.Within, err = volumes.Within(ctx, i)
	if apierrors.IsForbidden(err) {
		return nil // the check volume-usable has missed it too
	}
	return err
}

// seeing returns a check that passes over what it may not look at, and notes it.
func seeing(run func(context.Context, check.Inspection) ([]check.Finding, error), missed **clusters.Missed) func(context.Context, check.Inspection) ([]check.Finding, error) {
	return func(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
		ctx, *missed = clusters.Missing(ctx)
		found, err := run(ctx, i.Of(i.Ordinals)) // what checks read once for all, each has to miss itself
		return slices.DeleteFunc(found, func(f check.Finding) bool { return f.Unseen }), check.IgnoreForbidden(err)
	}
}

// NeedDestination returns how many checks are not asked of a set alone.
func NeedDestination() int {
	return len(slices.DeleteFunc(catalogue(), func(c row) bool { return c.alone }))
}
