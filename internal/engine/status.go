package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns/clients"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// View is the status of a plan, for users and programs. Its JSON form is stable within an API version.
type View struct {
	APIVersion  string    `json:"apiVersion"`
	Kind        string    `json:"kind"`
	Plan        string    `json:"plan"`        // Plan is the name of the plan.
	Source      plans.Ref `json:"source"`      // Source is the set that moves.
	Destination plans.Ref `json:"destination"` // Destination is the place that the set moves to.
	// State is Planned, Moving, Aborting, Finalizing, Waiting, Stopped, StoppedInFlight, Paused, Blocked, or the outcome.
	State          plans.State `json:"state"`
	Step           string      `json:"step,omitempty"`      // Step is the step under way, or the next one.
	Reason         string      `json:"reason,omitempty"`    // Reason is why the plan is blocked, or what it waits for.
	ReasonID       reasons.ID  `json:"reasonID,omitempty"`  // ReasonID is the ID of the reason, for `stsmigrate explain`.
	OverdueID      reasons.ID  `json:"overdueID,omitempty"` // OverdueID is the ID of what is overdue.
	Overdue        string      `json:"overdue,omitempty"`   // Overdue is what a wave waits for longer than expected.
	Gates          string      `json:"gates,omitempty"`     // Gates says which gates were skipped; empty for none.
	Holder         string      `json:"holder,omitempty"`    // Holder is the process that carries the plan out; empty for none.
	Keeper         string      `json:"keeper,omitempty"`    // Keeper is the process that only keeps the names; empty for none.
	Epoch          int64       `json:"epoch"`               // Epoch grows with every takeover of the plan.
	MaxUnavailable int32       `json:"maxUnavailable"`      // MaxUnavailable is how many ordinals may be unavailable at once.
	// Next says in words what comes next.
	Next     string        `json:"-"`
	Commands []NextCommand `json:"next,omitempty"` // Commands lists the commands that may come next.
	// InFlight is the wave that is in flight while no process carries the plan on; missing without one.
	InFlight *InFlight `json:"inFlight,omitempty"`
	// Unavailable is how many ordinals are available on neither side; nil if a side was not read.
	Unavailable *int32 `json:"unavailable"`
	BudgetsView `json:",inline"`
	// Places is what is known of the places that placeholders take; missing without them, and when no ordinal leaves any more.
	Places *Places `json:"places,omitempty"`
	// Drains, while the plan rests and only nodes of one side can be drained, states which side that
	// is and how to allow both.
	Drains string `json:"drains,omitempty"`
	// Added, after the move, states which ordinals others have added on the destination, and what that means.
	Added string `json:"added,omitempty"`
	// Differs are the objects that pods name and that were changed on one side since the plan began, and those that could
	// not be compared; and the Services of clients that are not served as the plan says.
	Differs []string `json:"differs,omitempty"`
	// Names, while no process keeps the names of the pods, states the command that does.
	Names string `json:"names,omitempty"`
	// Unattended reports that an orchestrator should have the plan, and none has it now.
	Unattended bool `json:"unattended,omitempty"`
	// Orchestrator is the reason why no orchestrator can take the plan; empty if one can.
	Orchestrator string `json:"orchestrator,omitempty"`
	// Assurances is what users have vouched for, in words.
	Assurances []string `json:"assurances,omitempty"`
	// Downtime is how long the waves were on neither side.
	Downtime *journal.Downtime `json:"-"`
	// DownSeconds is how long the waves were on neither side, by span.
	DownSeconds *journal.DownSeconds `json:"downtime,omitempty"`
	// Forecast, while waves are left, is how long they will be on neither side, in words: by what the last ones took.
	Forecast string `json:"forecast,omitempty"`
	// Made says who made the plan, and when; missing if that is not known.
	Made     *plans.Made      `json:"made,omitempty"`
	Timeline journal.Timeline `json:"timeline,omitzero"` // Timeline is what has happened to the plan.
	EndedAt  *metav1.Time     `json:"endedAt,omitempty"` // EndedAt is when the plan was finalized or aborted.
	// Untold is the reason why the stored part of the timeline could not be read.
	Untold string `json:"untold,omitempty"`
	// Unseen is the reason why a side could not be read. The ordinals of that side are "?".
	Unseen   map[plans.Side]string `json:"unseen,omitempty"`
	Ordinals []OrdinalView         `json:"ordinals"` // Ordinals has each ordinal that the plan moves, the highest first.
	// work reports that a process continues the plan, or should.
	work bool
	// unknown reports that no process has the plan, since the orchestrator does not know one of its clusters.
	unknown bool
	// looksOn reports that the plan is blocked, and continues by itself when what it waits for has ended.
	looksOn bool
}

