package journal

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// validate returns the reason why a journal cannot belong to a plan. A process that resumes from a
// journal iterates over its steps, and writes its saved values.
func (j *Journal) validate(p *plans.Plan) error {
	for _, refuse := range []func(*plans.Plan) error{j.Leg.Validate, j.refuseSteps, j.refuseRoute, j.refuseState, j.refuseFlight, j.refuseSaved, j.refuseObserved} {
		if err := refuse(p); err != nil {
			return fmt.Errorf("the journal does not fit plan %s: %w; restore it from a backup", p.Name, err)
		}
	}
	return nil
}

func (j *Journal) refuseSteps(p *plans.Plan) error {
	before := j.Leg.First - 1
	last := before + p.Length(j.Leg)
	switch {
	case j.Epoch < 0:
		return fmt.Errorf("epoch is %d, expected 0 or more", j.Epoch)
	case j.Done < before || j.Done > last || j.Begun < before || j.Begun > last:
		return fmt.Errorf("done is %d and begun is %d, expected %d to %d, the steps of its leg", j.Done, j.Begun, before, last)
	case j.Begun-j.Done > plans.MaxAnnounced:
		return fmt.Errorf("begun is %d and done is %d, expected no more than %d between them", j.Begun, j.Done, plans.MaxAnnounced)
	case j.Begun > j.Done && !j.together(p):
		return fmt.Errorf("begun is %d and done is %d, expected that all between them are the steps of one wave, or of one kind", j.Begun, j.Done)
	case j.Passed != nil && (j.Passed.Seq < 1 || j.Passed.Seq > last || len(j.Passed.Gates) > len(p.Gates)*int(p.Window)):
		return fmt.Errorf("passed has %d gates at step %d, expected a step of its leg and no more gates than the plan has", len(j.Passed.Gates), j.Passed.Seq)
	case j.Passed != nil && len(j.Passed.At) > len(j.Passed.Gates):
		return fmt.Errorf("passed has %d times for %d gates, expected one for each", len(j.Passed.At), len(j.Passed.Gates))
	}
	return nil
}

// together reports whether the steps that have begun and are not done belong to one wave, or are announced at
// once. A new route takes effect after them, so a wave that is not reached yet must not have begun.
func (j *Journal) together(p *plans.Plan) bool {
	first, _ := p.Step(j.Leg, j.Done+1)
	last, _ := p.Step(j.Leg, j.Begun)
	if first.Moves() {
		return first.Ordinals == last.Ordinals
	}
	return first.Op == last.Op
}

func (j *Journal) refuseRoute(p *plans.Plan) error {
	switch {
	case j.SkipGates < 0 || j.SkipGates > plans.AllSteps:
		return fmt.Errorf("skipGates is %d, expected the number of a step", j.SkipGates)
	case j.PauseAt != 0 && (j.PauseAt < p.Start || j.PauseAt > p.End()):
		return fmt.Errorf("pauseAt is %d, expected an ordinal of the plan, %s", j.PauseAt, p.Ordinals())
	case len(j.Touched) > int(p.Count) || slices.ContainsFunc(j.Touched, func(o int32) bool { return !p.Ordinals().Has(o) }):
		return fmt.Errorf("touched has %d ordinals, expected only those of the plan, %s", len(j.Touched), p.Ordinals())
	case j.Prepared != nil && !isWave(p, *j.Prepared):
		return fmt.Errorf("prepared is %d ordinals from %d, expected 1 to %d of %s", j.Prepared.Replicas, j.Prepared.Start, p.Window, p.Ordinals())
	}
	return nil
}

func (j *Journal) refuseState(p *plans.Plan) error {
	of := map[plans.Outcome]plans.Direction{plans.Moved: plans.Move, plans.Split: plans.Move, plans.Finalized: plans.Finalize, plans.Aborted: plans.Abort}
	if direction, known := of[j.Outcome]; j.Outcome != "" && (!known || direction != j.Leg.Direction) {
		return fmt.Errorf("outcome is %q on a %s", j.Outcome, j.Leg.Direction)
	}
	if d := j.Assurances.MaxUnavailable; d != 0 && (d < p.MaxUnavailable || d > p.Count) {
		return fmt.Errorf("assurances.maxUnavailable is %d, expected %d to %d", d, p.MaxUnavailable, p.Count)
	}
	if t := j.Assurances.OtherTemplate; t != "" && !plans.IsTemplateWord(t) {
		return fmt.Errorf("assurances.otherTemplate is %.20q, expected 8 digits", t)
	}
	if n := j.Assurances.SkipPlaces; n < 0 || n > plans.AllSteps {
		return fmt.Errorf("assurances.skipPlaces is %d, expected the number of a step", n)
	}
	for _, w := range j.Assurances.OtherCopies {
		if !plans.IsCopyWord(w) {
			return fmt.Errorf("assurances.otherCopies has %.300q, expected an object and 8 digits", w)
		}
	}
	return nil
}

// isWave reports whether a plan may have a wave of these ordinals.
func isWave(p *plans.Plan, o plans.Slice) bool {
	return o.Replicas >= 1 && o.Replicas <= p.Window && o.Start >= p.Start && o.Start <= p.End()-o.Replicas
}

func (j *Journal) refuseFlight(p *plans.Plan) error {
	f := j.Flight
	if f == nil {
		return nil
	}
	o := f.Ordinals
	if !isWave(p, o) || f.From != plans.Source && f.From != plans.Destination {
		return fmt.Errorf("flight is of %d ordinals from %d on the side %q, expected 1 to %d of %s, on a side", o.Replicas, o.Start, f.From, p.Window, p.Ordinals())
	}
	if len(f.Pods) > int(o.Replicas) || len(f.Volumes) > int(o.Replicas)*len(p.Claims) {
		return fmt.Errorf("flight has %d pods and %d volumes, expected no more than %d ordinals have", len(f.Pods), len(f.Volumes), o.Replicas)
	}
	return f.Validate(p)
}

func (j *Journal) refuseSaved(p *plans.Plan) error {
	for side, r := range j.Saved.Retention {
		for _, policy := range []appsv1.PersistentVolumeClaimRetentionPolicyType{r.WhenDeleted, r.WhenScaled} {
			if !slices.Contains([]appsv1.PersistentVolumeClaimRetentionPolicyType{"", appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType}, policy) || !slices.Contains(plans.Sides(), side) {
				return fmt.Errorf("saved.retention is %q on the side %q, expected Retain or Delete, on a side", policy, side)
			}
		}
	}
	for side, b := range j.Saved.Budgets {
		if !slices.Contains(plans.Sides(), side) || b.MinAvailable != nil && b.MaxUnavailable != nil {
			return fmt.Errorf("saved.budgets: the entry %q is invalid, expected the spec of a PodDisruptionBudget, with source or destination as its side", side)
		}
	}
	if s := j.Saved.Slice; s != nil && (!p.Existed() || s.Start < 0 || s.Replicas < 0 || s.End() < s.Start) {
		return fmt.Errorf("saved.slice begins with %d and has %d ordinals, expected the range of a destination set that was there before the plan", s.Start, s.Replicas)
	}
	return nil
}

// refuseObserved checks what the journal keeps of the Declaration.
func (j *Journal) refuseObserved(*plans.Plan) error {
	if !slices.Contains([]plans.Direction{"", plans.Move, plans.Abort, plans.Finalize}, j.Observed.Direction) {
		return fmt.Errorf("observed.direction is %q, expected %s, %s or %s", j.Observed.Direction, plans.Move, plans.Abort, plans.Finalize)
	}
	return nil
}
