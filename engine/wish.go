package engine

import (
	"cmp"
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Asked is what a detached plan is to do now, by its journal and by what people have declared.
type Asked struct {
	plans.Wish
	// Work says whether there is anything to do.
	Work bool
	// Refused says why not all that is declared is done.
	Refused string
	// Refuse is what the journal has to keep of a request that cannot be fulfilled, so that it is answered once; nil
	// for nothing.
	Refuse *plans.Heard
}

// Ask compares the two. Without a Declaration that approves this very plan, a plan that is under way goes on as its
// journal says, and one of which nothing has been begun rests.
func Ask(p *plans.Plan, j *plans.Journal, d *plans.Declaration) Asked {
	out := Asked{Wish: plans.Wish{Course: j.Leg.Course}, Work: !j.Idle(p)}
	if d == nil || d.ApprovedHash != p.Hash {
		out.Work = out.Work && j.Epoch > 0
		return out
	}
	course, later := heading(p, j, d.Course.Way())
	heard := plans.Heard{Course: course, Paused: d.Paused, Request: j.Heard.Request}
	if d.Ask != nil {
		heard.Request = d.Ask.ID
	}
	if d.Ask != nil && d.Ask.RemoveNames && d.Ask.ID != j.Heard.Request {
		if err := KeepsNames(p, j); err != nil {
			return out.refuse(heard, err)
		}
		out.Wish = plans.Wish{Course: course, RemoveNames: true, Heard: &heard}
		return out
	}
	if heard.Asks(j.Heard) || j.Ended() {
		out.Refused = cmp.Or(later, j.Heard.Refused)
		return out
	}
	wish := plans.Wish{Course: course, KeepNames: d.KeepNames && course == plans.Clean, Heard: &heard}
	if d.Ask != nil && d.Ask.ID != j.Heard.Request {
		wish.SkipGates, wish.Word, wish.Route = d.Ask.SkipGates, d.Ask.Word(), d.Ask.Route()
	}
	trial := *j
	if err := refuse(p, &trial, d, wish); err != nil {
		return out.refuse(heard, err)
	}
	out.Wish, out.Work, out.Refused = wish, true, later
	return out
}

// refuse is the answer to a request that cannot be fulfilled.
func (a Asked) refuse(heard plans.Heard, why error) Asked {
	heard.Refused = why.Error()
	a.Refused, a.Refuse = heard.Refused, &heard
	return a
}

// Hear notes all that is declared as heard, for a journal that was lost with what it had heard: nothing goes on until
// somebody asks anew.
func Hear(p *plans.Plan, j *plans.Journal, d *plans.Declaration) {
	if d == nil {
		return
	}
	course, _ := heading(p, j, d.Course.Way())
	j.Heard = plans.Heard{Course: course, Paused: d.Paused}
	if d.Ask != nil {
		j.Heard.Request = d.Ask.ID
	}
}

// heading is the course that a plan can take now for the one that is declared, and why it is another one.
func heading(p *plans.Plan, j *plans.Journal, want plans.Course) (plans.Course, string) {
	is := j.Leg.Course
	trial := *j
	switch {
	case want == is:
		return want, ""
	case j.Ended() || want == plans.Move:
		return is, fmt.Sprintf("spec.course is %s, and plan %s is on the course %s, from which no way leads there", plans.GoalOf(want), p.Name, plans.GoalOf(is))
	case want == plans.Clean && is == plans.Move && j.Outcome != plans.Moved:
		return is, fmt.Sprintf("plan %s is finalized as soon as every ordinal is on the destination", p.Name)
	}
	if err := Departure(p, &trial, want); err != nil {
		return is, err.Error()
	}
	return want, ""
}

// refuse gives the reason why a wish has no meaning where the plan is.
func refuse(p *plans.Plan, trial *plans.Journal, d *plans.Declaration, w plans.Wish) error {
	switch {
	case w.Word.SourceGone && d.Ask.SourceGone != p.Source.Cluster:
		return fmt.Errorf("spec.request.sourceGone is %s: the source of plan %s is in the cluster %s", d.Ask.SourceGone, p.Name, p.Source.Cluster)
	case w.Course == trial.Leg.Course && trial.Outcome != "" && trial.Outcome != plans.Split:
		return fmt.Errorf("plan %s is not under way (%s)", p.Name, trial.Outcome)
	}
	return Undertake(p, trial, w)
}

// Undertake lets the journal take a wish over, with all that belongs to it: it is written at once.
func Undertake(p *plans.Plan, j *plans.Journal, w plans.Wish) error {
	if err := keepNames(p, j, w); err != nil {
		return err
	}
	if err := Departure(p, j, w.Course); err != nil {
		return err
	}
	if err := j.Vouch(p, w.Word); err != nil {
		return err
	}
	j.Held, j.Waits = "", "" // the looks say again what is still true of it
	if w.Heard != nil {
		if j.Outcome == plans.Split || w.Route != (plans.Route{}) {
			if err := j.Take(p, w.Route); err != nil {
				return err
			}
		}
		j.Heard, j.Paused = *w.Heard, w.Heard.Paused
	}
	if w.SkipGates { // it is about the way that the plan is going now
		return j.Skip(p)
	}
	return nil
}

// keepNames records, before the cleaning up, that the names outlive it.
func keepNames(p *plans.Plan, j *plans.Journal, w plans.Wish) error {
	switch {
	case !w.KeepNames || j.KeepNames:
		return nil
	case len(p.Directories()) == 0:
		return fmt.Errorf("--keep-names: plan %s bridges no names (--names %s)", p.Name, p.Names.Mode)
	case j.Leg.Course == plans.Clean:
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
