// Package requests tells what users ask of a plan, and whether its journal can follow.
package requests

import (
	"cmp"
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Requested is what a detached plan should do now, by its journal and by what users have declared.
type Requested struct {
	plans.Command
	// Work reports whether there is anything to do.
	Work bool
	// Refused is the reason why not everything declared is done.
	Refused string
	// RefusedID names that reason.
	RefusedID reasons.ID
	// Careful is as in the Declaration.
	Careful bool
	// Refuse is what the journal must record of a request that cannot be fulfilled, so that it is answered
	// only once; nil for nothing.
	Refuse *plans.Observed
}

// Read compares the journal with the Declaration. Without a Declaration that approves this very plan, a plan
// under way continues as its journal states, and a plan that has not begun rests.
func Read(p *plans.Plan, j *journal.Journal, d *plans.Declaration) Requested {
	out := Requested{Command: plans.Command{Direction: j.Leg.Direction}, Work: !j.Idle(p)}
	if d == nil || d.ApprovedHash != p.Hash {
		out.Work = out.Work && j.Epoch > 0
		return out
	}
	out.Careful = d.Careful
	fresh := isNew(d.Request, j)
	direction, later := heading(p, j, cmp.Or(d.Direction, plans.Move), fresh)
	observed := plans.Observed{Direction: direction, Paused: d.Paused, Request: j.Observed.Request}
	if d.Request != nil {
		observed.Request = d.Request.ID
	}
	out.By = d.Requesters(changedFields(observed, j.Observed)...)
	if fresh && d.Request.RemoveNames {
		if err := cmp.Or(KeepsNames(p, j), isGone(p, d.Request)); err != nil {
			return out.refuse(observed, err)
		}
		out.Command = plans.Command{Direction: direction, By: out.By, RemoveNames: true, Assurance: d.Request.Assurance(), Observed: &observed}
		return out
	}
	if observed.SameRequest(j.Observed) || j.Ended() {
		out.RefusedID, out.Refused = notYet(later, j.Observed.RefusedID), cmp.Or(later, j.Observed.Refused)
		return out
	}
	command := plans.Command{Direction: direction, Turns: direction == plans.Move && j.Leg.Direction != plans.Move, By: out.By, KeepNames: d.KeepNames && direction == plans.Finalize, Observed: &observed}
	if fresh {
		command.SkipGates, command.Assurance, command.Limits = d.Request.SkipGates, d.Request.Assurance(), d.Request.Limits()
	}
	trial := *j
	if err := refuse(p, &trial, d, command); err != nil {
		return out.refuse(observed, err)
	}
	out.Command, out.Work, out.RefusedID, out.Refused = command, true, notYet(later, ""), later
	return out
}

// isNew reports whether there is a request that the journal has not observed.
func isNew(r *plans.Request, j *journal.Journal) bool {
	return r != nil && r.ID != j.Observed.Request
}

// changedFields returns the fields in which a Declaration differs from the one that was observed last.
func changedFields(now, last plans.Observed) (fields []string) {
	if now.Direction != last.Direction {
		fields = append(fields, plans.DirectionField)
	}
	if now.Request != last.Request {
		fields = append(fields, plans.RequestField)
	}
	return fields
}

// notYet returns the ID of the reason why a direction is not taken, or another one if it is.
func notYet(later string, or reasons.ID) reasons.ID {
	if later != "" {
		return reasons.DirectionImpossible
	}
	return or
}

// refuse returns the answer to a request that cannot be fulfilled.
func (a Requested) refuse(observed plans.Observed, why error) Requested {
	observed.RefusedID, observed.Refused = cmp.Or(reasons.Of(why), reasons.RequestWithoutUse), why.Error()
	a.RefusedID, a.Refused, a.Refuse = observed.RefusedID, observed.Refused, &observed
	return a
}

// Observe records everything that is declared as observed, for a journal that was lost with its own record of that:
// nothing continues until the user sends a new request.
func Observe(p *plans.Plan, j *journal.Journal, d *plans.Declaration) {
	if d == nil {
		return
	}
	direction, _ := heading(p, j, cmp.Or(d.Direction, plans.Move), false)
	j.Observed = plans.Observed{Direction: direction, Paused: d.Paused}
	if d.Request != nil {
		j.Observed.Request = d.Request.ID
	}
}

// heading returns the direction that a plan can take now towards the declared one, and the reason if it is another.
// asked reports that a new request came with it.
func heading(p *plans.Plan, j *journal.Journal, want plans.Direction, asked bool) (plans.Direction, string) {
	is := j.Leg.Direction
	trial := *j
	switch {
	case want == is:
		return want, ""
	case j.Ended():
		return is, fmt.Sprintf("spec.direction is %s, but plan %s is on direction %s and cannot change to it", want, p.Name, is)
	case want == plans.Move && !asked:
		return is, fmt.Sprintf("spec.direction is %s, and plan %s is on direction %s: it turns only for a new spec.request in the same change, such as {id: NEW, resume: true}, so that no tool turns it that writes an old direction again", want, p.Name, is)
	case want == plans.Finalize && is == plans.Move && j.Outcome != plans.Moved:
		return is, fmt.Sprintf("plan %s is finalized as soon as every ordinal is on the destination", p.Name)
	}
	if err := Direct(p, &trial, plans.Command{Direction: want, Turns: want == plans.Move}); err != nil {
		return is, err.Error()
	}
	return want, ""
}

// refuse returns the reason why a request has no meaning where the plan is, or nil.
func refuse(p *plans.Plan, trial *journal.Journal, d *plans.Declaration, w plans.Command) error {
	switch why := isGone(p, d.Request); {
	case w.Assurance.SourceGone && why != nil:
		return why
	case w.Direction == trial.Leg.Direction && trial.Outcome != "" && trial.Outcome != plans.Split:
		return fmt.Errorf("plan %s is not under way (%s)", p.Name, trial.Outcome)
	}
	return Accept(p, trial, w)
}

// isGone returns an error if a request says of another cluster than the source's that it is gone.
func isGone(p *plans.Plan, r *plans.Request) error {
	switch {
	case r == nil || r.SourceGone == "":
		return nil
	case p.OneCluster():
		return fmt.Errorf("spec.request.sourceGone is %s: both sides of plan %s are in one cluster", r.SourceGone, p.Name)
	case r.SourceGone != p.Source.Cluster:
		return fmt.Errorf("spec.request.sourceGone is %s: the source of plan %s is in the cluster %s", r.SourceGone, p.Name, p.Source.Cluster)
	}
	return nil
}

// Accept applies a request to the journal, with everything that belongs to it, so that
// one write records it all.
func Accept(p *plans.Plan, j *journal.Journal, w plans.Command) error {
	if w.KeepNames {
		if err := KeepNames(p, j); err != nil {
			return err
		}
	}
	if err := Direct(p, j, w); err != nil {
		return err
	}
	if err := j.Assure(p, w.Assurance); err != nil {
		return err
	}
	j.Waiting = ""
	if w.Observed != nil || !j.LooksOn() { // another process looks on unless the user asks for something
		j.Unblock()
	}
	if w.Observed != nil {
		if j.Outcome == plans.Split || w.Limits != (plans.Limits{}) {
			if err := j.Limit(p, w.Limits); err != nil {
				return err
			}
		}
		j.Observed, j.Paused = *w.Observed, w.Observed.Paused
	}
	if w.SkipGates {
		return j.Skip(p)
	}
	return nil
}

// KeepNames records, BEFORE the cleanup, that the names outlive the plan.
func KeepNames(p *plans.Plan, j *journal.Journal) error {
	switch {
	case j.KeepNames:
		return nil
	case len(p.Directories()) == 0:
		return fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", p.Name, p.Names.Mode)
	case j.Leg.Direction == plans.Finalize && j.Begun >= j.Leg.First:
		return fmt.Errorf("--keep-names: plan %s is being finalized without it, and its names may be gone", p.Name)
	}
	j.KeepNames = true
	return nil
}

// KeepsNames returns nil if the names of a plan can be removed on their own: it was finalized and has kept
// them. Otherwise it returns the reason.
func KeepsNames(p *plans.Plan, j *journal.Journal) error {
	switch {
	case !j.Ended():
		return fmt.Errorf("plan %s is not finalized yet; its names are removed when it ends, by finalize (without --keep-names) or abort", p.Name)
	case !j.KeepNames:
		return fmt.Errorf("plan %s has kept no names", p.Name)
	}
	return nil
}
