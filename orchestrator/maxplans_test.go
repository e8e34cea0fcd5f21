package orchestrator

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/record"

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

// Plans without room wait, and the most urgent of them gets the room, whichever is tried first.
func TestRoomIsForTheMostUrgent(t *testing.T) {
	h, _ := fixture(t)
	h.MaxPlans = 2
	ask := func(name string, u urgency) bool {
		h.lock.Lock()
		defer h.lock.Unlock()
		return h.hasRoom(h.state(name), u)
	}
	if !ask("a", unbegun) {
		t.Fatal("an empty process has no room")
	}
	h.state("a").run = &run{stop: make(chan struct{})}
	keeping := &run{what: keep, stop: make(chan struct{})}
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
	h.state("b").run = nil
	if ask("new", unbegun) || ask("b", kept) || ask("moving", begun) {
		t.Error("the room is given to another one than that with ordinals on neither side")
	}
	if !ask("down", inFlight) {
		t.Error("the room is given to nobody")
	}
	var woken []string
	for range 3 { // the plans behind it are requeued
		woken = append(woken, (<-h.news).Object.GetLabels()[plans.PlanLabel])
	}
	if slices.Sort(woken); !slices.Equal(woken, []string{"b", "moving", "new"}) {
		t.Errorf("%v were woken", woken)
	}
}

func TestAPlanThatIsNoMoreKeepsNobodyWaiting(t *testing.T) {
	h, _ := fixture(t)
	h.MaxPlans = 1
	h.state("other").run = &run{stop: make(chan struct{})}
	if h.hasRoom(h.state("moving"), begun) {
		t.Fatal("more plans are under way than there is room for")
	}
	h.state("other").run = nil
	if h.hasRoom(h.state("new"), unbegun) {
		t.Error("the room is given to another one than that which has begun")
	}
	if h.forget("moving", false); !h.hasRoom(h.state("new"), unbegun) {
		t.Error("a plan that is no more keeps others waiting")
	}
}

func stopped(r *run) bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// A plan that no process has room for reports that, does not begin here, and begins when there is room.
func TestAPlanSaysThatItWaitsForRoom(t *testing.T) {
	h, p := fixture(t)
	events := record.NewFakeRecorder(10)
	now := h.Now()
	h.MaxPlans, h.Events, h.Now = 1, events, func() time.Time { return now }
	h.state("other").run = &run{plan: p, stop: make(chan struct{})}
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
	if got := waits(t.Context()); !strings.HasPrefix(got, "it waits for room: 1 plans is the limit of an orchestrator (--max-plans), and no other orchestrator has taken this plan") {
		t.Errorf("it says %q", got)
	}
	if len(events.Events) != 1 || !strings.HasPrefix(<-events.Events, "Normal WaitsForRoom it waits for room") {
		t.Errorf("%d events", len(events.Events)+1)
	}
	h.state("other").run = nil
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
