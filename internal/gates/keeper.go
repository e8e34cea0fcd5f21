package gates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/expressions"
	"github.com/stsmigrate/stsmigrate/internal/reads"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Keeper runs the gates of one plan, one after the other: for the highest ordinal of a wave first, in the
// order of the file. It keeps its results for a step as long as the process is at that step.
type Keeper struct {
	// Prober sends questions to pods. If it is nil, no question is sent.
	Prober Prober
	// Stop, when closed, cancels the question in progress, and Finish one about an ordinal that is still up.
	Stop, Finish <-chan struct{}

	plan *plans.Plan
	on   map[plans.Side]client.Client
	step plans.Step
	// passed lists the turns of this step that have passed, in order, and heard has when each did.
	passed []string
	heard  map[string]time.Time
	asked  map[string]*asking
	round  round
}

// asking is the state of one turn.
type asking struct {
	since time.Time // when the turn was first due
	next  time.Time // when it may be asked again
	times int
	seen  string // the result of the last answer, "" if it was good
	ran   bool   // this process created its Job or saw it unfinished
	// looked is when this process last saw that its Job has not ended.
	looked time.Time
}

// turn is one gate for one ordinal.
type turn struct {
	plans.Gate
	step    plans.Step
	ordinal int32
	up      bool // the wave has certainly not left
}

func (t turn) id() string { return fmt.Sprintf("%s/%d", t.Name, t.ordinal) }

// New returns the Keeper of a plan. Its clients read live.
func New(p *plans.Plan, on map[plans.Side]client.Client) *Keeper {
	return &Keeper{plan: p, on: on}
}

// Look is the look of Quiesce and Verify. It returns After when every gate of the step has passed for every
// ordinal of the wave and no Job is left. It returns Conflict when a gate has not passed in time.
func (k *Keeper) Look(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	k.recall(m)
	turns, err := k.turns(ctx, m)
	if err != nil {
		return plans.Observation{}, err
	}
	if s, err := k.sweep(ctx, m, turns); err != nil || s.Standing != plans.After {
		return s, err
	}
	i := k.due(turns)
	switch {
	case i < 0:
		return plans.Observation{Standing: plans.After, Reason: k.story(m, len(turns))}, nil
	case k.Prober == nil:
		return plans.Wait(reasons.GateNotPassed, fmt.Sprintf("%s: not all gates (%s) have passed yet", k.plan.Pods(m.Ordinals), turns[i].When)), nil
	case turns[i].IsJob():
		return k.job(ctx, m, turns[i])
	}
	return k.ask(ctx, turns[i])
}

// recall drops the results of another step. For the arrival of a wave it adds the gates that the journal records as
// passed, whose Jobs may be gone.
func (k *Keeper) recall(m plans.StepContext) {
	if k.step.Seq != m.Seq {
		k.step, k.passed, k.heard, k.asked, k.round = m.Step, nil, map[string]time.Time{}, map[string]*asking{}, round{}
	}
	if m.Passed == nil || m.Op == plans.Quiesce {
		return
	}
	for i, id := range m.Passed.Gates {
		if at := m.Passed.When(i); !slices.Contains(k.passed, id) && k.believes(at) {
			k.pass(id, at)
		}
	}
}

func (k *Keeper) pass(id string, at time.Time) {
	if !slices.Contains(k.passed, id) {
		k.passed, k.heard[id] = append(k.passed, id), at
	}
}

func (k *Keeper) has(t turn) bool { return slices.Contains(k.passed, t.id()) }

// undo returns the record of what a deletion would destroy: the results of the Jobs of the step, together
// with the results of the gates before them. What was answered before a wave leaves is kept nowhere: it counts for the
// process that has asked, and for no other one (S19).
func (k *Keeper) undo() plans.Undo {
	if len(k.passed) == 0 || k.step.Op == plans.Quiesce {
		return plans.Undo{}
	}
	out := &plans.Passed{Seq: k.step.Seq, Gates: slices.Clone(k.passed)}
	for _, id := range k.passed {
		out.At = append(out.At, metav1.Time{Time: k.heard[id].UTC().Truncate(time.Second)})
	}
	return plans.Undo{Passed: out}
}

// story describes how a step ended.
func (k *Keeper) story(m plans.StepContext, turns int) string {
	switch {
	case len(k.plan.GatesAt(m.Op)) == 0:
		return ""
	case m.Skips.Gates:
		return "gates skipped, as the user requested"
	case turns == 0:
		return "gates skipped: nothing has left or arrived here"
	}
	return "gates passed: " + strings.Join(k.passed, ", ")
}

// turns lists the turns of the step, in the order in which they are due.
func (k *Keeper) turns(ctx context.Context, m plans.StepContext) ([]turn, error) {
	gates := k.plan.GatesAt(m.Op)
	if m.Skips.Gates || len(gates) == 0 {
		return nil, nil
	}
	var out []turn
	for o := m.Ordinals.End() - 1; o >= m.Ordinals.Start; o-- {
		idle, err := k.idle(ctx, m, o)
		if err != nil {
			return nil, err
		}
		for _, g := range gates {
			if !idle {
				out = append(out, turn{g, m.Step, o, m.Op == plans.Quiesce && !m.Reversed})
			}
		}
	}
	return out, nil
}

