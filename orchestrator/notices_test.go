package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/notify"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// inbox is a receiver of notifications.
type inbox struct {
	*httptest.Server
	lock sync.Mutex
	down bool
	all  []notify.Event
	raw  string
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		in.lock.Lock()
		defer in.lock.Unlock()
		var e notify.Event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil || in.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		in.all, in.raw = append(in.all, e), in.raw+string(body)
		for name, values := range q.Header {
			in.raw += name + ": " + strings.Join(values, " ")
		}
	}))
	t.Cleanup(in.Close)
	return in
}

// eventually tries for 20 seconds until something is so, and reports whether it is.
func eventually(is func() bool) bool {
	late, again := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-late:
			return false
		}
	}
	return true
}

// changes returns what has arrived, when there are at least so many.
func (in *inbox) changes(t *testing.T, atLeast int) (all []notify.Event, words string) {
	t.Helper()
	eventually(func() bool {
		in.lock.Lock()
		defer in.lock.Unlock()
		all = append([]notify.Event{}, in.all...)
		return len(all) >= atLeast
	})
	for _, e := range all {
		words += string(e.Data.Change) + " "
	}
	return all, strings.TrimSpace(words)
}

// sends lets an Orchestrator send to a receiver, and returns what ends it.
func sends(t *testing.T, h *Orchestrator, to string) (end func()) {
	t.Helper()
	var err error
	if h.notices, err = noticesTo(&h.memory, notify.Target{URL: to, Dir: keyDir(t)}, "test"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { h.notices.lead(ctx); close(done) }()
	end = func() { cancel(); <-done }
	t.Cleanup(end)
	woken(t, h)
	return end
}

// woken waits until a plan is requeued, and reconciles it.
func woken(t *testing.T, h *Orchestrator) {
	t.Helper()
	select {
	case <-h.news:
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no plan was requeued")
	}
}

// turn changes the journal of the plan, and reconciles it.
func turn(t *testing.T, h *Orchestrator, p *plans.Plan, change func(*journal.Journal)) {
	t.Helper()
	err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error { change(j); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Reconcile(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
}

// stored waits until a delivery is stored with the plan.
func stored(t *testing.T, h *Orchestrator, want int64) {
	t.Helper()
	there := eventually(func() bool {
		d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, "web")
		if err != nil {
			t.Fatal(err)
		}
		return notified(d.Status).Sequence == want
	})
	if !there {
		t.Fatalf("delivery %d was not stored", want)
	}
}

// another returns another process over the same API server.
func another(t *testing.T, h *Orchestrator, holder string) *Orchestrator {
	t.Helper()
	next, _ := fixture(t)
	next.Live, next.Cached, next.Holder = h.Live, h.Cached, holder
	next.ending = true // it carries nothing out
	return next
}

// A receiver is told of each change, and after a restart of the orchestrator of none twice.
func TestAReceiverIsToldOfEachChangeOnce(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	in := newInbox(t)
	end := sends(t, h, in.URL)
	turn(t, h, p, func(j *journal.Journal) { j.Epoch = 1; j.Block(reasons.SetDiffers, "a claim is in the way") })
	turn(t, h, p, func(*journal.Journal) {})
	all, words := in.changes(t, 2)
	if words != "approved blocked" || all[1].Data.Reason != "a claim is in the way" || !strings.Contains(all[1].Data.Next, "stsmigrate resume web -n stsmigrate") ||
		all[1].Source != "/clusters/own/namespaces/stsmigrate/statefulsetmigrations" || all[1].Data.Destination.Context != "west" {
		t.Fatalf("%s: %+v", words, all)
	}
	stored(t, h, 2)
	end()
	next := another(t, h, "next")
	sends(t, next, in.URL)
	turn(t, next, p, func(j *journal.Journal) { j.Blocked = ""; j.StartLeg(p, plans.Abort); j.Outcome = plans.Aborted })
	if all, words = in.changes(t, 3); words != "approved blocked aborted" || all[2].Data.Previous != notify.Blocked || all[2].Sequence <= all[1].Sequence {
		t.Errorf("after a restart: %s: %+v", words, all)
	}
}

// A process may die between a delivery and its record: the next one sends the event again, under the same id.
func TestAnEventThatIsSentTwiceHasOneID(t *testing.T) {
	h, _ := fixture(t)
	h.ending = true
	in := newInbox(t)
	whole := h.Live
	h.Live = interceptor.NewClient(h.Live.(client.WithWatch), interceptor.Funcs{
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			for _, opt := range opts {
				if opt == client.SubResourceApplyOption(client.FieldOwner(noticeOwner)) {
					return errors.New("connection refused")
				}
			}
			return c.SubResource(sub).Apply(ctx, o, opts...)
		},
	})
	end := sends(t, h, in.URL)
	in.changes(t, 1)
	end()
	h.Live = whole
	sends(t, another(t, h, "next"), in.URL)
	if all, words := in.changes(t, 2); words != "approved approved" || all[0].ID != all[1].ID {
		t.Errorf("%s: %+v", words, all)
	}
}

// What a receiver has missed while it was down, and the orchestrator too, it learns as the present state.
func TestAfterAnOutageThePresentStateIsSent(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	in := newInbox(t)
	in.down = true
	end := sends(t, h, in.URL)
	if !eventually(func() bool { return testutil.ToFloat64(h.gauges.notices.WithLabelValues(string(notify.Retried))) > 0 }) {
		t.Error("no attempt is counted")
	}
	turn(t, h, p, func(j *journal.Journal) { j.Epoch = 1; j.Block(reasons.SetDiffers, "a claim is in the way") })
	end()
	in.lock.Lock()
	in.down = false
	in.lock.Unlock()
	sends(t, another(t, h, "next"), in.URL)
	if _, words := in.changes(t, 1); words != "blocked" {
		t.Errorf("%s", words)
	}
}

// When events of a plan were dropped, its present state is sent as soon as there is room.
func TestADroppedEventIsMadeUpFor(t *testing.T) {
	h, _ := fixture(t)
	h.ending = true
	in := newInbox(t)
	sends(t, h, in.URL)
	in.changes(t, 1)
	stored(t, h, 1)
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	mark := notified(d.Status)
	h.notices.queued["web"] = queued{object: d.Object.GetUID(), mark: notify.Mark{Sequence: mark.Sequence + 1, Change: notify.Paused, ID: "dropped"}}
	h.notices.missed([]string{"web"})
	woken(t, h)
	if h.notices.queued["web"].mark != mark {
		t.Errorf("%+v is taken for sent, expected what the receiver has accepted: %+v", h.notices.queued["web"].mark, mark)
	}
}

// Of several processes one sends, and another one after its end.
func TestOnlyTheLeaderSends(t *testing.T) {
	one, p := fixture(t)
	one.ending = true
	in := newInbox(t)
	leases := kubernetesfake.NewClientset().CoordinationV1()
	both := []*Orchestrator{one, another(t, one, "other")}
	led := make(chan *Orchestrator, 10)
	var ends []func()
	for _, h := range both {
		var err error
		if h.notices, err = noticesTo(&h.memory, notify.Target{URL: in.URL, Dir: keyDir(t)}, "test"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = h.notices.elect(leases)(ctx); close(done) }()
		go func() {
			select {
			case <-h.news: // whoever leads requeues every plan
				led <- h
			case <-ctx.Done():
			}
		}()
		ends = append(ends, func() { cancel(); <-done })
	}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	first := <-led
	for _, h := range both {
		turn(t, h, p, func(j *journal.Journal) { j.Epoch = 1; j.Block(reasons.SetDiffers, "a claim is in the way") })
	}
	if _, words := in.changes(t, 1); words != "blocked" {
		t.Errorf("two processes send: %s", words)
	}
	stored(t, one, 1)
	for k, h := range both {
		if h == first {
			ends[k]()
		}
	}
	second := <-led
	if second == first {
		t.Fatal("the process that has ended leads")
	}
	for _, h := range both {
		turn(t, h, p, func(j *journal.Journal) { j.Blocked = ""; j.StartLeg(p, plans.Abort); j.Outcome = plans.Aborted })
	}
	if _, words := in.changes(t, 2); words != "blocked aborted" {
		t.Errorf("after the end of the first: %s", words)
	}
	if l, err := leases.Leases("stsmigrate").Get(t.Context(), leaderLease, metav1.GetOptions{}); err != nil || *l.Spec.HolderIdentity != second.Holder {
		t.Errorf("%+v, %v", l, err)
	}
}

func keyDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("whsec_c2VjcmV0IGtleSB0aGF0IG5vYm9keSBtYXkgc2Vl"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A gate of a plan asks a pod, and what the pod answers is for the users of the cluster.
func TestAReceiverIsNotToldWhatAPodHasAnsweredToAGate(t *testing.T) {
	h, p := fixture(t)
	h.ending = true
	in := newInbox(t)
	sends(t, h, in.URL)
	turn(t, h, p, func(j *journal.Journal) {
		j.Epoch = 1
		j.Block(reasons.GateFailed, `gate db (BeforeShrink) of web-2: command in pod web-2 of shop/web in east: exit code 1: the complaint; expected exit code 0 and "the text" (asked 3 time(s) in 1m0s); `+"`resume` tries again")
	})
	all, words := in.changes(t, 2)
	const want = "gate db (BeforeShrink) of web-2 (GateFailed): `stsmigrate status web -n stsmigrate --context HOME` shows the rest"
	if words != "approved blocked" || all[1].Data.Reason != want || all[1].Data.ReasonID != "GateFailed" {
		t.Errorf("%s: %+v", words, all)
	}
	if strings.Contains(in.raw, "the complaint") || strings.Contains(in.raw, "the text") {
		t.Error(in.raw)
	}
}

// Nothing of an environment, a gate, a patch, an annotation or a Secret gets into a message.
func TestNoSecretGetsIntoANotification(t *testing.T) {
	const planted = "pl4nted-s3cret"
	p := plan(t)
	p.Gates = []plans.Gate{{Name: "db", When: "BeforeShrink", Exec: &plans.Exec{Command: []string{"psql", "postgres://u:" + planted + "@db"}}, Expect: planted}}
	p.Patches = []plans.Patch{{Patch: `{"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"PASSWORD","value":"` + planted + `"}]}]}}}}`}}
	p.Ignored = []string{planted}
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	h, _ := fixture(t)
	d := records.NewDeclared("stsmigrate", p.Name)
	d.SetUID("uid")
	d.SetAnnotations(map[string]string{"note": planted})
	d.SetLabels(map[string]string{"note": planted})
	d.Object["spec"] = map[string]any{"source": map[string]any{"name": planted}}
	h.Cached = fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	for _, word := range []plans.State{plans.StatePlanning, plans.StatePlanReady, plans.StatePlanned, plans.StateMoving, plans.StateBlocked, plans.StatePaused, plans.StateMoved, plans.StateSplit, plans.StateAborting, plans.StateAborted, plans.StateFinalizing, plans.StateFinalized, plans.StateUnreadable} {
		for _, j := range []*journal.Journal{
			nil, journal.New(p),
			{Blocked: "a claim is in the way"},
			{Overdue: "volume a is attached"},
			{BlockedID: reasons.GateFailed, Blocked: "gate db (BeforeShrink) of web-2: command in pod web-2 of shop/web: exit code 1: " + planted + "; expected exit code 0 and " + planted},
			{OverdueID: reasons.GateNotPassed, Overdue: "gate db of web-2: exit code 1: " + planted + "; expected exit code 0"},
			{BlockedID: reasons.RequestRefusedByAPI, Blocked: `admission webhook "a" denied the request: ` + planted},
		} {
			s := standing{name: p.Name, declared: &records.Declared{Object: d}, plan: p, journal: j, state: word}
			e, news := notify.Next(notify.Mark{}, (&notices{memory: &h.memory}).state(s), h.Now())
			raw, err := json.Marshal(e)
			if err != nil || strings.Contains(string(raw), planted) {
				t.Errorf("%s, %t: %s, %v", word, news, raw, err)
			}
		}
	}
	t.Setenv("PASSWORD", planted)
	in := newInbox(t)
	h, _ = fixture(t)
	h.ending = true
	sends(t, h, in.URL+"/?token="+planted)
	in.changes(t, 1)
	for _, secret := range []string{planted, "c2VjcmV0", "secret key that"} {
		if strings.Contains(in.raw, secret) {
			t.Errorf("%q is in %s", secret, in.raw)
		}
	}
}
