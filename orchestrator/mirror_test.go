package orchestrator

import (
	"context"
	"errors"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Argo CD, Flux and Helm compute the right status in every state, whatever the state before.
func TestToolsThatKnowNoKindUnderstandAPlan(t *testing.T) {
	h, p := fixture(t)
	now := metav1.NewTime(time.Unix(1700000000, 0))
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	end := &records.Declared{Object: d.Object, Spec: &plans.Declaration{Direction: plans.Finalize, ApprovedHash: p.Hash}}
	is := func(state plans.State, j journal.Journal) standing {
		j.Detached = true
		return standing{name: p.Name, declared: d, plan: p, journal: &j, state: state}
	}
	finalizing := is("Moved", journal.Journal{Outcome: plans.Moved})
	finalizing.declared = end
	unnaming := is("Finalized", journal.Journal{Outcome: plans.Finalized, Leg: plans.Leg{Direction: plans.Finalize}, KeepNames: true})
	unnaming.asked.RemoveNames = true
	var before frontStatus
	for _, c := range []struct {
		s     standing
		want  kstatus.Status
		waits string // the condition that `kubectl wait` waits for
	}{
		{standing{declared: d, state: plans.StatePlanning}, kstatus.InProgressStatus, ""},
		{standing{declared: d, state: plans.StatePlanning, wrong: errors.New("web is not there")}, kstatus.FailedStatus, ""},
		{standing{declared: d, state: plans.StatePlanReady, plan: p}.unapproved(), kstatus.FailedStatus, "Planned"}, // another plan was approved
		{standing{declared: &records.Declared{Object: d.Object, Spec: &plans.Declaration{Spec: d.Spec.Spec}}, state: plans.StatePlanReady, plan: p}.unapproved(), kstatus.InProgressStatus, "Planned"},
		{is("Planned", journal.Journal{}), kstatus.InProgressStatus, "Planned"},
		{is("Moving", journal.Journal{}), kstatus.InProgressStatus, "Planned"},
		{is("Blocked", journal.Journal{Blocked: "volume a is in use"}), kstatus.FailedStatus, "Planned"},
		{is("Moving", journal.Journal{}), kstatus.InProgressStatus, "Planned"},
		{is("Blocked", journal.Journal{Blocked: "volume a is in use", Overdue: "volume a is still attached"}), kstatus.FailedStatus, "Planned"},
		{is("Moving", journal.Journal{Overdue: "volume a is still attached"}), kstatus.FailedStatus, "Planned"},
		{is("Moving", journal.Journal{}), kstatus.InProgressStatus, "Planned"},
		{is("Paused", journal.Journal{Paused: true}), kstatus.InProgressStatus, "Planned"},
		{is("Waiting", journal.Journal{}), kstatus.InProgressStatus, "Planned"},
		{is("Split", journal.Journal{Outcome: plans.Split}), kstatus.CurrentStatus, "Planned"},
		{is("Moved", journal.Journal{Outcome: plans.Moved}), kstatus.CurrentStatus, "Moved"},
		{is("Aborting", journal.Journal{Leg: plans.Leg{Direction: plans.Abort}}), kstatus.InProgressStatus, "Planned"},
		{is("Aborted", journal.Journal{Outcome: plans.Aborted, Leg: plans.Leg{Direction: plans.Abort}}), kstatus.CurrentStatus, "Aborted"},
		{finalizing, kstatus.InProgressStatus, "Moved"},
		{is("Finalizing", journal.Journal{Leg: plans.Leg{Direction: plans.Finalize}}), kstatus.InProgressStatus, "Moved"},
		{is("Finalized", journal.Journal{Outcome: plans.Finalized, Leg: plans.Leg{Direction: plans.Finalize}}), kstatus.CurrentStatus, "Finalized"},
		{unnaming, kstatus.InProgressStatus, "Finalized"},
		{is("Finalized", journal.Journal{Outcome: plans.Finalized, Leg: plans.Leg{Direction: plans.Finalize}}), kstatus.CurrentStatus, "Finalized"},
	} {
		after := shows(before, c.s, now)
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		o.SetGroupVersionKind(records.DeclarationKind())
		o.SetGeneration(c.s.declared.Object.GetGeneration())
		got, err := kstatus.Compute(o)
		if err != nil || got.Status != c.want || c.s.journal != nil && c.s.journal.Blocked != "" && got.Message != c.s.journal.Blocked {
			t.Errorf("after %q, %s: %v (%v), expected %s; %+v", before.State, c.s.state, got, err, c.want, after.Conditions)
		}
		awaited(t, string(c.s.state), after, c.waits)
		before, now = after, metav1.NewTime(now.Add(time.Minute))
	}
	again := shows(before, is("Finalized", journal.Journal{Outcome: plans.Finalized, Leg: plans.Leg{Direction: plans.Finalize}}), now)
	if !equality.Semantic.DeepEqual(again, before) {
		t.Errorf("nothing has happened, and something else is shown: %+v, was %+v", again, before)
	}
}

// awaited checks that the condition for `kubectl wait` is True, and those before it.
func awaited(t *testing.T, state string, is frontStatus, waits string) {
	t.Helper()
	for _, kind := range []string{"Planned", "Moved", "Finalized", "Aborted"} {
		want := kind == waits || kind == "Planned" && waits != "" || kind == "Moved" && waits == "Finalized"
		if meta.IsStatusConditionTrue(is.Conditions, kind) != want {
			t.Errorf("%s: %s is not %t: %+v", state, kind, want, is.Conditions)
		}
	}
}

// The last status of a plan is written even if the API server was unavailable just then: nothing else
// would requeue the plan.
func TestWhatCouldNotBeShownIsShownLater(t *testing.T) {
	h, p := fixture(t)
	err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error { j.StartLeg(p, plans.Abort); j.Outcome = plans.Aborted; return nil })
	if err != nil {
		t.Fatal(err)
	}
	var away error
	written := 0
	h.Live = interceptor.NewClient(h.Live.(client.WithWatch), interceptor.Funcs{
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if away != nil {
				return away
			}
			written++
			return c.SubResource(sub).Apply(ctx, o, opts...)
		},
	})
	look := func(when string, later time.Duration, writes int) {
		t.Helper()
		r, err := h.Reconcile(t.Context(), request())
		d, missing := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
		if missing != nil {
			t.Fatal(missing)
		}
		state, _, _ := unstructured.NestedString(d.Object.Object, "status", "state")
		if err != nil || r.RequeueAfter != later || written != writes || (state == "Aborted") != (writes > 0) {
			t.Errorf("%s: looked at again after %s (%v), %d written, %q shown; expected %s, %d", when, r.RequeueAfter, err, written, state, later, writes)
		}
	}
	away = errors.New("connection refused")
	look("while the API server is away", mirrorRetryInterval, 0)
	away = nil
	look("afterwards", 0, 1)
	look("when nothing has happened since", 0, 1)
}

