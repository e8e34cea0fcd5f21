package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A process that keeps the names of a plan for weeks seldom writes its Lease. A request of the user ends that,
// and then no process waits for the Lease.
func TestNamesAreKeptUnderALongLease(t *testing.T) {
	for orchestrated, want := range map[bool]int32{true: records.KeepSeconds, false: records.LeaseSeconds} {
		synctest.Test(t, func(t *testing.T) {
			clock := time.Now //nolint:forbidigo // that of the bubble
			p := planstest.Named(t, "abc")
			on := clusters.Clusters{}
			for _, n := range access.Parties(p) {
				on[n.Side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(n.Agree(p, clock().Add(time.Hour), nil)).Build()
			}
			home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
			store, stop, over := records.NewStore(home, "stsmigrate", p.Name), make(chan struct{}), make(chan error)
			c := Runner{Plan: p, Store: store, On: on, Orchestrated: orchestrated, Holder: "me", Dead: func(string) bool { return false }, Now: clock, Stop: stop, Complain: func(error) {}}
			go func() { over <- c.Keep(t.Context(), true) }()
			<-time.After(time.Minute) // of the bubble
			var have coordinationv1.Lease
			if err := home.Get(t.Context(), client.ObjectKey{Namespace: "stsmigrate", Name: records.LeaseName(p.Name)}, &have); err != nil || *have.Spec.LeaseDurationSeconds != want {
				t.Errorf("orchestrated %t: %+v, %v; expected %d seconds", orchestrated, have.Spec, err, want)
			}
			close(stop)
			if err := <-over; err != nil {
				t.Error(err)
			}
			began := clock()
			if _, err := store.Acquire(t.Context(), "another", c.Dead, c.Now); err != nil && !apierrors.IsNotFound(err) || clock().After(began) {
				t.Errorf("orchestrated %t: another process waits %s: %v", orchestrated, clock().Sub(began), err)
			}
		})
	}
}

// A plan is checked under its Lease, so that one process does it, and before the plan begins.
func TestAPlanIsCheckedUnderItsLease(t *testing.T) {
	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	alive := func(string) bool { return false }
	broken := errors.New("connection refused")
	for name, c := range map[string]struct {
		reason string
		err    error
	}{
		"a check fails":  {reason: "web-1 is not ready"},
		"nobody answers": {err: broken},
	} {
		p := planstest.Named(t, "abc")
		home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
		store := records.NewStore(home, "stsmigrate", p.Name)
		if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
			t.Fatal(err)
		}
		asked := 0
		process := Runner{
			Plan: p, Store: store, Holder: "me", Dead: alive, Now: clock,
			Ready: func(ctx context.Context) (*Barred, error) {
				asked++
				if _, err := store.Acquire(ctx, "another", alive, clock); !errors.As(err, new(records.ErrLeaseTaken)) {
					t.Errorf("%s: another process can have it meanwhile: %v", name, err)
				}
				if c.reason == "" {
					return nil, c.err
				}
				return &Barred{ID: reasons.ChecksFailed, Why: c.reason}, c.err
			},
		}
		got, _, err := process.Run(t.Context(), plans.Command{Direction: plans.Move})
		if !errors.Is(err, c.err) || (got.Kind == engine.Blocked) != (c.err == nil) || got.Reason != c.reason {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		j, _, err := store.Journal(t.Context(), p)
		if err != nil || j.Blocked != c.reason || j.Epoch != 0 || asked != 1 {
			t.Errorf("%s: asked %d times; %+v, %v", name, asked, j, err)
		}
		if holder, _, err := store.Holder(t.Context(), clock); holder != "" || err != nil {
			t.Errorf("%s: the Lease is kept by %q: %v", name, holder, err)
		}
	}
}

// A process that has waited for the Lease finds that the plan has ended meanwhile. No process comes after it, so that it
// leaves no Lease behind (S15).
func TestNoLeaseIsLeftOfAPlanThatAnotherProcessHasEnded(t *testing.T) {
	clock := func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	p := planstest.Named(t, "abc")
	home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	store := records.NewStore(home, "stsmigrate", p.Name)
	if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	err := store.Change(t.Context(), p, func(j *journal.Journal) error {
		j.StartLeg(p, plans.Abort)
		j.Outcome = plans.Aborted
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Runner{
		Plan: p, Store: store, On: clusters.Clusters{plans.Source: home, plans.Destination: home}, Holder: "late",
		Dead: func(string) bool { return false }, Now: clock, Complain: func(err error) { t.Log(err) },
		Report: func(_ *engine.Engine, p engine.Progress, err error) { t.Errorf("it goes on: %+v, %v", p, err) },
	}
	if _, _, err := c.Run(t.Context(), plans.Command{Direction: plans.Move}); err == nil {
		t.Error("a plan that has ended was taken over")
	}
	var left coordinationv1.Lease
	if err := home.Get(t.Context(), client.ObjectKey{Namespace: "stsmigrate", Name: records.LeaseName(p.Name)}, &left); !apierrors.IsNotFound(err) {
		t.Errorf("a Lease is left: %+v, %v", left.Spec, err)
	}
}

// Without its Lease a process keeps no names, and a wave would wait for them for ever. So it ends when its Lease is deleted
// or taken, and the next one begins at once, or when the other process has gone. Whether a process learns from the Lease
// or from the journal that another one has taken the plan over, it says the same.
func TestARunEndsWithItsLease(t *testing.T) {
	type end struct {
		p   engine.Progress
		err error
	}
	for name, c := range map[string]struct {
		loses func(context.Context, client.Client, *coordinationv1.Lease) error
		ends  func(end) bool
	}{
		"deleted": {
			func(ctx context.Context, home client.Client, l *coordinationv1.Lease) error {
				return home.Delete(ctx, l)
			},
			func(e end) bool { return errors.As(e.err, new(records.ErrLeaseLost)) },
		},
		"taken": {
			func(ctx context.Context, home client.Client, l *coordinationv1.Lease) error {
				l.Spec.HolderIdentity = new("another")
				return home.Update(ctx, l)
			},
			func(e end) bool {
				return e.err == nil && e.p.Kind == engine.Blocked && e.p.Overtaken && e.p.ID == reasons.TakenOver && strings.Contains(e.p.Reason, "another process has taken plan web over")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := time.Now //nolint:forbidigo // that of the bubble
				p := planstest.Named(t, "abc")
				var taken atomic.Bool // the plan, which this process carries out from then on
				home := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						err := under.Get(ctx, key, o, options...)
						if cm, is := o.(*corev1.ConfigMap); is && strings.Contains(fmt.Sprint(cm.Data), `"epoch":1`) {
							taken.Store(true)
						}
						return err
					},
				}).Build()
				silent := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
					Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
						if taken.Load() {
							return errors.New("connection refused")
						}
						return under.Get(ctx, key, o, options...)
					},
				}).Build()
				store, over := records.NewStore(home, "stsmigrate", p.Name), make(chan end, 1)
				if err := store.Create(t.Context(), p, journal.New(p)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					p, _, err := Runner{
						Plan: p, Store: store, On: clusters.Clusters{plans.Source: silent, plans.Destination: silent}, Holder: "me", Dead: func(string) bool { return false }, Now: clock, Stop: make(chan struct{}),
						Pace: Pace{StepTimeout: time.Hour}, Complain: func(error) {}, Report: func(*engine.Engine, engine.Progress, error) {},
					}.Run(ctx, plans.Command{Direction: plans.Move})
					over <- end{p, err}
				}()
				<-time.After(time.Minute + time.Millisecond) // between two renewals
				synctest.Wait()
				var have coordinationv1.Lease
				if err := home.Get(ctx, client.ObjectKey{Namespace: "stsmigrate", Name: records.LeaseName(p.Name)}, &have); err != nil {
					t.Fatal(err)
				}
				if err := c.loses(ctx, home, &have); err != nil {
					t.Fatal(err)
				}
				select {
				case how := <-over:
					if !c.ends(how) {
						t.Errorf("the run ends with %+v", how)
					}
				case <-time.After(records.LeaseSeconds * time.Second):
					t.Error("the run goes on")
				}
			})
		})
	}
}

