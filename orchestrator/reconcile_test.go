package orchestrator

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/engine/runner"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func plan(t *testing.T) *plans.Plan {
	t.Helper()
	p := &plans.Plan{
		APIVersion: plans.APIVersion, Kind: plans.PlanKind, Name: "web", ID: "web-abc", Count: 3, MaxUnavailable: 1, Window: 1,
		Source:      plans.Ref{Cluster: "east-uid", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "west-uid", Context: "west", Namespace: "shop", Name: "web"},
		Budget:      plans.Budget{Source: "web", Destination: "web"},
	}
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWorkFollowsFromJournalAndDeclaration(t *testing.T) {
	p := plan(t)
	named := *p
	named.Names = plans.Names{Mode: plans.Bridge, Service: "web"}
	back, on, end := func(d *plans.Declaration) { d.Direction = plans.Abort }, func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", Resume: true} }, func(d *plans.Declaration) { d.Direction = plans.Finalize }
	gone := func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", RemoveNames: true} }
	for name, c := range map[string]struct {
		change    func(*journal.Journal)
		declare   func(*plans.Declaration)
		want      action
		names     action // the action with names to keep
		direction plans.Direction
		fresh     bool
	}{
		"another's plan":                   {func(j *journal.Journal) { j.Detached = false }, nil, nothing, nothing, "", false},
		"a new one":                        {func(*journal.Journal) {}, nil, carry, carry, plans.Move, true},
		"one that nobody has approved":     {func(*journal.Journal) {}, func(d *plans.Declaration) { d.ApprovedHash = "" }, nothing, nothing, "", false},
		"one whose like was approved":      {func(*journal.Journal) {}, func(d *plans.Declaration) { d.ApprovedHash = "abc" }, nothing, nothing, "", false},
		"one under way":                    {func(j *journal.Journal) { j.Epoch = 2; j.Done = 3 }, nil, carry, carry, plans.Move, false},
		"one under way, of another":        {func(j *journal.Journal) { j.Epoch = 2; j.Done = 3 }, func(d *plans.Declaration) { d.ApprovedHash, d.Direction = "abc", plans.Abort }, carry, carry, plans.Move, false},
		"a blocked one":                    {func(j *journal.Journal) { j.Epoch = 2; j.Blocked = "why" }, nil, nothing, keep, "", false},
		"a blocked one that is to go on":   {func(j *journal.Journal) { j.Epoch = 2; j.Blocked = "why" }, on, carry, carry, plans.Move, false},
		"a blocked one that was asked":     {func(j *journal.Journal) { j.Epoch = 2; j.Blocked = "why"; j.Observed.Request = "1" }, on, nothing, keep, "", false},
		"a blocked one that is to go back": {func(j *journal.Journal) { j.Epoch = 2; j.Blocked = "why" }, back, carry, carry, plans.Abort, false},
		"a paused one":                     {func(j *journal.Journal) { j.Epoch = 2; j.Done = 1; j.Paused = true }, nil, nothing, keep, "", false},
		"a split one": {func(j *journal.Journal) {
			j.Epoch, j.Leg.Lowest, j.Done, j.Begun, j.Outcome = 2, 2, 12, 12, plans.Split
		}, nil, keep, keep, "", false}, // drains of one side are let through, which must be the right one
		"one that is blocked before it began": {func(j *journal.Journal) { j.Blocked = "a check fails" }, nil, nothing, nothing, "", false},
		"such a one that is to go on":         {func(j *journal.Journal) { j.Blocked = "a check fails" }, on, carry, carry, plans.Move, true},
		"such a one that is to go back":       {func(j *journal.Journal) { j.Blocked = "a check fails" }, back, carry, carry, plans.Abort, false},
		"one that has moved":                  {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Moved }, nil, nothing, keep, "", false},
		"one that is to be finalized":         {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Moved }, end, carry, carry, plans.Finalize, false},
		"one that is to be some day":          {func(j *journal.Journal) { j.Epoch = 2; j.Done = 3 }, end, carry, carry, plans.Move, false},
		"one that goes back for good":         {func(j *journal.Journal) { j.Epoch = 2; j.StartLeg(p, plans.Abort) }, nil, carry, carry, plans.Abort, false},
		"a finalized one":                     {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Finalized }, nil, nothing, nothing, "", false},
		"a finalized one that keeps names":    {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Finalized; j.KeepNames = true }, nil, nothing, keep, "", false},
		"one whose names are to go":           {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Finalized; j.KeepNames = true }, gone, unname, unname, "", false},
		"one whose names are gone":            {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Finalized; j.Observed.Request = "1" }, gone, nothing, nothing, "", false},
		"one that was aborted":                {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Aborted }, nil, nothing, nothing, "", false},
		"a late wish":                         {func(j *journal.Journal) { j.Epoch = 2; j.Outcome = plans.Aborted }, end, nothing, nothing, "", false},
		"a request that means nothing": {
			func(j *journal.Journal) { j.Epoch = 2; j.Blocked = "why" }, func(d *plans.Declaration) { d.Request = &plans.Request{ID: "1", NodeGone: "n"} },
			nothing, keep, "", false,
		},
	} {
		for _, p := range []*plans.Plan{p, &named} {
			j := journal.New(p)
			j.Detached, j.Observed.Direction = true, plans.Move
			c.change(j)
			d := p.Declared()
			if c.declare != nil {
				c.declare(&d)
			}
			want := c.want
			if len(p.Directories()) > 0 {
				want = c.names
			}
			what, asked := actionFor(p, j, &d)
			if what != want || what == carry && (asked.Direction != c.direction || fresh(j, asked.Command) != c.fresh) {
				t.Errorf("%s (names %t): %q %+v, checked first: %t; expected %q %s, %t", name, len(p.Directories()) > 0, what, asked, fresh(j, asked.Command), want, c.direction, c.fresh)
			}
		}
	}
}