// Tools that watch conditions read the reason's ID, and users read it in the message.
func TestTheConditionStalledNamesTheReason(t *testing.T) {
	h, p := fixture(t)
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(p)
	j.Detached = true
	j.Block(reasons.VolumeInUse, "volume a is in use")
	after := shows(frontStatus{}, standing{name: p.Name, declared: d, plan: p, journal: j, state: "Blocked"}, metav1.Now())
	c := meta.FindStatusCondition(after.Conditions, "Stalled")
	if c == nil || c.Reason != string(reasons.VolumeInUse) || c.Message != "volume a is in use [VolumeInUse]" || after.Message != c.Message {
		t.Errorf("%+v", after)
	}
}

// A replica whose clock is ahead writes no status over that of the process that carries the plan out, until it has
// watched its Lease expire.
func TestClocksThatDifferMakeNoTwoStatuses(t *testing.T) {
	h, p := fixture(t)
	me, seconds, renewed := "me", int32(15), metav1.NewMicroTime(h.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: records.LeaseName(p.Name)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &me, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	if err := h.Live.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error { j.Epoch, j.Begun = 1, 1; return nil }); err != nil {
		t.Fatal(err)
	}
	h.state(p.Name).run = &run{orchestrator: h, plan: p, what: carry, command: plans.Command{Direction: plans.Move}, stop: make(chan struct{}), asked: make(chan struct{}, 1)}
	other := New(h.Setup)
	other.Holder, other.ending = "other", true
	clock := h.Now().Add(20 * time.Second)
	other.Now = func() time.Time { return clock }
	for _, o := range []*Orchestrator{h, other, h, other} {
		r, err := o.Reconcile(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		if state := told(t, h, "state"); state != "Moving" || o == other && r.RequeueAfter != 15*time.Second {
			t.Errorf("%s shows %s, and looks again after %s", o.Holder, state, r.RequeueAfter)
		}
	}
	clock = clock.Add(15 * time.Second)
	if _, err := other.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	if state := told(t, h, "state"); state != "Waiting" {
		t.Errorf("after its Lease has expired it is shown as %s", state)
	}
}

// Two replicas whose errors differ, such as by a local port, leave the status of each other alone for a minute. What
// is new to one of them is shown at once.
func TestReplicasThatDoNotAgreeDoNotWakeEachOtherForEver(t *testing.T) {
	one, p := fixture(t)
	clock := one.Now()
	one.Now = func() time.Time { return clock }
	other := New(one.Setup)
	other.Holder = "other"
	writes := 0
	live := interceptor.NewClient(one.Live.(client.WithWatch), interceptor.Funcs{
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			writes++
			return c.SubResource(sub).Apply(ctx, o, opts...)
		},
	})
	one.Live, other.Live = live, live
	show := func(h *Orchestrator, s standing, want int) time.Duration {
		t.Helper()
		var err error
		if s.declared, err = records.ReadDeclared(t.Context(), live, h.Namespace, p.Name); err != nil {
			t.Fatal(err)
		}
		s.name = p.Name
		again, err := h.show(t.Context(), s)
		if err != nil || writes != want {
			t.Errorf("%s: %d writes, expected %d: %v", h.Holder, writes, want, err)
		}
		return again
	}
	fails := func(port string) standing {
		return standing{state: plans.StatePlanning, wrong: errors.New("no answer from :" + port)}
	}
	show(one, fails("1"), 1)
	show(other, fails("2"), 2)
	for range 3 {
		if again := show(one, fails("1"), 2); again != disputeInterval {
			t.Errorf("it is shown again after %s", again)
		}
		show(other, fails("2"), 2)
	}
	show(one, fails("3"), 3) // of a new try
	clock = clock.Add(disputeInterval)
	show(other, fails("2"), 4)
	show(one, standing{state: plans.StatePlanReady, plan: p}, 5)
	show(other, standing{state: plans.StatePlanReady, plan: p}, 5)
	show(one, standing{state: "Paused", plan: p}, 6)
	show(other, standing{state: plans.StatePlanReady, plan: p}, 6) // its cache is behind
	show(other, standing{state: "Paused", plan: p}, 6)
	show(other, standing{state: plans.StatePlanReady, plan: p}, 7)
	show(one, standing{state: plans.StatePlanReady, plan: p, holder: "other"}, 7)
	show(one, standing{state: "Paused", plan: p}, 8) // after the other one had the plan
}