// idle reports whether there is nothing to ask for an ordinal of a plan that was turned. The ordinal never left the
// side that gets it back, never served on the side that gives it back, or has left that side's range already. A turn
// must not need the gate that it is the way out of.
func (k *Keeper) idle(ctx context.Context, m plans.StepContext, o int32) (bool, error) {
	if !m.Unsure() {
		return false, nil
	}
	if m.Op == plans.Verify {
		return !m.InFlight(), nil
	}
	pod, err := k.pod(ctx, m.From, o)
	if err != nil || !available(pod.Object()) {
		return true, err
	}
	seen, err := clusters.Pair{Plan: k.plan, On: k.on}.Live().Set(ctx, m.From)
	set := seen.Object()
	return set == nil || !plans.SliceOf(set).Has(o), err
}

// pod reads a pod live: a question is not conditional on the pod as it was read.
func (k *Keeper) pod(ctx context.Context, side plans.Side, o int32) (reads.Seen[*corev1.Pod], error) {
	return clusters.Pair{Plan: k.plan, On: k.on}.Live().Pod(ctx, side, o)
}

func available(pod *corev1.Pod) bool {
	return pod != nil && pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// turnOf returns the state of a turn. The clock of the turn starts when it is first due.
func (k *Keeper) turnOf(t turn) *asking {
	a := k.asked[t.id()]
	if a == nil {
		a = &asking{since: k.Prober.Now()}
		k.asked[t.id()] = a
	}
	return a
}

// ask asks a pod: at once, and again after each interval, until the timeout.
func (k *Keeper) ask(ctx context.Context, t turn) (plans.Observation, error) {
	q, where, missing, err := k.question(ctx, t)
	if err != nil {
		return plans.Observation{}, err
	}
	a, now := k.turnOf(t), k.Prober.Now()
	left := a.since.Add(t.Timeout.Duration).Sub(now)
	switch {
	case missing != "": // checked again with every look, and when the pod changes
		a.seen = missing
		if left > 0 {
			return k.wait(t, a, min(left, t.Interval.Duration)), nil
		}
		return k.late(t, a, where), nil
	case a.times > 0 && left <= 0:
		return k.late(t, a, where), nil
	case now.Before(a.next):
		return k.wait(t, a, min(a.next.Sub(now), left)), nil
	}
	what := ""
	if a.times == 0 {
		what = fmt.Sprintf("gate %s of %s: %s%s%s", t.Name, k.plan.Pod(t.step.GateSide(), t.ordinal), t.Kind(), where, k.round.again(t))
	}
	return plans.Write(what, plans.Undo{}, func(ctx context.Context) error { return k.put(ctx, t, q, max(left, time.Second)) }), nil
}

// requestTimeout is the limit of one request. A command may take as long as its gate.
const requestTimeout = 10 * time.Second

// put asks once and records the answer. A question that was cancelled because the process will end has no
// answer and does not count.
func (k *Keeper) put(ctx context.Context, t turn, q Question, limit time.Duration) error {
	if q.Get != nil {
		limit = min(limit, requestTimeout)
	}
	finish := k.Finish
	if !t.up {
		finish = nil
	}
	outer, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-k.Stop:
			stop()
		case <-finish:
			stop()
		case <-outer.Done():
		}
	}()
	inner, cancel := context.WithTimeout(outer, limit)
	defer cancel()
	answer, err := k.Prober.Ask(inner, q)
	if outer.Err() != nil {
		return ctx.Err()
	}
	if inner.Err() != nil {
		err = fmt.Errorf("no answer in %s", limit.Round(time.Second))
	}
	a := k.turnOf(t)
	a.times++
	now := k.Prober.Now()
	a.next = now.Add(t.Interval.Duration)
	if a.seen = t.judge(outer, answer, err); a.seen == "" {
		k.pass(t.id(), now)
	}
	return nil
}

// judge describes what is wrong with an answer, or returns "".
func (t turn) judge(ctx context.Context, a Answer, err error) string {
	what, good := "exit code", a.Code == 0
	if t.HTTPGet != nil {
		what, good = "HTTP status", a.Code >= 200 && a.Code < 400
	}
	switch {
	case err != nil && a.Complaint != "":
		return fmt.Sprintf("%v: %s", err, a.Complaint)
	case err != nil:
		return err.Error()
	case !good && a.Complaint != "":
		return fmt.Sprintf("%s %d: %s", what, a.Code, a.Complaint)
	case !good:
		return fmt.Sprintf("%s %d", what, a.Code)
	case !strings.Contains(a.Body, t.Expect):
		return fmt.Sprintf("%s %d, and the expected text is not in the %d bytes of the answer", what, a.Code, len(a.Body))
	case t.Expression == "":
		return ""
	}
	e, err := expressions.Compile(t.Expression)
	if err != nil { // a plan with such a gate is refused when it is read
		return "the expression is not valid: " + err.Error()
	}
	if why := e.Judge(ctx, expressions.Answer{Code: a.Code, Text: a.Body}); why != "" {
		return fmt.Sprintf("%s %d, and %s", what, a.Code, why)
	}
	return ""
}

