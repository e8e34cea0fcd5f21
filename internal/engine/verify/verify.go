// Package verify compares what is in both clusters with a plan and its journal. It reads at any time and writes
// nothing. A plan with which no other writer has interfered has no differences.
//
// The engine looks only at what its next step needs. This looks at everything that the plan has promised until
// now: the invariants (docs/invariants.md) of all ordinals, and of the objects that no step looks at again.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Report is the result of a comparison. Its JSON form is stable within an API version.
type Report struct {
	Plan  string      `json:"plan"`
	State plans.State `json:"state"`
	// Step is the next step of the plan, or "".
	Step string `json:"step,omitempty"`
	// Added are the ordinals of the destination that the plan did not move: others have added them.
	Added string `json:"added,omitempty"`
	// Compared is how many facts were compared.
	Compared int `json:"compared"`
	// NotCompared says which objects that pods name could not be compared, and why; "" for none.
	NotCompared string `json:"notCompared,omitempty"`
	// Clients says which Services of clients are not served as the plan says: others have made or deleted them since.
	Clients []string `json:"clients,omitempty"`
	// Differences are the facts that are not as the plan and its journal say.
	Differences []Difference `json:"differences"`
}

// Difference is one fact that is not as it should be.
type Difference struct {
	// Rule is the invariant that is violated, such as S4.
	Rule string `json:"rule"`
	// Object is what it is about, with its side.
	Object   string `json:"object"`
	Seen     string `json:"seen"`
	Expected string `json:"expected"`
}

// attempts is how often everything is read again because the plan went on meanwhile.
const attempts = 5

// errMoving reports that a plan goes on faster than it can be read.
type errMoving struct{ plan string }

func (e errMoving) Error() string {
	return fmt.Sprintf("plan %s went on while it was read, %d times: pause it, or verify it again", e.plan, attempts)
}

// Plan compares a plan with both clusters. What differs is believed only if the journal is the same before and
// after everything was read: a step that ends meanwhile changes what is expected.
func Plan(ctx context.Context, w clusters.Pair, store *records.Store, now func() time.Time) (*Report, error) {
	for range attempts {
		before, lost, err := kept(ctx, w.Plan, store)
		if err != nil {
			return nil, err
		}
		found, err := read(ctx, w)
		if err != nil {
			return nil, err
		}
		if lost != nil && slices.ContainsFunc(found.seen, func(m mark) bool { return m.stamp == w.Plan.ID }) {
			return nil, lost
		}
		report := compare(w.Plan, before, found)
		if holder, _, err := store.Holder(ctx, now); err == nil { // else it is said to be stopped while it moves
			report.State = records.State(w.Plan, before, holder)
		}
		after, _, err := kept(ctx, w.Plan, store)
		if err != nil {
			return nil, err
		}
		if len(report.Differences) == 0 || same(before, after) {
			return report, nil
		}
	}
	return nil, errMoving{w.Plan.Name}
}

// kept reads the journal. A plan without one has not begun, or has lost it: then objects carry its marks, and lost
// is the error that says so.
func kept(ctx context.Context, p *plans.Plan, store *records.Store) (j *journal.Journal, lost, err error) {
	j, err = store.JournalOrNew(ctx, p)
	if errors.As(err, new(records.ErrNoJournal)) {
		return journal.New(p), err, nil
	}
	return j, nil, err
}

// same reports whether two journals expect the same of the clusters.
func same(a, b *journal.Journal) bool {
	return a.Epoch == b.Epoch && a.Done == b.Done && a.Begun == b.Begun && a.Leg == b.Leg && a.Outcome == b.Outcome
}

// compare applies every rule that holds in the state of the plan.
func compare(p *plans.Plan, j *journal.Journal, f *facts) *Report {
	c := &comparison{plan: p, journal: j, facts: f, report: &Report{Plan: p.Name, State: records.State(p, j, ""), Differences: []Difference{}}}
	c.step, c.began, c.more = j.Next(p)
	if c.more && j.Outcome == "" {
		c.report.Step = c.step.ID()
	}
	switch {
	case j.Ended():
		c.unmarked()
	case j.Epoch == 0 && j.Begun == 0:
		c.asPlanned()
		c.unmarked()
	default:
		c.ownedSets()
		c.ranges()
		c.onePlace()
		c.kept()
		c.bound()
		c.retained()
		c.budgets()
		c.rollouts()
		c.copied()
		c.report.Clients = f.clients
	}
	return c.report
}

// Table returns the report as text: a row for each difference, or one sentence.
func (r *Report) Table() string {
	var b strings.Builder
	if len(r.Differences) == 0 {
		step := ""
		if r.Step != "" {
			step = ", next step " + r.Step
		}
		added := ""
		if r.Added != "" {
			added = fmt.Sprintf("the destination also has the ordinals %s, which others have added: finalize keeps them, and abort needs them gone\n", r.Added)
		}
		return fmt.Sprintf("plan %s (%s%s): all %d facts are as the plan and its journal say\n%s", r.Plan, r.State, step, r.Compared, added) + r.notCompared()
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tOBJECT\tSEEN\tEXPECTED")
	for _, d := range r.Differences {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Rule, plans.Line(d.Object), plans.Line(d.Seen), plans.Line(d.Expected))
	}
	_ = w.Flush() // a strings.Builder accepts everything
	return b.String() + r.notCompared()
}

// notCompared says what could not be compared, and what is said of clients beside the facts.
func (r *Report) notCompared() string {
	var out string
	for _, line := range r.Clients {
		out += line + "\n"
	}
	if r.NotCompared != "" {
		out += plans.Line(r.NotCompared) + "\n"
	}
	return out
}
