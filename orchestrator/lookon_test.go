package orchestrator

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// lateness blocks the plan of a journal only because it has waited for too long, as a run does.
func lateness(j *journal.Journal) {
	j.Epoch = 2
	j.Block(reasons.ClaimKept, "claim a is kept (waited 10m)")
	j.Awaits = "claim a is kept"
}

// A plan that is blocked only because a wait was too long has a run that looks on, also in the next process. What the user
// decides ends it, or begins another run. A plan that is blocked for anything else stays so.
func TestABlockedPlanThatMayGoOnIsLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*journal.Journal)
		declare func(*plans.Declaration)
		want    action
		suits   bool
	}{
		"it looks on": {func(*journal.Journal) {}, func(*plans.Declaration) {}, carry, true},
		"a pause":     {func(j *journal.Journal) { j.Unblock(); j.Paused = true; j.Observed.Paused = true }, func(d *plans.Declaration) { d.Paused = true }, nothing, true},
		"an abort":    {func(*journal.Journal) {}, func(d *plans.Declaration) { d.Direction = plans.Abort }, carry, false},
		"a request":   {func(*journal.Journal) {}, func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", Resume: true} }, carry, false},
		"it is blocked for something else": {
			func(j *journal.Journal) { j.Block(reasons.BudgetChanged, "somebody has changed it") }, func(*plans.Declaration) {}, nothing, true,
		},
		"an older release has blocked it": {func(j *journal.Journal) { j.Blocked = "somebody has changed it" }, func(*plans.Declaration) {}, nothing, true},
	} {
		p := plan(t)
		j, d := journal.New(p), p.Declared()
		j.Detached, j.Observed.Direction = true, plans.Move
		lateness(j)
		c.change(j)
		c.declare(&d)
		what, asked := actionFor(p, j, &d)
		if r := (&run{plan: p, what: carry}); what != c.want || r.suits(what, p, asked) != c.suits {
			t.Errorf("%s: %q, %+v", name, what, asked)
		}
		if what == carry && c.suits && urgencyOf(p, j, what) != kept {
			t.Errorf("%s: it takes the room of plans that move", name)
		}
	}
}

// A run that looks on makes room for a plan with ordinals on neither side. That the plan is blocked, and that it goes on, is
// told when it happens.
func TestARunThatLooksOnTellsAndMakesRoom(t *testing.T) {
	h, p := fixture(t)
	events := record.NewFakeRecorder(10)
	h.Events, h.MaxPlans = events, 1
	r := runOf(h, p, carry, true, true)
	h.state("a").run = r
	r.report(t.Context(), nil, engine.Progress{Kind: engine.Blocked, ID: reasons.ClaimKept, Reason: "claim a is kept"}, nil)
	if e := <-events.Events; !strings.HasPrefix(e, "Warning Blocked ") || !strings.Contains(e, "ClaimKept") {
		t.Errorf("%q", e)
	}
	r.report(t.Context(), nil, engine.Progress{Kind: engine.Continued, Reason: "this has ended: claim a is kept", Left: h.Now()}, nil)
	if e := <-events.Events; !strings.HasPrefix(e, "Normal Continued ") {
		t.Errorf("%q", e)
	}
	h.lock.Lock()
	h.hasRoom(h.state("down"), inFlight, plans.Sides())
	h.lock.Unlock()
	if stopped(r) || !r.displaced {
		t.Fatal("a run that moves ordinals makes room at once, or never")
	}
	r.report(t.Context(), nil, engine.Progress{Kind: engine.Blocked, Reason: "claim a is kept"}, nil)
	if !stopped(r) {
		t.Error("a run that only looks makes no room")
	}
}

// A receiver is told that the plan is blocked, that nobody has to do anything if the reason ends, and that it has gone on.
func TestAReceiverIsToldThatABlockedPlanGoesOn(t *testing.T) {
	me, seconds := "me", int32(3600)
	renewed := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h, p := fixture(t, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-web"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &me, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	})
	h.ending = true
	in := newInbox(t)
	sends(t, h, in.URL)
	turn(t, h, p, lateness)
	turn(t, h, p, func(j *journal.Journal) { j.Unblock() })
	all, words := in.changes(t, 3)
	if words != "approved blocked resumed" || !strings.Contains(all[1].Data.Next, "continues by itself") || !strings.Contains(all[1].Data.Next, "stsmigrate abort web") {
		t.Errorf("%s: %+v", words, all)
	}
}