// wanted describes a good answer.
func (t turn) wanted() string {
	out := "exit code 0"
	switch {
	case t.IsJob():
		return "it to be complete"
	case t.HTTPGet != nil:
		out = "HTTP status 200 to 399"
	}
	if t.Expect != "" {
		out += fmt.Sprintf(" and %q", t.Expect)
	}
	if t.Expression != "" {
		out += fmt.Sprintf(" and %s", plans.Line(t.Expression))
	}
	return out
}

func (k *Keeper) wait(t turn, a *asking, again time.Duration) plans.Observation {
	s := plans.Wait(reasons.GateNotPassed, fmt.Sprintf("gate %s of %s: %s; expected %s; asked every %s, for up to %s", t.Name, k.plan.Pod(t.step.GateSide(), t.ordinal), a.seen, t.wanted(), t.Interval.Duration, t.Timeout.Duration))
	s.Again = max(again, time.Millisecond)
	return s
}

// late returns the observation that blocks the plan at a turn whose timeout has passed.
func (k *Keeper) late(t turn, a *asking, where string) plans.Observation {
	return k.held(t, fmt.Sprintf("%s%s: %s", t.Kind(), where, a.seen), fmt.Sprintf("asked %d time(s) in %s", a.times, t.Timeout.Duration))
}

func (k *Keeper) held(t turn, saw, tried string) plans.Observation {
	ways := "`abort` rolls back, `resume --skip-gates` continues without it"
	if t.step.From == plans.Destination {
		ways = "`abort --skip-gates` returns to the source without gates"
	}
	return plans.Stop(reasons.GateFailed, fmt.Sprintf("gate %s (%s) of %s: %s; expected %s (%s); `resume` tries again, %s", t.Name, t.When, k.plan.Pod(t.step.GateSide(), t.ordinal), saw, t.wanted(), tried, ways))
}

// question determines the pod to ask and the question. missing is the reason why there is no such pod.
func (k *Keeper) question(ctx context.Context, t turn) (q Question, where, missing string, err error) {
	whom, side, missing, err := k.whom(ctx, t)
	if err != nil || missing != "" {
		return q, "", missing, err
	}
	pod := whom.Object()
	vars := k.plan.GateVars(t.step, t.ordinal)
	q = Question{Side: side, Namespace: pod.Namespace, Pod: pod.Name}
	where = fmt.Sprintf(" in pod %s of %s", pod.Name, k.plan.On(side))
	if t.HTTPGet == nil {
		q.Container = container(pod, t.Exec.Container)
		for _, arg := range t.Exec.Command {
			q.Command = append(q.Command, plans.Expand(arg, vars))
		}
		return q, where, "", nil
	}
	q.Get = t.HTTPGet.DeepCopy()
	q.Get.Path = plans.Expand(q.Get.Path, vars)
	for i := range q.Get.HTTPHeaders {
		q.Get.HTTPHeaders[i].Value = plans.Expand(q.Get.HTTPHeaders[i].Value, vars)
	}
	port, known := plans.Port(q.Get.Port, pod.Spec)
	if !known {
		return q, where, fmt.Sprintf("pod %s has no port named %q", pod.Name, q.Get.Port.StrVal), nil
	}
	q.Get.Port = intstr.FromInt32(port)
	return q, where, "", nil
}

// container returns the name of the container that a command runs in, chosen as kubectl exec does.
func container(pod *corev1.Pod, asked string) string {
	switch known := pod.Annotations["kubectl.kubernetes.io/default-container"]; {
	case asked != "":
		return asked
	case known != "":
		return known
	}
	return pod.Spec.Containers[0].Name
}

// whom finds the pod to ask, and its side.
func (k *Keeper) whom(ctx context.Context, t turn) (pod reads.Seen[*corev1.Pod], side plans.Side, missing string, err error) {
	side = t.step.GateSide()
	if t.Pod == nil {
		if pod, err = k.pod(ctx, side, t.ordinal); pod.Object() == nil && err == nil {
			return pod, side, fmt.Sprintf("pod %s of %s does not exist", k.plan.Pod(side, t.ordinal), k.plan.On(side)), nil
		}
		return pod, side, "", err
	}
	candidates := plans.Slice{Start: t.Pod.IntVal, Replicas: 1}
	if t.Pod.StrVal == plans.AnyOther {
		candidates = k.plan.Ordinals()
	}
	for o := range candidates.All() {
		if t.Pod.StrVal == plans.AnyOther && t.step.Ordinals.Has(o) {
			continue
		}
		for _, on := range []plans.Side{side, side.Other()} {
			if pod, err = k.pod(ctx, on, o); err != nil || available(pod.Object()) {
				return pod, on, "", err
			}
		}
	}
	return pod, side, "no pod to send the gate's question to is available on either side", nil
}