// Whatever plan and journal state, an orchestrator writes nothing to a namespace that does not consent: on no
// direction, at no stage, not for a plan that claims to be carried out by commands, and not for its names.
func TestNothingIsWrittenWithoutConsent(t *testing.T) {
	for name, change := range map[string]func(*journal.Journal){
		"nothing was begun":              func(*journal.Journal) {},
		"it says that it was begun":      func(j *journal.Journal) { j.Epoch = 1 },
		"it says that a command does it": func(j *journal.Journal) { j.Epoch, j.Detached = 1, false },
		"it says that it is aborted":     func(j *journal.Journal) { j.Epoch = 3; j.StartLeg(planstest.Named(t, "abc"), plans.Abort) },
		"it says that it has arrived":    func(j *journal.Journal) { j.Epoch, j.Outcome = 3, plans.Moved },
		"it says that it is being cleaned": func(j *journal.Journal) {
			j.Epoch, j.Outcome = 3, plans.Moved
			j.StartLeg(planstest.Named(t, "abc"), plans.Finalize)
		},
	} {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort, plans.Finalize} {
			t.Run(fmt.Sprintf("%s, %s", name, direction), func(t *testing.T) {
				process, writes := unagreed(t, change)
				got, _, err := process.Run(t.Context(), plans.Command{Direction: direction})
				if err != nil || got.Kind != engine.Blocked || !strings.Contains(got.Reason, "stsmigrate consent") || *writes > 0 {
					t.Errorf("%+v, %v; %d writes", got, err, *writes)
				}
				if j, _, err := process.Store.Journal(t.Context(), process.Plan); err != nil || j.Blocked != got.Reason {
					t.Errorf("%+v, %v", j, err)
				}
				if err := process.Keep(t.Context(), false); !errors.As(err, new(access.ErrNotAgreed)) || *writes > 0 {
					t.Errorf("keeping the names: %v; %d writes", err, *writes)
				}
			})
		}
	}
}