// Rests reports whether the plan stays as it is until a user acts: it has an outcome, is paused or blocked, and no
// request is under way that changes that.
func (v *View) Rests() bool {
	return v.State.Rests() && !v.work
}

// LooksOn reports whether the plan is blocked and a process looks whether what it waits for has ended: then it goes on.
func (v *View) LooksOn() bool { return v.looksOn }

// Unknown reports whether the plan waits for a user to make one of its clusters known to the orchestrator.
func (v *View) Unknown() bool { return v.unknown }

// Active reports whether a process continues the plan now.
func (v *View) Active() bool { return v.Holder != "" && v.work }

// BudgetsView is how the budgets are, and were.
type BudgetsView struct {
	// BudgetsTightSince is when the budgets were tightened for the wave under way; missing without one.
	BudgetsTightSince *metav1.Time `json:"budgetsTightSince,omitempty"`
	// BudgetsTightLongest is the longest time that a wave took from Tighten to Relax, in seconds.
	BudgetsTightLongest float64 `json:"budgetsTightLongestSeconds,omitempty"`
	// Budgets are the PodDisruptionBudgets of the two sides, as far as they exist and can be read.
	Budgets []BudgetView `json:"budgets,omitempty"`
}

// BudgetView shows how many pods of a side may be evicted now.
type BudgetView struct {
	Side    plans.Side `json:"side"`    // Side is source or destination.
	Name    string     `json:"name"`    // Name is the name of the budget.
	MayGo   int32      `json:"mayGo"`   // MayGo is how many pods may be evicted now.
	Healthy int32      `json:"healthy"` // Healthy is how many healthy pods the budget counts.
}

// OrdinalView shows where one ordinal is.
type OrdinalView struct {
	Ordinal     int32    `json:"ordinal"`           // Ordinal is the number of the ordinal.
	Source      string   `json:"source"`            // Source is its pod on the source: -, missing, Terminating, Ready, its phase, or ? (unread).
	Destination string   `json:"destination"`       // Destination is its pod on the destination, in the same words.
	Volumes     []string `json:"volumes,omitempty"` // Volumes names the volumes of an ordinal of the wave that moves, or moved last.
	// Proof states how the pod and its volumes were last proven to be free.
	Proof string `json:"proof,omitempty"`
	Phase string `json:"phase"` // Phase is "on the source", "moved", the step that moves it, or ? (unread).
}

// Status reads where a plan stands, as far as that can be read: what the journal records is known even if
// neither cluster answers. lost has the sides for which on has no client, and why. Status writes nothing.
// command returns the command line of a verb, such as abort, for the advice on what to do next.
func Status(ctx context.Context, p *plans.Plan, store *records.Store, on clusters.Clusters, lost map[plans.Side]error, now func() time.Time, command func(verb string) string) (*View, error) {
	// The Lease is read BEFORE the journal: a process that has come to the end records that,
	// and then releases the Lease.
	holder, keeper, err := store.Holder(ctx, now)
	if err != nil {
		return nil, err
	}
	j, err := store.JournalOrNew(ctx, p)
	if err != nil {
		return nil, err
	}
	v := &View{
		APIVersion: plans.APIVersion, Kind: "PlanStatus", DownSeconds: j.Downtime.InSeconds(),
		Made: p.Made, EndedAt: j.EndedAt, Plan: p.Name, Holder: plans.Line(holder), Keeper: plans.Line(keeper), Source: p.Source, Destination: p.Destination, Epoch: j.Epoch, MaxUnavailable: p.MaxUnavailable, Downtime: j.Downtime,
	}
	if v.Timeline, err = store.Timeline(ctx, p, j); err != nil {
		v.Untold = plans.Line(err.Error())
	}
	v.BudgetsTightSince = j.TightSince
	if j.LongestTight != nil {
		v.BudgetsTightLongest = j.LongestTight.Seconds()
	}
	v.Assurances = journal.Vouched(j, p)
	e := New(p, store, on)
	e.epoch = j.Epoch
	step, began, more := j.Next(p)
	v.Forecast = j.Downtime.Forecast(wavesLeft(p, j.Leg, j.Done))
	v.describe(p, j, asked(ctx, store, p, j), command)
	if len(lost) == 0 {
		v.Drains = e.Drains.drainable(ctx, j, cmp.Or(v.Holder, v.Keeper), command)
	}
	if more && v.State != plans.StatePaused {
		v.Step = e.StepOf(step)
		if _, why := j.Shown(v.Holder); why == "" && len(lost) == 0 {
			if s := refused(j, e.observer.waitsFor(ctx, j, step, began, v.Holder), began && !step.Op.Gated(), v.Holder, now()); s.Reason != "" {
				v.ReasonID, v.Reason = s.ID, s.Reason
			}
		}
	}
	v.ordinals(ctx, clusters.Pair{Plan: p, On: on}, lost, j, step)
	v.budgets(ctx, p, on, lost)
	if lost[plans.Destination] == nil && afterMove(j) {
		v.Added = addedByOthers(ctx, clusters.Pair{Plan: p, On: on}, command)
	}
	v.Differs = differing(ctx, clusters.Pair{Plan: p, On: on}, lost, j)
	v.flies(p, j, now())
	v.places(ctx, clusters.Pair{Plan: p, On: on}, lost, j, now())
	v.Reason, v.Overdue = plans.Line(v.Reason), plans.Line(v.Overdue) // any program may have written them
	return v, nil
}

