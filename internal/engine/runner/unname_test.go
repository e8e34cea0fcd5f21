package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/requests"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// Kept names are removed once for each request. A request for names that are not kept is refused.
func TestNamesGoWhenSomebodyAsks(t *testing.T) {
	p := &plans.Plan{Name: "web", Count: 3, Window: 1, Hash: "abc"}
	kept := func(j *journal.Journal) { j.Outcome, j.KeepNames = plans.Finalized, true }
	for name, c := range map[string]struct {
		journal func(*journal.Journal)
		ask     *plans.Request
		goes    bool
		refused string
	}{
		"they are kept":           {kept, &plans.Request{ID: "1", RemoveNames: true}, true, ""},
		"it was heard":            {func(j *journal.Journal) { kept(j); j.Observed.Request = "1" }, &plans.Request{ID: "1", RemoveNames: true}, false, ""},
		"nobody asks":             {kept, nil, false, ""},
		"it is about other names": {kept, &plans.Request{ID: "1", Resume: true}, false, ""},
		"none are kept":           {func(j *journal.Journal) { j.Outcome = plans.Finalized }, &plans.Request{ID: "1", RemoveNames: true}, false, "has kept no names"},
		"it was aborted":          {func(j *journal.Journal) { j.Leg.Direction, j.Outcome = plans.Abort, plans.Aborted }, &plans.Request{ID: "1", RemoveNames: true}, false, "has kept no names"},
		"it is under way":         {func(j *journal.Journal) { j.Outcome, j.KeepNames = "", true }, &plans.Request{ID: "1", RemoveNames: true}, false, "is not finalized yet"},
		"it has only moved":       {func(j *journal.Journal) { j.Leg.Direction, j.Outcome = plans.Move, plans.Moved }, &plans.Request{ID: "1", RemoveNames: true}, false, "is not finalized yet"},
	} {
		j, d := journal.New(p), p.Declared()
		j.StartLeg(p, plans.Finalize)
		j.Detached, j.Epoch, j.Observed.Direction = true, 3, plans.Finalize
		c.journal(j)
		d.Direction, d.Request = j.Leg.Direction, c.ask
		j.Observed.Direction = j.Leg.Direction
		got := requests.Read(p, j, &d)
		if got.RemoveNames != c.goes || got.Work && c.goes || (got.Refuse != nil) != (c.refused != "") || !strings.Contains(got.Refused, c.refused) {
			t.Errorf("%s: %+v, expected the names to go: %t, refused: %q", name, got, c.goes, c.refused)
		}
	}
}

// bridged returns a Runner of a plan between clusters that was finalized and has kept its names. The
// destination has an EndpointSlice and a Service of these names, and those of others.
func bridged(t *testing.T, funcs interceptor.Funcs) (Runner, client.Client) {
	t.Helper()
	p := planstest.Named(t, "abc")
	p.Source.Cluster, p.Names, p.Hash = "two", plans.Names{Mode: plans.Bridge, Service: "web"}, ""
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "stsmigrate", p.Name)
	j := journal.New(p)
	j.StartLeg(p, plans.Finalize)
	j.Detached, j.Epoch, j.Outcome, j.KeepNames, j.Waiting = true, 3, plans.Finalized, true, "nobody answers"
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	mark := func(plan string) map[string]string {
		return map[string]string{dns.PlanLabel: plan, discoveryv1.LabelManagedBy: dns.ManagedBy}
	}
	on := clusters.Clusters{plans.Source: fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()}
	on[plans.Destination] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithInterceptorFuncs(funcs).WithObjects(
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-" + p.ID + "-ipv4-0", Labels: mark(p.ID)}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-other-ipv4-0", Labels: mark("other")}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: mark(p.ID)}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}},
	).Build()
	return Runner{
		Plan: p, Store: store, On: on, Holder: "me", Dead: func(string) bool { return false }, Now: planstest.Noon, Complain: func(error) {},
	}, on[plans.Destination]
}

// left lists the EndpointSlices by name and the Services by namespace.
func left(t *testing.T, at client.Client) (out []string) {
	t.Helper()
	var all discoveryv1.EndpointSliceList
	var services corev1.ServiceList
	if err := errors.Join(at.List(t.Context(), &all), at.List(t.Context(), &services)); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Items {
		out = append(out, s.Name)
	}
	for _, s := range services.Items {
		out = append(out, s.Namespace)
	}
	slices.Sort(out)
	return out
}