// fixture returns an Orchestrator over an API server that has one plan.
func fixture(t *testing.T, more ...client.Object) (*Orchestrator, *plans.Plan) {
	t.Helper()
	p := plan(t)
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(more...).WithStatusSubresource(records.NewDeclared("", "")).Build()
	j := journal.New(p)
	j.Detached, j.Observed.Direction = true, plans.Move
	if err := records.NewStore(c, "stsmigrate", p.Name).Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	declare(t, c, p, func(*plans.Declaration) {})
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g, err := newGauges(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	h := New(Setup{
		Board:  dashboard.NewBoard(),
		gauges: g, Live: c, Cached: watched(c), Namespace: "stsmigrate", Holder: "me", Dead: func(string) bool { return false },
		Fleet: fleet.New(fleet.Setup{Home: &rest.Config{Host: "https://127.0.0.1:1"}, Own: "own", Limits: fleet.Limits{QPS: 100, Burst: 100}, Agent: "test"}),
		Now:   func() time.Time { return clock }, StepTimeout: time.Minute, Events: record.NewFakeRecorder(100),
	})
	h.reached = func(plans.Ref) error { return nil } // a run finds out
	return h, p
}

// reaches has a process know which clusters it reaches.
func reaches(h *Orchestrator) {
	h.reached = func(of plans.Ref) error { return h.Fleet.Reached(of.Context, of.Cluster) }
	h.Fleet.OnChange(h.again)
}

// watched returns a client that reads what is kept in memory of objects.
func watched(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, o, opts...); err != nil {
				return err
			}
			if _, err := slimmed(o); err != nil {
				return err
			}
			_, err := slimmed(o)
			return err
		},
	})
}

// declare changes what is declared of a plan.
func declare(t *testing.T, c client.Client, p *plans.Plan, change func(*plans.Declaration)) {
	t.Helper()
	err := records.Declare(t.Context(), c, "stsmigrate", p, func(d *plans.Declaration) error { change(d); return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "stsmigrate", Name: "web"}}
}