// A plan at rest that was asked to go on, or to turn, has not reached the end that is declared, even if no run of it has
// begun: others would take what the plan was before for what was asked.
func TestAPlanIsNotReadyBeforeItsRequestIsCarriedOut(t *testing.T) {
	h, p := fixture(t)
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		outcome   plans.Outcome
		direction plans.Direction
		request   *plans.Request
		want      bool
	}{
		{plans.Moved, plans.Move, nil, true},
		{plans.Moved, plans.Abort, nil, false},
		{plans.Moved, plans.Finalize, nil, false},
		{plans.Split, plans.Abort, nil, false},
		{plans.Split, plans.Move, &plans.Request{ID: "2", Resume: true}, false},
	} {
		j := journal.New(p)
		j.Detached, j.Epoch = true, 1
		for s, _, more := j.Next(p); more; s, _, more = j.Next(p) {
			j.Done, j.Begun = s.Seq, s.Seq
			if c.outcome == plans.Split && s.Op == plans.Relax {
				j.Leg.Lowest = s.Ordinals.Start
				break
			}
		}
		j.Outcome = c.outcome
		spec := *d.Spec
		spec.Direction, spec.Request, spec.ApprovedHash = c.direction, c.request, p.Hash
		s := standing{name: p.Name, declared: &records.Declared{Object: d.Object, Spec: &spec}, plan: p, journal: j, state: records.State(p, j, ""), asked: requests.Read(p, j, &spec)}
		if is := shows(frontStatus{}, s, metav1.NewTime(h.Now())); meta.IsStatusConditionTrue(is.Conditions, "Ready") != c.want {
			t.Errorf("%s, and %s %+v is declared: Ready is %t, expected %t", c.outcome, c.direction, c.request, !c.want, c.want)
		}
	}
}