func (c Runner) recorded(t *testing.T) *journal.Journal {
	t.Helper()
	j, _, err := c.Store.Journal(t.Context(), c.Plan)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// The objects of the names are deleted, no others are, and the journal records that
// together with the request.
func TestKeptNamesAreTakenAway(t *testing.T) {
	refused := errors.New("the API server is away")
	conflicts := 2
	for name, c := range map[string]struct {
		funcs interceptor.Funcs
		err   error
	}{
		"at once": {},
		"somebody is faster": {interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
			}
			return c.Delete(ctx, o, opts...)
		}}, nil},
		"the answer is lost": {interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return errors.Join(c.Delete(ctx, o, opts...), refused)
		}}, refused},
	} {
		process, at := bridged(t, c.funcs)
		observed := plans.Observed{Direction: plans.Finalize, Request: "7"}
		err := process.RemoveNames(t.Context(), plans.Command{RemoveNames: true, Observed: &observed}, func(string) {})
		if c.err != nil { // repeated, as after a crash
			if j := process.recorded(t); !errors.Is(err, c.err) || !j.KeepNames || j.Observed == observed {
				t.Errorf("%s: %v; %+v", name, err, j)
			}
			for range 2 {
				err = process.RemoveNames(t.Context(), plans.Command{RemoveNames: true, Observed: &observed}, func(string) {})
			}
		}
		if j := process.recorded(t); err != nil || j.KeepNames || j.Observed != observed || j.Waiting != "" || j.Outcome != plans.Finalized {
			t.Errorf("%s: %v; %+v", name, err, j)
		}
		onlyOfOthers(t, name, process, at)
	}
}

// onlyOfOthers requires that no object of the names is left, and that the Lease is free.
func onlyOfOthers(t *testing.T, name string, c Runner, at client.Client) {
	t.Helper()
	if there := left(t, at); !slices.Equal(there, []string{"mall", "stsmigrate-other-ipv4-0"}) {
		t.Errorf("%s: there are %v, expected what others have", name, there)
	}
	if holder, _, err := c.Store.Holder(t.Context(), c.Now); holder != "" || err != nil {
		t.Errorf("%s: the Lease is kept by %q, %v", name, holder, err)
	}
}

// A process sleeps while it creates a name. Meanwhile another one ends the plan, and the user forgets it. The names are
// over then, so that the late process removes what it has created: no other process will.
func TestANameThatIsCreatedTooLateIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		forgotten, next, orchestrated bool
	}{
		"the names are removed":               {},
		"the plan is forgotten":               {forgotten: true},
		"another plan has its name":           {forgotten: true, next: true},
		"the consent is taken back with that": {forgotten: true, orchestrated: true},
	} {
		process, _ := bridged(t, interceptor.Funcs{})
		lease, err := process.Store.Acquire(t.Context(), process.Holder, process.Dead, process.Now)
		if err != nil {
			t.Fatal(err)
		}
		if err := process.leave(lease)(t.Context(), true); err != nil {
			t.Errorf("%s: before that: %v", name, err)
		}
		err = process.Store.Change(t.Context(), process.Plan, func(j *journal.Journal) error { j.KeepNames = false; return nil })
		if c.forgotten {
			err = errors.Join(err, lease.Release(t.Context(), true), process.Store.Forget(t.Context(), process.Plan, "another", process.Dead, process.Now))
		}
		if c.next {
			p := planstest.Named(t, "def")
			err = errors.Join(err, process.Store.Create(t.Context(), p, journal.New(p)))
		}
		if err != nil {
			t.Fatal(err)
		}
		process.Orchestrated = c.orchestrated
		if err := process.leave(lease)(t.Context(), true); !errors.Is(err, dns.ErrOver) {
			t.Errorf("%s: %v, expected that the names are over", name, err)
		}
	}
}

// Names are removed by one process, with consent, for a request that still stands.
func TestNamesStayWhereTheyMustNotGo(t *testing.T) {
	overtaken := errors.New("it is not asked for any more")
	for name, c := range map[string]struct {
		change func(*Runner)
		is     func(error) bool
	}{
		"another process keeps them": {func(c *Runner) {
			if _, err := c.Store.Acquire(t.Context(), "another", c.Dead, c.Now); err != nil {
				t.Fatal(err)
			}
		}, func(err error) bool { return errors.As(err, new(records.ErrLeaseTaken)) }},
		"a namespace does not agree": {func(c *Runner) { c.Orchestrated = true }, func(err error) bool { return errors.As(err, new(access.ErrNotAgreed)) }},
		"nobody asks any more": {func(c *Runner) { c.Still = func(context.Context, *journal.Journal) error { return overtaken } }, func(err error) bool {
			return errors.Is(err, overtaken)
		}},
		"the process ends": {func(c *Runner) {
			stop := make(chan struct{})
			close(stop)
			c.Stop = stop
		}, func(err error) bool { return errors.Is(err, engine.ErrStopped) }},
		"the Lease is lost on the way": {func(c *Runner) {
			began := planstest.Noon()
			c.Now = func() time.Time { began = began.Add(records.LeaseSeconds * time.Second); return began }
		}, func(err error) bool { return errors.As(err, new(records.ErrLeaseLost)) }},
	} {
		process, at := bridged(t, interceptor.Funcs{})
		c.change(&process)
		err := process.RemoveNames(t.Context(), plans.Command{RemoveNames: true, Observed: &plans.Observed{Direction: plans.Finalize, Request: "7"}}, func(string) {})
		if j := process.recorded(t); !c.is(err) || !j.KeepNames || j.Observed.Request != "" {
			t.Errorf("%s: %v; %+v", name, err, j)
		}
		if there := left(t, at); len(there) != 4 {
			t.Errorf("%s: there are only %v", name, there)
		}
	}
}