// differing says what pods name and what is not the same on both sides any more, and which Services of clients are not served
// as the plan says, while the plan is under way.
func differing(ctx context.Context, w clusters.Pair, lost map[plans.Side]error, j *journal.Journal) []string {
	if len(lost) > 0 || j.Epoch == 0 || j.Ended() {
		return nil
	}
	return append(copies.Told(ctx, w), clients.Strays(ctx, w)...)
}

// afterMove reports whether every ordinal has moved, and the plan is not finalized yet.
func afterMove(j *journal.Journal) bool {
	return j.Outcome == plans.Moved || j.Leg.Direction == plans.Finalize && !j.Ended()
}

// addedByOthers returns which ordinals others have added on the destination, and what that means. It is "" if there are
// none, or if the set cannot be read.
func addedByOthers(ctx context.Context, w clusters.Pair, command func(verb string) string) string {
	set, err := w.Set(ctx, plans.Destination)
	if err != nil || w.Plan.Grown(set).Replicas <= 0 {
		return ""
	}
	return fmt.Sprintf("ordinals %s of the destination were added by %s: %s keeps them, %s needs them gone", w.Plan.Grown(set), plans.Line(plans.Writer(set, "spec", "replicas")), command("finalize"), command("abort"))
}

// asked returns what an orchestrator should do with a plan now, as far as that can be read. For a plan that
// commands carry out, the journal alone decides.
func asked(ctx context.Context, s *records.Store, p *plans.Plan, j *journal.Journal) requests.Requested {
	if !j.Detached {
		return requests.Requested{Command: plans.Command{Direction: j.Leg.Direction}, Work: !j.Idle(p)}
	}
	if d, err := s.Declared(ctx); err == nil && d != nil {
		r := requests.Read(p, j, d.Spec)
		r.Refused = cmp.Or(r.Refused, d.Obstacle(j))
		return r
	}
	return requests.Read(p, j, nil)
}

// slow is how long a wave may be away without a wait that the clusters show.
const slow = 15 * time.Second

// refused returns what a step waits for. If the clusters show nothing, and the wave is away for long, its process is
// refused something: no write takes that long, and no record of what is there.
func refused(j *journal.Journal, s plans.Observation, began bool, holder string, now time.Time) plans.Observation {
	seen := s.Standing == plans.During || s.Standing == plans.Conflict
	if seen || !began || holder == "" || j.Stopwatch == nil || clusters.Elapsed(j.Stopwatch.Since.Time, now) < slow {
		return s
	}
	return plans.Wait(reasons.WriteNotTaken, fmt.Sprintf("nothing that can be seen here keeps the wave: the output of %s, or its Events (TryingAgain), say what it waits for, or which request it is refused and tries again", holder))
}

// describe fills in the state, the reason and the next command.
func (v *View) describe(p *plans.Plan, j *journal.Journal, asked requests.Requested, command func(verb string) string) {
	v.State = records.State(p, j, v.Holder)
	v.Gates = j.Skipped(p)
	if j.Overdue != "" && j.Blocked == "" {
		v.OverdueID, v.Overdue = j.OverdueID, j.Overdue
	}
	v.ReasonID, v.Reason = j.Shown(v.Holder)
	if v.Reason == "" && asked.Refused != "" {
		v.ReasonID, v.Reason = asked.RefusedID, asked.Refused
	}
	if v.Holder == "" {
		bridged := len(p.Directories()) > 0 && j.Epoch > 0 && !j.Over()
		v.Unattended = j.Detached && (asked.Work || bridged)
		switch {
		case v.Keeper != "":
			v.Names = "kept by " + v.Keeper + ": end it with Ctrl-C before the plan goes on"
		case bridged && !j.Detached:
			v.Names = "a pod that restarts is not found at its new address unless this runs: " + command("names -w")
		}
	}
	v.work, v.looksOn, v.unknown = asked.Work, looksOn(j, asked), awaitsCluster(j, asked.Work, v.Holder)
	v.Next, v.Commands = v.nextOf(p, j, asked.Work, command)
	if asked.RemoveNames {
		v.Commands = nil
		v.Next = "the orchestrator removes its names"
	}
}

