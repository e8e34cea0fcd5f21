package orchestrator

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/record"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func TestThePlansOfAProcessFitIntoItsMemory(t *testing.T) {
	for limit, want := range map[int64]int{
		math.MaxInt64:            0, // nothing limits it
		512 << 20 * 4 / 5:        201,
		108<<20 + 3<<20:          2,
		108<<20 + 3<<20 - 1:      1,
		32 << 20:                 1, // too little memory, but without any plan there would be no progress
		2 << 30:                  1293,
		108<<20 + planBytes*1000: 1000,
	} {
		if got := PlansWithin(limit); got != want {
			t.Errorf("%d MiB are for %d plans, expected %d", limit>>20, got, want)
		}
	}
}

func TestAPlanThatIsDownGoesFirst(t *testing.T) {
	p := plan(t)
	down := journal.New(p)
	down.Epoch = 2
	s, _, more := down.Next(p)
	for more && (!s.Moves() || s.Op.Boundary()) {
		down.Begun++
		down.Done++
		s, _, more = down.Next(p)
	}
	down.Flight = &plans.Flight{Ordinals: s.Ordinals, From: plans.Source}
	order := []struct {
		j    *journal.Journal
		what action
	}{{down, carry}, {&journal.Journal{Epoch: 2}, carry}, {&journal.Journal{Epoch: 2, Outcome: plans.Moved}, keep}, {&journal.Journal{}, carry}}
	for k := range order {
		if got := urgencyOf(p, order[k].j, order[k].what); got != urgency(k) {
			t.Errorf("%+v (%s) is the %dth, expected the %dth", order[k].j, order[k].what, got, k)
		}
	}
}

// runOf returns a run that does nothing but end when it is asked to.
func runOf(h *Orchestrator, p *plans.Plan, what action, passed, flies bool) *run {
	r := &run{orchestrator: h, plan: p, what: what, stop: make(chan struct{}), finish: make(chan struct{}), asked: make(chan struct{}, 1)}
	r.passed.Store(passed)
	r.flies.Store(flies)
	return r
}

// Plans without room wait, and the most urgent of them gets the room, whichever is tried first.
func TestRoomIsForTheMostUrgent(t *testing.T) {
	h, p := fixture(t)
	h.MaxPlans, h.unseen = 2, map[string]bool{}
	ask := func(name string, u urgency) bool {
		h.lock.Lock()
		defer h.lock.Unlock()
		return h.hasRoom(h.state(name), u, plans.Sides())
	}
	if !ask("a", unbegun) {
		t.Fatal("an empty process has no room")
	}
	h.state("a").run = runOf(h, p, carry, true, true)
	keeping := runOf(h, p, keep, true, false)
	h.state("b").run = keeping
	if ask("new", unbegun) || ask("moving", begun) {
		t.Fatal("more plans are under way than there is room for")
	}
	if stopped(keeping) {
		t.Fatal("names are kept no longer for a plan that can wait")
	}
	if ask("down", inFlight) {
		t.Fatal("more plans are under way than there is room for")
	}
	if !stopped(keeping) {
		t.Error("names are kept while ordinals are on neither side")
	}
	if got := testutil.ToFloat64(h.gauges.waiting.WithLabelValues()); got != 3 {
		t.Errorf("%v plans wait, expected 3", got)
	}
	h.lock.Lock()
	h.state("b").run = nil
	h.divide()
	h.lock.Unlock()
	if woken := (<-h.news).Object.GetLabels()[plans.PlanLabel]; woken != "down" {
		t.Errorf("%s was woken", woken)
	}
	if ask("new", unbegun) || ask("b", kept) || ask("moving", begun) {
		t.Error("the room is given to another one than that with ordinals on neither side")
	}
	if !ask("down", inFlight) {
		t.Error("the room is given to nobody")
	}
}

func TestAPlanThatIsNoMoreKeepsNobodyWaiting(t *testing.T) {
	h, p := fixture(t)
	h.MaxPlans, h.unseen = 1, map[string]bool{}
	h.state("other").run = runOf(h, p, carry, true, true)
	if h.hasRoom(h.state("moving"), begun, plans.Sides()) || h.hasRoom(h.state("new"), unbegun, plans.Sides()) {
		t.Fatal("more plans are under way than there is room for")
	}
	h.lock.Lock()
	h.state("other").run = nil
	h.divide()
	h.lock.Unlock()
	if h.hasRoom(h.state("new"), unbegun, plans.Sides()) {
		t.Error("the room is given to another one than that which has begun")
	}
	if h.forget("moving", false); !h.hasRoom(h.state("new"), unbegun, plans.Sides()) {
		t.Error("a plan that is no more keeps others waiting")
	}
}