// A plan that another process carries out is left to it until its Lease was observed to expire. Then
// this process begins it, with a delay if it carries out many plans.
func TestAPlanIsLeftToWhoHasItsLease(t *testing.T) {
	other, seconds := "other", int32(15)
	renewed := metav1.NewMicroTime(time.Date(2025, 12, 31, 23, 59, 55, 0, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-web"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	h, _ := fixture(t, lease)
	if r, err := h.Reconcile(t.Context(), request()); err != nil || r.RequeueAfter != 15*time.Second || len(h.running()) > 0 {
		t.Fatalf("%+v, %v, %d runs", r, err, len(h.running()))
	}
	if err := h.Live.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	for k := range 10 {
		h.state(string(rune('a' + k))).run = &run{}
	}
	r, err := h.Reconcile(t.Context(), request())
	if err != nil || r.RequeueAfter < 10*startDelayPerPlan || r.RequeueAfter > 11*startDelayPerPlan || len(h.running()) != 10 {
		t.Fatalf("%+v, %v, %d runs", r, err, len(h.running()))
	}
}

// A plan whose cluster is not known waits without room, reports that, and begins when a Secret appears.
func TestAPlanWaitsForItsClusters(t *testing.T) {
	h, p := fixture(t)
	reaches(h)
	h.state(p.Name).tries = &tries{} // its turn has come
	for range 2 {                    // it is told at once, and once, and costs nothing from then on
		if r, err := h.Reconcile(t.Context(), request()); err != nil || r.RequeueAfter != 0 || len(h.running()) != 0 {
			t.Fatalf("%+v, %v, %d runs", r, err, len(h.running()))
		}
	}
	j, _, err := records.NewStore(h.Live, "stsmigrate", "web").Journal(t.Context(), p)
	if err != nil || j.Blocked != "" || j.Epoch != 0 {
		t.Fatalf("%+v, %v", j, err)
	}
	if want := `source: no cluster named "east" is known: put its kubeconfig into a Secret with the label stsmigrate.dev/cluster: east, under the key kubeconfig`; j.Waiting != want || j.WaitingID != reasons.ClusterUnknown {
		t.Errorf("it waits because %s [%s]\nexpected %s", j.Waiting, j.WaitingID, want)
	}
	if events := h.Events.(*record.FakeRecorder).Events; len(events) != 1 || !strings.HasPrefix(<-events, "Warning TryingAgain source: no cluster named") {
		t.Errorf("%d events", len(events)+1)
	}
	needsUser(t, h, p)
}

// needsUser checks that the status says that a plan needs a user to make a cluster known.
func needsUser(t *testing.T, h *Orchestrator, p *plans.Plan) {
	t.Helper()
	d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	if s := meta.FindStatusCondition(d.Status.Conditions, "Stalled"); s == nil || s.Reason != string(reasons.ClusterUnknown) || meta.IsStatusConditionTrue(d.Status.Conditions, "Reconciling") {
		t.Errorf("nobody is told that it needs a user: %+v", d.Status.Conditions)
	}
}

// Nothing of a plan is written in its clusters before a process has taken it over. So it ends at once when it is aborted,
// whether they answer or not. One that was begun waits for them.
func TestAPlanThatWasNotBegunIsAbortedWithoutItsClusters(t *testing.T) {
	for name, c := range map[string]struct {
		epoch int64
		want  plans.Outcome
	}{"not begun": {0, plans.Aborted}, "begun": {1, ""}} {
		h, p := fixture(t)
		reaches(h)
		store := records.NewStore(h.Live, "stsmigrate", p.Name)
		err := store.Change(t.Context(), p, func(j *journal.Journal) error { j.Epoch = c.epoch; return nil })
		if err = errors.Join(err, h.guard(t.Context(), p)); err != nil { // as the process that began it
			t.Fatal(err)
		}
		declare(t, h.Live, p, func(d *plans.Declaration) { d.Direction = plans.Abort })
		h.state(p.Name).tries = &tries{} // its turn has come
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		h.all.Wait()
		j, _, err := store.Journal(t.Context(), p)
		if err != nil || j.Outcome != c.want || j.Epoch != c.epoch || (c.want == "") != journal.ClusterUnknown(j) || (c.want == "") != (j.EndedAt == nil) {
			t.Errorf("%s: %v: %+v", name, err, j)
		}
		if c.want != "" {
			<-h.news // the end of the run
		}
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		if d, err := records.ReadDeclared(t.Context(), h.Live, h.Namespace, p.Name); err != nil || (d.Status.State == plans.StateAborted) != (c.want == plans.Aborted) || (c.want != "") == slices.Contains(d.Object.GetFinalizers(), records.UnderWay) {
			t.Errorf("%s: %v: it is %s, with the finalizers %q", name, err, d.Status.State, d.Object.GetFinalizers())
		}
	}
}

// A cluster that cannot be reached, or is another one, may have the wrong Secret: when that is corrected, the plan does not
// wait for the end of its pause, with an ordinal down perhaps.
func TestACorrectedSecretIsTriedAtOnce(t *testing.T) {
	h, p := fixture(t)
	h.Fleet = fleet.New(fleet.Setup{Home: &rest.Config{Host: "https://127.0.0.1:1"}, Own: "own", Loopback: true, Limits: fleet.Limits{QPS: 100, Burst: 100}})
	answers := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(answers.Close)
	holds := func(name, server string) *corev1.Secret {
		ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: answers.Certificate().Raw}))
		kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s', certificate-authority-data: '%s'}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n", server, ca)
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: name, Labels: map[string]string{fleet.Label: name}},
			Data:       map[string][]byte{"kubeconfig": []byte(kubeconfig)},
		}
	}
	reaches(h)
	if err := errors.Join(h.Learn(holds("west", answers.URL)), h.Learn(holds("east", "https://127.0.0.1:1"))); err != nil {
		t.Fatal(err)
	}
	h.state(p.Name).tries = &tries{} // its turn has come
	if r, err := h.Reconcile(t.Context(), request()); err != nil || r.RequeueAfter <= 0 || len(h.running()) != 0 {
		t.Fatalf("it takes room before its cluster answers: %+v, %v", r, err)
	}
	if err := h.Learn(holds("east", answers.URL)); err != nil {
		t.Fatal(err)
	}
	<-h.news // nothing else wakes it
	if _, err := h.Reconcile(t.Context(), request()); err != nil || len(h.running()) != 1 {
		t.Errorf("it does not begin: %v", err)
	}
	h.all.Wait()
	<-h.news // the end of the run: it is another cluster
	if r, err := h.Reconcile(t.Context(), request()); err != nil || r.RequeueAfter <= 0 {
		t.Errorf("it is tried again at once: %+v, %v", r, err)
	}
	if err := h.Learn(holds("east", "https://127.0.0.1:2")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.news:
	default:
		t.Error("nobody was woken by a Secret that was corrected")
	}
}