// looksOn reports whether a blocked plan continues by itself, and no request changes that.
func looksOn(j *journal.Journal, asked requests.Requested) bool {
	return asked.Work && asked.Observed == nil && j.LooksOn()
}

// ordinals fills in one row per ordinal, highest first, and counts the ordinals that are
// available on neither side.
func (v *View) ordinals(ctx context.Context, w clusters.Pair, lost map[plans.Side]error, j *journal.Journal, step plans.Step) {
	where := map[plans.Side]func(ordinal int32) string{}
	for _, side := range plans.Sides() {
		err := lost[side]
		if err == nil {
			where[side], err = placed(ctx, w, side)
		}
		if err != nil {
			if v.Unseen == nil {
				v.Unseen = map[plans.Side]string{}
			}
			v.Unseen[side], where[side] = plans.Line(err.Error()), func(int32) string { return "?" }
		}
	}
	left, changed := leftOn(j), false
	down := int32(0)
	for o := w.Plan.End() - 1; o >= w.Plan.Start; o-- {
		row := OrdinalView{Ordinal: o, Source: where[plans.Source](o), Destination: where[plans.Destination](o)}
		if here, there := row.Source, row.Destination; here != "Ready" && there != "Ready" {
			down++
		}
		row.Phase = phase(row, step, o)
		if j.Ended() {
			row.Phase = phaseOn(left)
			changed = changed || row.on(left) == "-"
		}
		if j.Flight != nil {
			for _, vol := range j.Flight.Of(o) {
				row.Volumes = append(row.Volumes, vol.Name)
			}
			row.Proof = j.Flight.Pod(o).Proof
		}
		v.Ordinals = append(v.Ordinals, row)
	}
	switch {
	case changed: // what is unavailable now is not this plan's
		v.Next = fmt.Sprintf("nothing: the plan has ended, and %s does not have all of its ordinals any more", w.Plan.On(left))
	case len(v.Unseen) == 0:
		v.Unavailable = &down
	}
}

// leftOn returns the side that has all ordinals when the plan has ended.
func leftOn(j *journal.Journal) plans.Side {
	if j.Outcome == plans.Aborted {
		return plans.Source
	}
	return plans.Destination
}

// phaseOn returns the phase of an ordinal that is on a side and does not move.
func phaseOn(side plans.Side) string {
	if side == plans.Source {
		return "on the source"
	}
	return "moved"
}

func (o OrdinalView) on(side plans.Side) string {
	if side == plans.Source {
		return o.Source
	}
	return o.Destination
}

// budgets reads how many pods may be evicted. A budget that cannot be read is left out: it is only shown.
func (v *View) budgets(ctx context.Context, p *plans.Plan, on clusters.Clusters, lost map[plans.Side]error) {
	for _, side := range plans.Sides() {
		name, _ := p.BudgetOn(side)
		var b policyv1.PodDisruptionBudget
		if name == "" || lost[side] != nil || on[side].Get(ctx, client.ObjectKey{Namespace: p.On(side).Namespace, Name: name}, &b) != nil {
			continue
		}
		v.Budgets = append(v.Budgets, BudgetView{Side: side, Name: name, MayGo: b.Status.DisruptionsAllowed, Healthy: b.Status.CurrentHealthy})
	}
}

// placed reads the set and the pods of a side, and returns a function that describes where an ordinal is.
func placed(ctx context.Context, w clusters.Pair, side plans.Side) (func(ordinal int32) string, error) {
	set, err := w.Set(ctx, side)
	if err != nil || set == nil {
		return func(int32) string { return "-" }, err
	}
	pods, err := w.Pods(ctx, side, set)
	return func(o int32) string { return where(set, pods[w.Plan.Pod(side, o)], o) }, err
}

func phase(row OrdinalView, step plans.Step, o int32) string {
	switch {
	case step.Moves() && step.Ordinals.Has(o):
		return string(step.Op)
	case row.Destination == "?" && row.Source == "?":
		return "?"
	case row.Destination != "-" && row.Destination != "?", row.Destination == "?" && row.Source == "-":
		return phaseOn(plans.Destination)
	default:
		return phaseOn(plans.Source)
	}
}

func where(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int32) string {
	switch {
	case pod == nil && !plans.SliceOf(set).Has(ordinal):
		return "-"
	case pod == nil:
		return "missing"
	case pod.DeletionTimestamp != nil:
		return "Terminating"
	case sets.Ready(pod) == "":
		return "Ready"
	}
	return string(pod.Status.Phase)
}