// A run that gives its room to another plan ends after its wave, unless nothing of it is in flight that could be ended at once.
func TestARunGivesWayInAnOrderlyWay(t *testing.T) {
	for name, c := range map[string]struct {
		what                 action
		passed, flies, looks bool
		silent               bool
		stops                bool
	}{
		"its checks have not passed":        {carry, false, false, false, false, true},
		"it moves nothing now":              {carry, true, false, false, false, false},
		"a wave is away":                    {carry, true, true, false, false, false},
		"a wave that no cluster brings on":  {carry, true, true, false, true, true},
		"it looks whether it may continue":  {carry, true, false, true, false, true},
		"it keeps names":                    {keep, true, false, false, false, true},
		"nothing, where no cluster answers": {carry, true, false, false, true, false},
	} {
		h, p := fixture(t)
		r := runOf(h, p, c.what, c.passed, c.flies)
		r.looksOn.Store(c.looks)
		for range 2 {
			r.giveWay(c.silent)
		}
		finishes := false
		select {
		case <-r.finish:
			finishes = true
		default:
		}
		if stopped(r) != c.stops || finishes == c.stops {
			t.Errorf("%s: stops %t, finishes %t", name, stopped(r), finishes)
		}
	}
}

// A process that has just begun reads all plans before it begins one that can wait: another one may have an ordinal on
// neither side.
func TestAProcessReadsAllPlansBeforeItBeginsOne(t *testing.T) {
	h, p := fixture(t)
	other := *p
	other.Name, other.ID, other.Hash = "other", "other-id", ""
	var err error
	if other.Hash, err = plans.Fingerprinted(&other); err != nil {
		t.Fatal(err)
	}
	j := journal.New(&other)
	j.Paused = true
	if err := records.NewStore(h.Live, "stsmigrate", other.Name).Create(t.Context(), &other, j); err != nil {
		t.Fatal(err)
	}
	h.state(p.Name).tries = &tries{} // its turn has come
	look := func(name string) {
		t.Helper()
		q := request()
		q.Name = name
		if _, err := h.Reconcile(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if look(p.Name); len(h.running()) != 0 || h.state(p.Name).waits.lack != lacksReading {
		t.Fatalf("%d runs before all plans were read", len(h.running()))
	}
	look(other.Name)
	if woken := (<-h.news).Object.GetLabels()[plans.PlanLabel]; woken != p.Name {
		t.Errorf("%s was woken", woken)
	}
	if look(p.Name); h.state(p.Name).waits != nil {
		t.Error("it waits still")
	}
	h.all.Wait()
}

// A plan takes its room when its checks have passed. If the room is promised to another one meanwhile, it writes nothing.
func TestAPlanTakesItsRoomWhenItsChecksHavePassed(t *testing.T) {
	h, p := fixture(t)
	r := runOf(h, p, carry, false, false)
	r.giveWay(false)
	c := runner.Runner{Plan: p, Store: r.store()}
	if bar, err := r.checked(t.Context(), c); !errors.Is(err, engine.ErrStopped) || bar != nil || r.passed.Load() {
		t.Errorf("%v, %v, passed: %t", bar, err, r.passed.Load())
	}
}

func TestOnlyWhatAdmissionWritesDownCounts(t *testing.T) {
	h, p := fixture(t)
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	d.Object.SetAnnotations(map[string]string{records.RequesterAnnotation(plans.ApprovalField): "anna"})
	if got := h.approver(d); got != "" {
		t.Errorf("%s counts, who may have written that", got)
	}
	if h.Requesters = true; h.approver(d) != "anna" || h.approver(nil) != "" {
		t.Errorf("%q and %q", h.approver(d), h.approver(nil))
	}
}

func stopped(r *run) bool {
	return r.stopped()
}

// A plan that no process has room for reports that, does not begin here, and begins when there is room.
func TestAPlanSaysThatItWaitsForRoom(t *testing.T) {
	h, p := fixture(t)
	events := record.NewFakeRecorder(10)
	now := h.Now()
	h.MaxPlans, h.Events, h.Now = 1, events, func() time.Time { return now }
	h.state("other").run = runOf(h, p, carry, true, true)
	h.state(p.Name).tries = &tries{} // its turn has come
	if r, err := h.Reconcile(t.Context(), request()); err != nil || r.RequeueAfter != mirrorRetryInterval || len(h.running()) != 1 {
		t.Fatalf("%+v, %v, %d runs", r, err, len(h.running()))
	}
	waits := func(ctx context.Context) string {
		t.Helper()
		j, _, err := records.NewStore(h.Live, "stsmigrate", "web").Journal(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return j.Waiting
	}
	if got := waits(t.Context()); got != "" {
		t.Errorf("others have had no time to take it, and it says %s", got)
	}
	now = now.Add(mirrorRetryInterval)
	for range 2 { // and it is reported once
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	}
	if got := waits(t.Context()); !strings.HasPrefix(got, "it waits for room: 1 plans is the limit of an orchestrator (--max-plans), 0 of them only while ordinals are on neither side, and no other orchestrator has taken this plan. Of the 1 plans that have room in me now") {
		t.Errorf("it says %q", got)
	}
	if len(events.Events) != 1 || !strings.HasPrefix(<-events.Events, "Normal WaitsForRoom it waits for room") {
		t.Errorf("%d events", len(events.Events)+1)
	}
	h.lock.Lock()
	h.state("other").run = nil
	h.divide()
	h.lock.Unlock()
	h.state(p.Name).tries = &tries{}
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	h.all.Wait()
	if len(h.waiting()) != 0 || testutil.ToFloat64(h.gauges.waiting.WithLabelValues()) != 0 {
		t.Errorf("it waits still: %v", h.waiting())
	}
	if got := waits(t.Context()); !strings.Contains(got, "no cluster named") {
		t.Errorf("it was not begun: %s", got)
	}
}