// A request ends the run for a different request. A process that ends begins nothing.
func TestAWishEndsTheRunBeforeIt(t *testing.T) {
	h, p := fixture(t)
	r := &run{orchestrator: h, plan: p, what: carry, command: plans.Command{Direction: plans.Move}, stop: make(chan struct{}), asked: make(chan struct{}, 1)}
	h.state(p.Name).run = r
	look := func() bool {
		t.Helper()
		if _, err := h.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.stop:
			return true
		default:
			return false
		}
	}
	if look() {
		t.Error("what is wanted was ended")
	}
	if len(r.asked) > 0 {
		t.Error("it was told of a pause that nobody wants")
	}
	declare(t, h.Live, p, func(d *plans.Declaration) { d.Paused = true })
	for range 2 { // the second time the run has not read the first signal yet
		if look() || len(r.asked) != 1 {
			t.Error("a pause ends no run: it is told of it, and knows where it can pause")
		}
	}
	declare(t, h.Live, p, func(d *plans.Declaration) { d.Paused, d.Direction = false, plans.Abort })
	if !look() {
		t.Error("the way there goes on though somebody wants the abort")
	}
	h.state(p.Name).run = nil
	h.ending = true
	h.state(p.Name).tries = &tries{}
	if look(); len(h.running()) > 0 {
		t.Error("a process that ends has begun something")
	}
}

