package gates

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Label on a Job holds the name of its gate.
const Label = "stsmigrate.dev/gate"

// jobDeadlineGrace is the time that the Job controller may take, after a Job's own deadline, to mark the Job
// as failed.
const jobDeadlineGrace = time.Minute

// Jobs lists the Jobs of this plan on a side, read live.
func Jobs(ctx context.Context, p *plans.Plan, c client.Client, side plans.Side) ([]batchv1.Job, error) {
	if !p.HasGate(plans.Gate.IsJob) {
		return nil, nil
	}
	var list batchv1.JobList
	if err := c.List(ctx, &list, client.InNamespace(p.On(side).Namespace), client.HasLabels{Label}); err != nil {
		return nil, fmt.Errorf("listing the Jobs of %s: %w", p.On(side), err)
	}
	return slices.DeleteFunc(list.Items, func(j batchv1.Job) bool { return !(plans.Stamp{Plan: p.ID}).Mine(&j) }), nil
}

// Clear is the look that deletes every Job of the plan (S15). It is part of Thaw.
func (k *Keeper) Clear(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	k.recall(m)
	return k.sweep(ctx, m, nil)
}

// sweep takes the answers of the Jobs that are complete. It deletes the Jobs of the plan that no turn needs any
// more: the completed ones, and the leftovers of a reversed plan.
func (k *Keeper) sweep(ctx context.Context, m plans.StepContext, turns []turn) (plans.Observation, error) {
	for _, side := range plans.Sides() {
		jobs, err := Jobs(ctx, k.plan, k.on[side], side)
		if err != nil {
			return plans.Observation{}, err
		}
		for _, j := range jobs {
			i := slices.IndexFunc(turns, func(t turn) bool {
				return t.IsJob() && side == m.GateSide() && j.Name == k.plan.JobName(t.Gate, m.Step, t.ordinal)
			})
			if i >= 0 && !k.hears(m, turns[i], &j) {
				continue
			}
			job, err := k.read(ctx, side, j.Name) // the deletion is conditional on this read
			if err != nil {
				return plans.Observation{}, err
			}
			if job != nil {
				return k.remove(m, side, job, "which is not needed any more"), nil
			}
		}
	}
	return plans.Done(), nil
}

func (k *Keeper) read(ctx context.Context, side plans.Side, name string) (*batchv1.Job, error) {
	var job batchv1.Job
	key := client.ObjectKey{Namespace: k.plan.On(side).Namespace, Name: name}
	err := k.on[side].Get(ctx, key, &job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Job %s on the %s: %w", key, side, err)
	}
	return &job, nil
}

// remove deletes a Job and its pods. The result of its gate is journaled BEFORE.
func (k *Keeper) remove(m plans.StepContext, side plans.Side, job *batchv1.Job, why string) plans.Observation {
	where := k.plan.On(side)
	if barred := m.Stamp.Barred(job); barred != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("Job %s of %s %s", job.Name, where, barred))
	}
	if job.DeletionTimestamp != nil {
		return plans.Wait(reasons.GateNotPassed, going(job, where))
	}
	podsFirst := client.PropagationPolicy(metav1.DeletePropagationForeground) // the default for Jobs would leave the pods
	return plans.Write(fmt.Sprintf("%s: delete Job %s, %s", side, job.Name, why), k.undo(),
		func(ctx context.Context) error { return writes.Delete(ctx, k.on[side], job, podsFirst) })
}

