package orchestrator

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// View is where a plan stands, for people and programs. Its JSON form is stable
// within an API version.
type View struct {
	Plan           string    `json:"plan"`
	Source         plans.Ref `json:"source"`
	Destination    plans.Ref `json:"destination"`
	State          string    `json:"state"`
	Step           string    `json:"step,omitempty"`
	Reason         string    `json:"reason,omitempty"`
	Gates          string    `json:"gates,omitempty"`
	Next           string    `json:"next,omitempty"`
	Holder         string    `json:"holder,omitempty"`
	Epoch          int64     `json:"epoch"`
	MaxUnavailable int32     `json:"maxUnavailable"`
	Unavailable    int32     `json:"unavailable"`
	// BudgetsTightSince is set while a wave is under way; BudgetsTightLongest is the longest
	// time that a wave took from Tighten to Relax, in seconds.
	BudgetsTightSince   *metav1.Time `json:"budgetsTightSince,omitempty"`
	BudgetsTightLongest float64      `json:"budgetsTightLongestSeconds,omitempty"`
	// Downtime is how long the waves were on neither side.
	Downtime *plans.Downtime `json:"downtime,omitempty"`
	Ordinals []OrdinalView   `json:"ordinals"`
}

// OrdinalView is where one ordinal is.
type OrdinalView struct {
	Ordinal     int32    `json:"ordinal"`
	Source      string   `json:"source"`
	Destination string   `json:"destination"`
	Volumes     []string `json:"volumes,omitempty"`
	// Proof says how the pod and its volumes were last found to be free.
	Proof string `json:"proof,omitempty"`
	Phase string `json:"phase"`
}

// Status reads where a plan stands. It writes nothing. command makes a command
// line from a verb, such as abort, for the advice on what to do next.
func Status(ctx context.Context, p *plans.Plan, store *Store, on Clusters, now func() time.Time, command func(verb string) string) (*View, error) {
	j, _, err := store.Journal(ctx, p)
	if err != nil {
		return nil, err
	}
	v := &View{
		Plan: p.Name, Source: p.Source, Destination: p.Destination, Epoch: j.Epoch, MaxUnavailable: p.MaxUnavailable, BudgetsTightSince: j.Tight, Downtime: j.Downtime,
	}
	if j.Longest != nil {
		v.BudgetsTightLongest = j.Longest.Seconds()
	}
	if v.Holder, err = store.Holder(ctx, now); err != nil {
		return nil, err
	}
	e := New(p, store, on)
	e.epoch = j.Epoch
	step, began, more := j.Next(p)
	v.describe(p, j, command)
	if more && v.State != "Paused" {
		v.Step = e.StepOf(step)
		if j.Held == "" {
			if s, err := e.look(ctx, e.moment(j, step, began)); err == nil && s.Standing != plans.Before {
				v.Reason = s.Reason
			}
		}
	}
	return v, v.ordinals(ctx, world{plan: p, on: on}, j, step)
}

// describe fills in state, reason and the command to go on with.
func (v *View) describe(p *plans.Plan, j *plans.Journal, command func(verb string) string) {
	v.State = State(p, j, v.Holder)
	v.Gates = j.Skipped(p)
	v.Reason = j.Held
	if v.Reason == "" && v.Holder == "" {
		v.Reason = j.Waits
	}
	switch {
	case j.Ended() || v.Holder != "":
	case j.Wish != nil, j.Detached && j.Outcome == "" && j.Held == "" && !j.Paused:
		v.Next = "the orchestrator goes on with it"
	case j.Outcome == plans.Split:
		v.Next = command("resume") + " moves the ordinals that are left; " + command("abort") + " walks back"
	case j.Outcome == plans.Moved:
		v.Next = command("finalize") + " cleans the source up; until then " + command("abort") + " walks back"
	case j.Leg.Course == plans.Return:
		v.Next = command("abort")
	case j.Leg.Course == plans.Clean:
		v.Next = command("finalize")
	case j.Paused || j.Held != "":
		v.Next = command("resume") + " or " + command("abort")
	default:
		v.Next = command("apply") + " or " + command("abort")
	}
}

// State is the state of a plan in a word or two. holder is who works on it now,
// or "".
func State(p *plans.Plan, j *plans.Journal, holder string) string {
	step, _, _ := j.Next(p)
	switch {
	case j.Outcome != "":
		return string(j.Outcome)
	case j.Held != "":
		return "Held"
	case j.Paused && step.Boundary():
		return "Paused"
	case j.Epoch == 0:
		return "Planned"
	case holder == "":
		return "Stopped"
	case j.Leg.Course == plans.Return:
		return "Returning"
	case j.Leg.Course == plans.Clean:
		return "Finalizing"
	}
	return "Moving"
}

// ordinals fills in one row per ordinal, highest first, and counts those that
// neither side has available.
func (v *View) ordinals(ctx context.Context, w world, j *plans.Journal, step plans.Step) error {
	var pods [2]map[string]*corev1.Pod
	var sets [2]*appsv1.StatefulSet
	for i, side := range plans.Sides() {
		set, err := w.set(ctx, side)
		if err != nil {
			return err
		}
		if sets[i] = set; set == nil {
			continue
		}
		if pods[i], err = w.pods(ctx, side, set); err != nil {
			return err
		}
	}
	for o := w.plan.End() - 1; o >= w.plan.Start; o-- {
		row := OrdinalView{Ordinal: o, Source: where(sets[0], pods[0], w.plan, o), Destination: where(sets[1], pods[1], w.plan, o)}
		if row.Source != "Ready" && row.Destination != "Ready" {
			v.Unavailable++
		}
		row.Phase = phase(row, step, o)
		if j.Flight != nil {
			for _, vol := range j.Flight.Of(o) {
				row.Volumes = append(row.Volumes, vol.Name)
			}
			row.Proof = j.Flight.Pod(o).Proof
		}
		v.Ordinals = append(v.Ordinals, row)
	}
	return nil
}

func phase(row OrdinalView, step plans.Step, o int32) string {
	switch {
	case step.Moves() && step.Ordinals.Has(o):
		return string(step.Op)
	case row.Destination != "-":
		return "moved"
	default:
		return "on the source"
	}
}

func where(set *appsv1.StatefulSet, pods map[string]*corev1.Pod, p *plans.Plan, o int32) string {
	pod := pods[p.Pod(o)]
	switch {
	case pod == nil && (set == nil || !plans.SliceOf(set).Has(o)):
		return "-"
	case pod == nil:
		return "missing"
	case pod.DeletionTimestamp != nil:
		return "Terminating"
	case ready(pod) == "":
		return "Ready"
	}
	return string(pod.Status.Phase)
}