// A plan that the API server refuses to let a process take over is blocked after a while (L3). It is
// not blocked while the reason may pass by itself, or while another process carries it out.
func TestAPlanThatCannotBeTakenOverIsHeld(t *testing.T) {
	volumes := schema.GroupResource{Resource: "persistentvolumes"}
	refused := fmt.Errorf("taking plan web over: %w", apierrors.NewForbidden(volumes, "pv-0", errors.New("it would not be Retain")))
	other, seconds, now := "other", int32(15), metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 50, 0, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "stsmigrate-web"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	for name, c := range map[string]struct {
		err         error
		times       int
		there       []client.Object
		held, waits bool
	}{
		"at first":                {refused, 0, nil, false, true},
		"for a minute":            {refused, 6, nil, true, false},
		"another has it":          {refused, 6, []client.Object{lease}, false, false},
		"the credentials are old": {apierrors.NewUnauthorized("expired"), 6, nil, false, true},
		"nobody answers":          {apierrors.NewTimeoutError("no answer", 0), 6, nil, false, true},
	} {
		h, p := fixture(t, c.there...)
		for range c.times {
			h.final(p.Name, c.err)
		}
		clock := h.Now().Add(time.Minute)
		h.Now = func() time.Time { return clock }
		r := &run{orchestrator: h, plan: p, what: carry}
		if err := r.stuck(t.Context(), c.err); (err == nil) != c.held {
			t.Errorf("%s: %v", name, err)
		}
		j, _, err := records.NewStore(h.Live, "stsmigrate", p.Name).Journal(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if held, waits := j.Blocked == c.err.Error(), j.Waiting == c.err.Error(); held != c.held || waits != c.waits {
			t.Errorf("%s: blocked because %q, waits because %q", name, j.Blocked, j.Waiting)
		}
	}
}

// Two processes that are refused in turn do not forget their refusals while the other one has the Lease:
// each pauses longer after every refusal, and the plan is blocked at last (L3). Progress of the other one ends that.
func TestARefusalCountsWhileAnotherProcessTries(t *testing.T) {
	h, p := fixture(t)
	clock := h.Now()
	h.Now = func() time.Time { return clock }
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	change := func(change func(*journal.Journal)) {
		if err := store.Change(t.Context(), p, func(j *journal.Journal) error { change(j); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(j *journal.Journal) { j.Epoch = 1 })
	look := func() time.Duration {
		t.Helper()
		r, err := h.Reconcile(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		return r.RequeueAfter
	}
	anothers := func() { // another process takes the plan over, and is refused
		t.Helper()
		lease, err := store.Acquire(t.Context(), "another", h.Dead, h.Now)
		if err != nil {
			t.Fatal(err)
		}
		change(func(j *journal.Journal) { j.Epoch++ })
		if wait := look(); wait != records.LeaseSeconds*time.Second {
			t.Errorf("it waits for %s while another process has the Lease", wait)
		}
		if err := lease.Release(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "pv-0", errors.New("it would not be Retain"))
	for n := range 4 {
		h.lock.Lock()
		h.state(p.Name).tried().from = place{leg: p.FirstLeg()} // its run begins
		h.lock.Unlock()
		if err := (&run{orchestrator: h, plan: p, what: carry}).stuck(t.Context(), refused); err == nil {
			t.Fatalf("it is given up after %d refusals", n+1)
		}
		h.lock.Lock()
		h.state(p.Name).delay(h.Now(), refused)
		h.lock.Unlock()
		anothers()
		if wait := look(); wait != time.Second<<n {
			t.Errorf("after %d refusals it pauses for %s", n+1, wait)
		}
		clock = clock.Add(20 * time.Second)
	}
	h.lock.Lock()
	h.state(p.Name).delay(h.Now(), records.ErrLeaseTaken{Plan: p.Name}) // the other one was faster
	h.lock.Unlock()
	if err := (&run{orchestrator: h, plan: p, what: carry}).stuck(t.Context(), refused); err != nil {
		t.Errorf("it is not given up after five refusals in more than a minute: %v", err)
	}
	if j, _, err := store.Journal(t.Context(), p); err != nil || j.Blocked != refused.Error() {
		t.Errorf("blocked because %q, %v", j.Blocked, err)
	}
	change(func(j *journal.Journal) { j.Blocked, j.Done, j.Begun = "", 2, 2 })
	anothers()
	if h.state(p.Name).tries != nil {
		t.Errorf("the plan has got on elsewhere, and what failed before counts: %+v", h.state(p.Name).tries)
	}
}

// A plan that waits for its checks may have changed when its turn comes: it is reconciled again.
func TestAPlanIsOvertakenWhileItWaitsForItsChecks(t *testing.T) {
	journaled := func(change func(*journal.Journal)) func(*Orchestrator, *plans.Plan) {
		return func(h *Orchestrator, p *plans.Plan) {
			err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error { change(j); return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, change := range map[string]func(*Orchestrator, *plans.Plan){
		"another process has begun it":   journaled(func(j *journal.Journal) { j.Epoch = 1 }),
		"another process has blocked it": journaled(func(j *journal.Journal) { j.Blocked = "a check fails" }),
		"somebody has paused it":         journaled(func(j *journal.Journal) { j.Paused = true }),
		"somebody wants it back": func(h *Orchestrator, p *plans.Plan) {
			declare(t, h.Live, p, func(d *plans.Declaration) { d.Direction = plans.Abort })
		},
		"a command carries it out again": journaled(func(j *journal.Journal) { j.Detached = false }),
		"somebody deletes it": func(h *Orchestrator, p *plans.Plan) {
			if err := h.Live.Delete(t.Context(), records.NewDeclared("stsmigrate", p.Name)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		h, p := fixture(t)
		if err := h.guard(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		r := &run{orchestrator: h, plan: p, what: carry, command: plans.Command{Direction: plans.Move}}
		change(h, p)
		if reason, err := r.ready(t.Context(), runner.Runner{Store: r.store()}); !errors.Is(err, errOvertaken) || reason != nil {
			t.Errorf("%s: %+v, %v", name, reason, err)
		}
	}
}

// A panic over one plan blocks that plan, wherever it occurs, and ends nothing else.
func TestAPanicBlocksOnePlanOnly(t *testing.T) {
	for name, do := range map[string]func(h *Orchestrator, p *plans.Plan, j *journal.Journal){
		"in the run": func(h *Orchestrator, p *plans.Plan, j *journal.Journal) {
			h.Fleet = nil
			h.begin(t.Context(), p, j, carry, requests.Requested{Command: plans.Command{Direction: plans.Move}})
		},
		"beside it": func(h *Orchestrator, p *plans.Plan, _ *journal.Journal) {
			r := &run{orchestrator: h, plan: p, what: carry, stop: make(chan struct{})}
			r.complain(t.Context(), fmt.Errorf("names: %w", plans.Panic{What: "nil pointer dereference", Where: "names.sync (line 7)"}))
			select {
			case <-r.stop:
			default:
				t.Error("the run goes on")
			}
			h.all.Go(func() {
				if err := r.safely(t.Context()); err == nil {
					t.Error("the plan is begun again at once")
				}
			})
		},
	} {
		h, p := fixture(t)
		other := &run{orchestrator: h, plan: p, stop: make(chan struct{})}
		h.state("other").run = other
		j := journal.New(p)
		h.lock.Lock()
		do(h, p, j)
		h.lock.Unlock()
		h.all.Wait()
		j, _, err := records.NewStore(h.Live, "stsmigrate", p.Name).Journal(t.Context(), p)
		if err != nil || !strings.Contains(j.Blocked, "stsmigrate has panicked while it worked on this plan, which is a bug of stsmigrate") || !strings.Contains(j.Blocked, "nil pointer dereference, in ") {
			t.Errorf("%s: blocked because %q, %v", name, j.Blocked, err)
		}
		var m dto.Metric
		if err := h.gauges.panics.WithLabelValues().Write(&m); err != nil || m.Counter.GetValue() != 1 {
			t.Errorf("%s: %v counted, %v", name, m.Counter.GetValue(), err)
		}
		select {
		case <-other.stop:
			t.Errorf("%s: the run of another plan was ended", name)
		default:
		}
	}
}

// A plan that was deleted and recreated under the same name is a different plan.
func TestARunBelongsToOnePlan(t *testing.T) {
	_, p := fixture(t)
	asked := requests.Requested{Work: true}
	r := &run{plan: p, what: carry, command: plans.Command{Direction: plans.Move}}
	another, changed := *p, *p
	another.ID, changed.Hash = "web-xyz", "another"
	if same := *p; !r.suits(carry, &same, asked) || r.suits(carry, &another, asked) || r.suits(carry, &changed, asked) {
		t.Error("the run of an earlier plan goes on for the new one, or its own is ended")
	}
}

// A plan is carried out as carefully as its Declaration says now. A run under way that does otherwise is ended, and another
// one goes on.
func TestAPlanIsCarriedOutAsCarefullyAsItsDeclarationSays(t *testing.T) {
	h, p := fixture(t)
	j := journal.New(p)
	j.Detached, j.Observed.Direction = true, plans.Move
	for _, careful := range []bool{true, false} {
		d := p.Declared()
		d.Careful = careful
		_, asked := actionFor(p, j, &d)
		r := &run{orchestrator: h, plan: p, what: carry, careful: asked.Careful}
		if got := r.process(t.Context(), nil); got.Careful != careful {
			t.Errorf("declared %t: the process is careful: %t", careful, got.Careful)
		}
		if !r.suits(carry, p, asked) {
			t.Errorf("declared %t: its own run is ended", careful)
		}
		if other := (&run{plan: p, what: carry, careful: !careful}); other.suits(carry, p, asked) {
			t.Errorf("declared %t: a run that does otherwise goes on", careful)
		}
	}
	unapproved := p.Declared()
	unapproved.Careful, unapproved.ApprovedHash = true, "another"
	if _, asked := actionFor(p, j, &unapproved); asked.Careful {
		t.Error("a Declaration of another plan counts")
	}
}

// A ConfigMap that holds a different plan affects only itself.
func TestAPlanInAnothersPlaceEndsNothing(t *testing.T) {
	h, p := fixture(t)
	r := &run{orchestrator: h, plan: p, what: carry, command: plans.Command{Direction: plans.Move}, stop: make(chan struct{})}
	h.state(p.Name).run = r
	var cm corev1.ConfigMap
	if err := h.Live.Get(t.Context(), client.ObjectKey{Namespace: "stsmigrate", Name: "stsmigrate-web"}, &cm); err != nil {
		t.Fatal(err)
	}
	foo := cm.DeepCopy()
	foo.Name, foo.ResourceVersion, foo.Labels[plans.PlanLabel] = "stsmigrate-foo", "", "foo"
	if err := h.Live.Create(t.Context(), foo); err != nil {
		t.Fatal(err)
	}
	request := request()
	request.Name = "foo"
	if _, err := h.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if e := <-h.Events.(*record.FakeRecorder).Events; !strings.Contains(e, "stsmigrate-foo: it holds plan web") {
		t.Errorf("it is told of as %s", e)
	}
	select {
	case <-r.stop:
		t.Error("the run of web was ended")
	default:
	}
	if h.state(p.Name).run != r || len(h.running()) != 1 {
		t.Errorf("%d runs", len(h.running()))
	}
}

// The record of an ended plan is deleted some time later, unless it is still needed or is to be kept for
// ever.
func TestTheRecordOfAnEndedPlanGoesByItself(t *testing.T) {
	ended := time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC) // an hour ago
	for name, c := range map[string]struct {
		after  time.Duration
		change func(*journal.Journal)
		left   time.Duration
		gone   bool
	}{
		"it is old":            {time.Hour, func(*journal.Journal) {}, 0, true},
		"it is not old yet":    {90 * time.Minute, func(*journal.Journal) {}, 30 * time.Minute, false},
		"it is kept for ever":  {0, func(*journal.Journal) {}, 0, false},
		"it has not ended":     {time.Hour, func(j *journal.Journal) { j.Outcome, j.Detached = "", false }, 0, false},
		"nobody knows its age": {time.Hour, func(j *journal.Journal) { j.EndedAt = nil }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, p := fixture(t)
			h.ForgetAfter = c.after
			store := records.NewStore(h.Live, "stsmigrate", "web")
			err := store.Change(t.Context(), p, func(j *journal.Journal) error {
				j.StartLeg(p, plans.Finalize)
				j.Outcome, j.EndedAt = plans.Finalized, &metav1.Time{Time: ended}
				c.change(j)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := h.Reconcile(t.Context(), request())
			if err != nil || r.RequeueAfter != c.left {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := store.Plan(t.Context()); errors.As(err, new(records.ErrNoPlan)) != c.gone {
				t.Errorf("the plan: %v", err)
			}
		})
	}
}

// The clusters of a Secret stay known while its new content is refused. An event and a metric report the
// refusal.
func TestASpoiltSecretIsReported(t *testing.T) {
	h, _ := fixture(t)
	events := record.NewFakeRecorder(10)
	h.Events = events
	on := h.secrets()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: "a", ResourceVersion: "1", Labels: map[string]string{fleet.Label: "east"}}, Data: map[string][]byte{"kubeconfig": []byte(`
contexts: [{name: east, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://east.example"}}]
users: [{name: u, user: {token: old}}]`)}}
	on.Create(t.Context(), event.CreateEvent{Object: s}, nil)
	first, err := h.Fleet.Find("east", "east-uid")
	if err != nil {
		t.Fatal(err)
	}
	spoilt := s.DeepCopy()
	spoilt.ResourceVersion, spoilt.Data = "2", map[string][]byte{"kubeconfig": []byte("users: open-sesame")}
	on.Update(t.Context(), event.UpdateEvent{ObjectOld: s, ObjectNew: spoilt}, nil)
	select {
	case e := <-events.Events:
		if want := "Warning Refused Secret stsmigrate/a holds no cluster: it cannot be read as a kubeconfig; east is reached as before, until this process ends"; e != want {
			t.Errorf("%s, expected %s", e, want)
		}
	default:
		t.Error("there is no event")
	}
	if got := testutil.ToFloat64(h.gauges.clusters.WithLabelValues("a")); got != 0 {
		t.Errorf("the metric is %v", got)
	}
	if c, err := h.Fleet.Find("east", "east-uid"); c != first {
		t.Errorf("the cluster is not known any more: %v", err)
	}
	on.Delete(t.Context(), event.DeleteEvent{Object: spoilt}, nil)
	select {
	case <-first.Gone:
	default:
		t.Error("a Secret that is deleted keeps its cluster")
	}
}

// Text of an API server appears in journal and events as one line without control sequences of
// terminals.
func TestTextOfAnAPIServerIsToldAsALine(t *testing.T) {
	h, p := fixture(t)
	events := record.NewFakeRecorder(10)
	h.Events = events
	r := &run{orchestrator: h, plan: p}
	if err := r.waits(t.Context(), errors.New("\x1b[2K\u202egnp\nnext: \a")); err == nil {
		t.Error("it is no error any more")
	}
	j, _, err := records.NewStore(h.Live, "stsmigrate", "web").Journal(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if j.Waiting != "[2K gnp next:" {
		t.Errorf("the journal says %q", j.Waiting)
	}
	if e := <-events.Events; e != "Warning TryingAgain [2K gnp next:" {
		t.Errorf("the event says %q", e)
	}
	r.tell("Warning", "Blocked", "\x1b[2K\nnext:")
	if e := <-events.Events; e != "Warning Blocked [2K next:" {
		t.Errorf("the event says %q", e)
	}
}

// Whatever keeps a run from going on, its plan is tried again within ten seconds (L3): an ordinal may be in flight.
func TestAPlanIsTriedAgainWithinTenSeconds(t *testing.T) {
	h, p := fixture(t)
	for range 10 {
		h.state(p.Name).delay(h.Now(), errors.New("no answer"))
		if pause := h.state(p.Name).tries.after.Sub(h.Now()); pause < time.Second || pause > 10*time.Second {
			t.Fatalf("after %d failures it is tried again after %s, expected 1 s to 10 s", h.state(p.Name).tries.failures, pause)
		}
	}
}

// With an ordinal in flight a plan is not blocked by a refusal that may pass, however long it lasts: it is tried again, and
// says why it waits. What an API server has decided blocks it (L3).
func TestAPlanInFlightIsNotBlockedByWhatMayPass(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, c := range map[string]struct {
		words  string
		flies  bool
		blocks bool
	}{
		"no right, in flight":      {`User "orchestrator" cannot get resource "persistentvolumeclaims"`, true, false},
		"no right, nothing flies":  {`User "orchestrator" cannot get resource "persistentvolumeclaims"`, false, true},
		"it is refused, in flight": {"exceeded quota: all", true, true},
	} {
		h, p := fixture(t)
		h.StepTimeout = 10 * time.Minute
		err := records.NewStore(h.Live, h.Namespace, p.Name).Change(t.Context(), p, func(j *journal.Journal) error {
			s, _, _ := j.Next(p)
			for ; c.flies && s.Op != plans.Vacate; s, _, _ = j.Next(p) {
				j.Begin(p, s, plans.Undo{})
				j.Done = s.Seq
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		why, clock := error(apierrors.NewForbidden(claims, "data-web-2", errors.New(c.words))), h.Now()
		h.Now = func() time.Time { return clock }
		for range 6 {
			h.final(p.Name, why)
			clock = clock.Add(10 * time.Minute)
		}
		_ = (&run{orchestrator: h, plan: p, what: carry}).stuck(t.Context(), why)
		j, _, err := records.NewStore(h.Live, h.Namespace, p.Name).Journal(t.Context(), p)
		if err != nil || (j.Blocked != "") != c.blocks || (j.Waiting != "") == c.blocks {
			t.Errorf("%s: blocked because %q, waits because %q: %v", name, j.Blocked, j.Waiting, err)
		}
	}
}
