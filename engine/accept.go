package engine

import (
	"cmp"
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Requested is what a detached plan is to do now, by its journal and by what people have declared.
type Requested struct {
	plans.Command
	// Work says whether there is anything to do.
	Work bool
	// Refused says why not all that is declared is done.
	Refused string
	// Refuse is what the journal has to keep of a request that cannot be fulfilled, so that it is answered once; nil
	// for nothing.
	Refuse *plans.Observed
}

// ReadRequest compares the two. Without a Declaration that approves this very plan, a plan that is under way goes on as its
// journal says, and one of which nothing has been begun rests.
func ReadRequest(p *plans.Plan, j *plans.Journal, d *plans.Declaration) Requested {
	out := Requested{Command: plans.Command{Direction: j.Leg.Direction}, Work: !j.Idle(p)}
	if d == nil || d.ApprovedHash != p.Hash {
		out.Work = out.Work && j.Epoch > 0
		return out
	}
	direction, later := heading(p, j, cmp.Or(d.Direction, plans.Move))
	heard := plans.Observed{Direction: direction, Paused: d.Paused, Request: j.Observed.Request}
	if d.Request != nil {
		heard.Request = d.Request.ID
	}
	if d.Request != nil && d.Request.RemoveNames && d.Request.ID != j.Observed.Request {
		if err := KeepsNames(p, j); err != nil {
			return out.refuse(heard, err)
		}
		out.Command = plans.Command{Direction: direction, RemoveNames: true, Observed: &heard}
		return out
	}
	if heard.SameRequest(j.Observed) || j.Ended() {
		out.Refused = cmp.Or(later, j.Observed.Refused)
		return out
	}
	wish := plans.Command{Direction: direction, KeepNames: d.KeepNames && direction == plans.Finalize, Observed: &heard}
	if d.Request != nil && d.Request.ID != j.Observed.Request {
		wish.SkipGates, wish.Assurance, wish.Limits = d.Request.SkipGates, d.Request.Assurance(), d.Request.Limits()
	}
	trial := *j
	if err := refuse(p, &trial, d, wish); err != nil {
		return out.refuse(heard, err)
	}
	out.Command, out.Work, out.Refused = wish, true, later
	return out
}

// refuse is the answer to a request that cannot be fulfilled.
func (a Requested) refuse(heard plans.Observed, why error) Requested {
	heard.Refused = why.Error()
	a.Refused, a.Refuse = heard.Refused, &heard
	return a
}

// Observe notes all that is declared as heard, for a journal that was lost with what it had heard: nothing goes on until
// somebody asks anew.
func Observe(p *plans.Plan, j *plans.Journal, d *plans.Declaration) {
	if d == nil {
		return
	}
	direction, _ := heading(p, j, cmp.Or(d.Direction, plans.Move))
	j.Observed = plans.Observed{Direction: direction, Paused: d.Paused}
	if d.Request != nil {
		j.Observed.Request = d.Request.ID
	}
}

// heading is the course that a plan can take now for the one that is declared, and why it is another one.
func heading(p *plans.Plan, j *plans.Journal, want plans.Direction) (plans.Direction, string) {
	is := j.Leg.Direction
	trial := *j
	switch {
	case want == is:
		return want, ""
	case j.Ended() || want == plans.Move:
		return is, fmt.Sprintf("spec.direction is %s, and plan %s is on the direction %s, from which no way leads there", want, p.Name, is)
	case want == plans.Finalize && is == plans.Move && j.Outcome != plans.Moved:
		return is, fmt.Sprintf("plan %s is finalized as soon as every ordinal is on the destination", p.Name)
	}
	if err := Redirect(p, &trial, want); err != nil {
		return is, err.Error()
	}
	return want, ""
}

// refuse gives the reason why a wish has no meaning where the plan is.
func refuse(p *plans.Plan, trial *plans.Journal, d *plans.Declaration, w plans.Command) error {
	switch {
	case w.Assurance.SourceGone && d.Request.SourceGone != p.Source.Cluster:
		return fmt.Errorf("spec.request.sourceGone is %s: the source of plan %s is in the cluster %s", d.Request.SourceGone, p.Name, p.Source.Cluster)
	case w.Direction == trial.Leg.Direction && trial.Outcome != "" && trial.Outcome != plans.Split:
		return fmt.Errorf("plan %s is not under way (%s)", p.Name, trial.Outcome)
	}
	return Accept(p, trial, w)
}

// Accept lets the journal take a wish over, with all that belongs to it: it is written at once.
func Accept(p *plans.Plan, j *plans.Journal, w plans.Command) error {
	if err := keepNames(p, j, w); err != nil {
		return err
	}
	if err := Redirect(p, j, w.Direction); err != nil {
		return err
	}
	if err := j.Assure(p, w.Assurance); err != nil {
		return err
	}
	j.Blocked, j.Waiting = "", "" // the looks say again what is still true of it
	if w.Observed != nil {
		if j.Outcome == plans.Split || w.Limits != (plans.Limits{}) {
			if err := j.Limit(p, w.Limits); err != nil {
				return err
			}
		}
		j.Observed, j.Paused = *w.Observed, w.Observed.Paused
	}
	if w.SkipGates { // it is about the way that the plan is going now
		return j.Skip(p)
	}
	return nil
}

// keepNames records, before the cleaning up, that the names outlive it.
func keepNames(p *plans.Plan, j *plans.Journal, w plans.Command) error {
	switch {
	case !w.KeepNames || j.KeepNames:
		return nil
	case len(p.Directories()) == 0:
		return fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", p.Name, p.Names.Mode)
	case j.Leg.Direction == plans.Finalize:
		return fmt.Errorf("--keep-names: plan %s is being finalized without it, and its names may be gone", p.Name)
	}
	j.KeepNames = true
	return nil
}

// KeepsNames gives the reason why the names of a plan cannot be taken away by themselves, or nil: it was finalized and has
// kept them.
func KeepsNames(p *plans.Plan, j *plans.Journal) error {
	switch {
	case !j.Ended():
		return fmt.Errorf("plan %s is not finalized yet, and its names go with its end, by finalize (without --keep-names) or abort", p.Name)
	case !j.KeepNames:
		return fmt.Errorf("plan %s has kept no names", p.Name)
	}
	return nil
}