// unagreed returns a Runner for clusters that consent to nothing, and the counter of its writes there.
func unagreed(t *testing.T, change func(*journal.Journal)) (Runner, *int) {
	t.Helper()
	p := planstest.Named(t, "abc")
	j := journal.New(p)
	j.Detached = true
	change(j)
	store := records.NewStore(fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), "stsmigrate", p.Name)
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	written := 0
	on := clusters.Clusters{}
	for _, side := range plans.Sides() {
		on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				written++
				return nil
			},
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				written++
				return nil
			},
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				written++
				return nil
			},
		}).Build()
	}
	stop := make(chan struct{})
	close(stop) // it would end before its first write, if it got so far
	return Runner{
		Stop: stop, Plan: p, Store: store, On: on, Orchestrated: true, Holder: "me", Dead: func(string) bool { return false }, Now: planstest.Noon,
		Ready:  func(context.Context) (*Barred, error) { t.Error("it is checked without consent"); return nil, nil },
		Report: func(*engine.Engine, engine.Progress, error) {}, Complain: func(error) {},
	}, &written
}

// inFlight lets a plan stop with a wave in flight.
func inFlight(p *plans.Plan, j *journal.Journal) {
	s, _, _ := j.Next(p)
	for ; s.Op != plans.Vacate; s, _, _ = j.Next(p) {
		j.Done, j.Begun = s.Seq, s.Seq
	}
	j.Begun, j.Flight = s.Seq, &plans.Flight{Ordinals: s.Ordinals, From: plans.Source}
}

// A command that keeps the names of a plan at rest carries nothing out: the state and what comes next are as they would
// be without it, and a command that goes on is told to end it first.
func TestToKeepNamesCarriesNothingOut(t *testing.T) {
	for name, change := range map[string]func(*plans.Plan, *journal.Journal){
		"stopped with a wave in flight": inFlight,
		"blocked":                       func(_ *plans.Plan, j *journal.Journal) { j.Blocked = "volume a is in use" },
		"paused":                        func(_ *plans.Plan, j *journal.Journal) { j.Paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := time.Now //nolint:forbidigo // the clock of the bubble
				p, on := planstest.Named(t, "abc"), clusters.Clusters{}
				for _, side := range plans.Sides() {
					on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
				}
				store := records.NewStore(fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(), "stsmigrate", p.Name)
				c := Runner{Plan: p, Store: store, On: on, Holder: "host/names", Dead: func(string) bool { return false }, Now: clock, Complain: func(error) {}}
				j := journal.New(p)
				j.Epoch = 1
				change(p, j)
				if err := store.Create(t.Context(), p, j); err != nil {
					t.Fatal(err)
				}
				status := func() *engine.View {
					v, err := engine.Status(t.Context(), c.Plan, c.Store, c.On, nil, clock, func(verb string) string { return verb })
					if err != nil {
						t.Fatal(err)
					}
					return v
				}
				before := status()
				stop, over := make(chan struct{}), make(chan error)
				c.Stop = stop
				go func() { over <- c.Keep(t.Context(), false) }()
				<-time.After(time.Minute)
				v := status()
				if v.State != before.State || v.Next != before.Next || v.Next == "" || v.Holder != "" || v.Keeper != c.Holder || !strings.Contains(v.Names, c.Holder) {
					t.Errorf("it is %s, next %q, holder %q, keeper %q, names %q; without it %s, next %q", v.State, v.Next, v.Holder, v.Keeper, v.Names, before.State, before.Next)
				}
				goes := c
				goes.Holder, goes.Before = "host/apply", func(*journal.Journal) error { t.Error("the journal is changed without the Lease"); return nil }
				_, _, err := goes.Run(t.Context(), plans.Command{Direction: plans.Move})
				if held := (records.ErrLeaseTaken{}); !errors.As(err, &held) || !held.Keeps {
					t.Errorf("a command that goes on gets %v", err)
				}
				close(stop)
				if err := <-over; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An API server that has just started knows no Roles yet, and refuses to show the consent. That is no answer of the
// namespace: nothing is written, and the plan is not blocked.
func TestARefusalToShowTheConsentIsNoRefusalOfConsent(t *testing.T) {
	process, written := unagreed(t, func(j *journal.Journal) { j.Epoch = 1 })
	for side, c := range process.On {
		process.On[side] = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, is := o.(*corev1.ConfigMap); is {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New(`RBAC: role.rbac.authorization.k8s.io "stsmigrate" not found`))
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
	}
	got, _, err := process.Run(t.Context(), plans.Command{Direction: plans.Move})
	j, _, unread := process.Store.Journal(t.Context(), process.Plan)
	if got.Kind == engine.Blocked || err == nil || reasons.Of(err) != reasons.NoConsent || answers.Of(err) != answers.Passing || *written > 0 || unread != nil || j.Blocked != "" {
		t.Errorf("%+v, %v, %d writes; journal: %v, blocked: %q", got, err, *written, unread, j.Blocked)
	}
}