// going describes a Job that is being deleted, and what keeps it.
func going(job *batchv1.Job, where plans.Ref) string {
	out := fmt.Sprintf("Job %s of %s is being deleted", job.Name, where)
	others := slices.DeleteFunc(slices.Clone(job.Finalizers), func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	if len(others) > 0 {
		out += fmt.Sprintf(", and the finalizers %s of other writers keep it", strings.Join(others, ", "))
	}
	return out
}

// job runs one Job to its end. The Job is created suspended and started with a conditional write: a process
// that has been replaced may still create it, but not start it (S9).
func (k *Keeper) job(ctx context.Context, m plans.StepContext, t turn) (plans.Observation, error) {
	side := m.GateSide()
	name, where := k.plan.JobName(t.Gate, m.Step, t.ordinal), k.plan.On(side)
	job, err := k.read(ctx, side, name)
	if err != nil {
		return plans.Observation{}, err
	}
	a, now := k.turnOf(t), k.Prober.Now()
	limit := t.Timeout.Duration + jobDeadlineGrace
	left := a.since.Add(limit).Sub(now)
	switch {
	case left <= 0 && job == nil && a.ran:
		return k.held(t, fmt.Sprintf("another writer has deleted Job %s of %s", name, where), fmt.Sprintf("created again for %s", limit)), nil
	case job == nil:
		a.ran, a.looked = true, now
		made := k.build(m, t)
		return plans.Write(fmt.Sprintf("%s: create Job %s for gate %s of %s", side, name, t.Name, k.plan.Pod(side, t.ordinal)), k.undo(),
			func(ctx context.Context) error { return k.on[side].Create(ctx, made) }), nil
	case !m.Stamp.Mine(job):
		return plans.Stop(reasons.GateJobForeign, fmt.Sprintf("Job %s of %s is not of this plan; delete it", name, where)), nil
	case m.Stamp.Barred(job) != "":
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("Job %s of %s %s", name, where, m.Stamp.Barred(job))), nil
	}
	if s := k.spent(m, t, job, a.ran); s != nil {
		return *s, nil
	}
	if a.looked = now; job.DeletionTimestamp == nil {
		a.ran = true
	}
	if startable(job) {
		next := job.DeepCopy()
		next.Spec.Suspend = new(bool)
		m.Stamp.Put(next)
		return plans.Write(fmt.Sprintf("%s: start Job %s", side, name), plans.Undo{},
			func(ctx context.Context) error { return writes.Change(ctx, k.on[side], job, next) }), nil
	}
	if left <= 0 {
		return k.held(t, stateOf(job, where), fmt.Sprintf("waited %s", limit)), nil
	}
	s := plans.Wait(reasons.GateNotPassed, fmt.Sprintf("gate %s of %s: %s, for up to %s", t.Name, k.plan.Pod(t.step.GateSide(), t.ordinal), stateOf(job, where), t.Timeout.Duration))
	s.Again = left
	return s, nil
}

// spent returns what follows from a Job that was asked earlier, or that has ended. It returns nil for any other Job. A
// Job that failed before this process ran it is tried again.
func (k *Keeper) spent(m plans.StepContext, t turn, job *batchv1.Job, ran bool) *plans.Observation {
	side, failed := m.GateSide(), is(job, batchv1.JobFailed)
	var s plans.Observation
	switch {
	case !k.answers(m, job) && job.DeletionTimestamp == nil:
		s = k.remove(m, side, job, "which was asked earlier, to ask again")
	case k.answers(m, job) && is(job, batchv1.JobComplete) != nil:
		k.hears(m, t, job)
		s = k.remove(m, side, job, "which is not needed any more")
	case failed != nil && !ran:
		s = k.remove(m, side, job, "which failed earlier, to try again")
	case failed != nil && k.answers(m, job):
		where := k.plan.On(side)
		s = k.held(t, fmt.Sprintf("Job %s of %s failed (%s: %s)", job.Name, where, failed.Reason, shorten(failed.Message)), fmt.Sprintf("`kubectl logs -n %s job/%s` may tell why", where.Namespace, job.Name))
	default:
		return nil
	}
	return &s
}

// startable reports whether a Job waits for the write that starts it.
func startable(job *batchv1.Job) bool {
	return job.DeletionTimestamp == nil && job.Spec.Suspend != nil && *job.Spec.Suspend
}

// stateOf describes a Job that has not ended.
func stateOf(job *batchv1.Job, where plans.Ref) string {
	if job.DeletionTimestamp != nil {
		return going(job, where)
	}
	return fmt.Sprintf("Job %s of %s has %d active and %d failed pod(s)", job.Name, where, job.Status.Active, job.Status.Failed)
}

// build returns the Job of a turn. The variables come first in the environment, so that Kubernetes itself
// expands them in commands and in the variables after them.
func (k *Keeper) build(m plans.StepContext, t turn) *batchv1.Job {
	job := Made(k.plan, t.Gate, m.Step, t.ordinal)
	job.Annotations = map[string]string{askedAnnotation: k.tag(m)}
	m.Stamp.Put(job)
	return job
}

// Made returns the Job of a gate for an ordinal as it is created: suspended.
func Made(p *plans.Plan, g plans.Gate, s plans.Step, ordinal int32) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.On(s.GateSide()).Namespace, Name: p.JobName(g, s, ordinal), Labels: map[string]string{Label: g.Name}},
		Spec:       *g.Job.DeepCopy(),
	}
	suspended, deadline := true, int64(math.Ceil(g.Timeout.Seconds()))
	job.Spec.Suspend, job.Spec.ActiveDeadlineSeconds = &suspended, &deadline
	vars := p.GateVars(s, ordinal)
	for _, containers := range [][]corev1.Container{job.Spec.Template.Spec.InitContainers, job.Spec.Template.Spec.Containers} {
		for i := range containers {
			containers[i].Env = append(slices.Clone(vars), containers[i].Env...)
		}
	}
	return job
}

// is returns the condition of a Job if it is true, else nil.
func is(job *batchv1.Job, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}
