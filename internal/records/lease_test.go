package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestALeaseKeepsASecondProcessAway(t *testing.T) {
	synctest.Test(t, keepsAway) // Acquire watches an old Lease, so time must pass
}

func keepsAway(t *testing.T) {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	store := NewStore(c, "shop", "web")
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) func() time.Time { return func() time.Time { return noon.Add(d) } }
	alive, gone := func(string) bool { return false }, func(string) bool { return true }

	first, err := store.Acquire(t.Context(), "a/1", alive, at(0))
	if err != nil {
		t.Fatal(err)
	}
	var held ErrLeaseTaken
	if _, err := store.Acquire(t.Context(), "b/2", alive, at(14*time.Second)); !errors.As(err, &held) || held.Holder != "a/1" {
		t.Errorf("a second process got %v, expected to be told of a/1", err)
	}
	if _, err := store.Acquire(t.Context(), "b/2", gone, at(time.Second)); err != nil {
		t.Errorf("a holder that is certainly dead keeps others away: %v", err)
	}
	if err := first.Release(t.Context(), true); err != nil {
		t.Errorf("releasing a lost Lease: %v", err)
	}
	third, err := store.Acquire(t.Context(), "c/3", alive, at(17*time.Second))
	if err != nil {
		t.Fatalf("an expired Lease keeps others away: %v", err)
	}
	if err := third.Release(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	fourth, err := store.Acquire(t.Context(), "d/4", alive, at(18*time.Second))
	if err != nil {
		t.Fatalf("a released Lease keeps others away: %v", err)
	}
	if err := fourth.Release(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var lease coordinationv1.Lease
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stsmigrate-web"}, &lease); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Lease of an ended plan is still there: %v", err)
	}
}

// A process that slept for longer than a Lease lasts cannot tell whether it still holds the Lease.
// Another holder, or a deleted Lease, shows that it does not.
func TestALeaseIsLost(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	alive, gone := func(string) bool { return false }, func(string) bool { return true }
	for _, c := range []struct {
		name      string
		meanwhile func(*testing.T, *Store)
		slept     time.Duration
		current   bool // before it is renewed
		kept      bool
	}{
		{"it is renewed in time", nil, 5 * time.Second, true, true},
		{"nobody wanted it", nil, time.Hour, false, true},
		{"another has it", func(t *testing.T, s *Store) {
			t.Helper()
			if _, err := s.Acquire(t.Context(), "b/2", gone, func() time.Time { return noon.Add(time.Hour) }); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, false, false},
		{"it is gone", func(t *testing.T, s *Store) {
			t.Helper()
			if err := s.home.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web"}}); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, false, false},
	} {
		store := NewStore(fake.NewClientBuilder().Build(), "shop", "web")
		now := noon
		l, err := store.Acquire(t.Context(), "a/1", alive, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		if c.meanwhile != nil {
			c.meanwhile(t, store)
		}
		now = noon.Add(c.slept)
		if got := l.Current() == nil; got != c.current {
			t.Errorf("%s: current %t, expected %t", c.name, got, c.current)
		}
		if got := l.renew(t.Context()); got != c.kept {
			t.Errorf("%s: kept %t, expected %t", c.name, got, c.kept)
		}
		if err := l.Mine(t.Context()); (err == nil) != c.kept || err != nil && !errors.As(err, new(ErrLeaseLost)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := l.Current() == nil; got != c.kept {
			t.Errorf("%s: current %t after its renewal, expected %t", c.name, got, c.kept)
		}
	}
}

// A process that only keeps names writes the Lease every twenty seconds, and holds it for a minute: not
// before others know of that duration, and not for a second longer than they grant it.
func TestALeaseForNamesLastsLonger(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	alive := func(string) bool { return false }
	written := true
	home := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if !written {
				return apierrors.NewServiceUnavailable("the API server is away")
			}
			return c.Update(ctx, o, opts...)
		},
	})
	store, now := NewStore(home, "shop", "web"), noon
	l, err := store.Acquire(t.Context(), "a/1", alive, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	l.Stretch()
	for _, c := range []struct {
		written bool
		slept   time.Duration
		current bool
	}{
		{false, 14 * time.Second, true},
		{false, 15 * time.Second, false}, // no other process knows the longer duration yet
		{true, 59 * time.Second, true},
		{false, 59 * time.Second, true},
		{false, 60 * time.Second, false},
		{true, 60 * time.Second, false},
	} {
		written = c.written
		if !l.renew(t.Context()) {
			t.Fatal("it is lost")
		}
		began := l.renewed
		now = began.Add(c.slept)
		if got := l.Current() == nil; got != c.current {
			t.Errorf("%s after a renewal that succeeds %t: current %t, expected %t", c.slept, c.written, got, c.current)
		}
		var have coordinationv1.Lease
		if err := home.Get(t.Context(), l.key, &have); err != nil {
			t.Fatal(err)
		}
		if kept := LeaseLeft(&have, "b/2", alive, began, now) > 0; kept != c.current {
			t.Errorf("%s after a renewal that succeeds %t: others are kept away %t, and it is current %t", c.slept, c.written, kept, c.current)
		}
		now = began
	}
	if l.every() != 20*time.Second {
		t.Errorf("it is renewed every %s", l.every())
	}
}

// A process that may not renew its Lease keeps no names, and says why. The text is the same as long as the reason is:
// otherwise each attempt would be another event.
func TestALeaseThatCannotBeRenewedSaysWhy(t *testing.T) {
	now := planstest.Noon()
	home := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return apierrors.NewForbidden(coordinationv1.Resource("leases"), "stsmigrate-web", errors.New("no Role allows it"))
		},
	})
	l, err := NewStore(home, "shop", "web").Acquire(t.Context(), "a/1", func(string) bool { return false }, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for range 3 {
		now = now.Add(20 * time.Second)
		if !l.renew(t.Context()) {
			t.Fatal("it is lost")
		}
		err := l.Current()
		if !errors.As(err, new(ErrLeaseLost)) || !strings.Contains(err.Error(), "no Role allows it") {
			t.Errorf("%v", err)
		}
		told[fmt.Sprint(err)] = true
	}
	if len(told) != 1 {
		t.Errorf("it is told as %v", told)
	}
}

// A holder's clock decides nothing: a dead holder keeps no process away for longer than its Lease lasts,
// and a live one keeps its Lease.
func TestALeaseIsJudgedByWhatIsSeenOfIt(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		lives bool
	}{{time.Hour, false}, {time.Hour, true}, {-20 * time.Second, false}, {-20 * time.Second, true}, {-time.Hour, true}, {200 * 365 * 24 * time.Hour, false}} {
		ahead, lives := c.ahead, c.lives
		synctest.Test(t, func(t *testing.T) {
			store := NewStore(fake.NewClientBuilder().Build(), "shop", "web")
			alive := func(string) bool { return false }
			first, err := store.Acquire(t.Context(), "a/1", alive, func() time.Time { return bubbled().Add(ahead) })
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if lives {
				go first.Keep(ctx)
			}
			began := bubbled()
			_, err = store.Acquire(t.Context(), "b/2", alive, bubbled)
			if errors.As(err, new(ErrLeaseTaken)) != lives || time.Since(began) > 16*time.Second {
				t.Errorf("the holder is %s ahead and lives: %t; %v after %s", ahead, lives, err, time.Since(began))
			}
			cancel()
			var l coordinationv1.Lease
			if err := store.home.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "stsmigrate-web"}, &l); err != nil {
				t.Fatal(err)
			}
			renewed := metav1.NewMicroTime(bubbled().Add(ahead))
			l.Spec.RenewTime = &renewed
			seen := bubbled()
			for _, c := range []struct{ passed, want time.Duration }{{0, 15 * time.Second}, {10 * time.Second, 5 * time.Second}, {20 * time.Second, 0}} {
				if got := LeaseLeft(&l, "c/3", alive, seen, seen.Add(c.passed)); got != c.want {
					t.Errorf("%s later it keeps others away for %s, expected %s", c.passed, got, c.want)
				}
			}
		})
	}
}

// bubbled is the clock of a synctest bubble.
func bubbled() time.Time { return time.Now() } //nolint:forbidigo // it is the test's own

// A renewal after the release does not take the Lease again.
func TestALeaseThatWasGivenBackIsNotRenewed(t *testing.T) {
	store := NewStore(fake.NewClientBuilder().Build(), "shop", "web")
	l, err := store.Acquire(t.Context(), "a/1", func(string) bool { return false }, planstest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	l.renew(t.Context())
	if who, _, err := store.Holder(t.Context(), planstest.Noon); who != "" || err != nil {
		t.Errorf("%q has it, %v", who, err)
	}
}

// A process that has lost its Lease leaves it to its new holder, whether its plan has ended or not.
func TestALeaseOfAnotherProcessIsNotGivenBack(t *testing.T) {
	for _, ended := range []bool{false, true} {
		store := NewStore(fake.NewClientBuilder().Build(), "shop", "web")
		late, err := store.Acquire(t.Context(), "a/1", func(string) bool { return false }, planstest.Noon)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Acquire(t.Context(), "b/2", func(string) bool { return true }, planstest.Noon); err != nil {
			t.Fatal(err)
		}
		if err := late.Release(t.Context(), ended); err != nil {
			t.Error(err)
		}
		if who, _, err := store.Holder(t.Context(), planstest.Noon); who != "b/2" || err != nil {
			t.Errorf("ended %t: %q has it, %v, expected b/2", ended, who, err)
		}
	}
}

// A renewal counts from the time at which it was sent: when the answer is late, others may take the Lease
// earlier than its time of arrival suggests.
func TestARenewalCountsFromWhenItWasSent(t *testing.T) {
	now := planstest.Noon()
	home := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			err := c.Update(ctx, o, opts...)
			now = now.Add(10 * time.Second)
			return err
		},
	})
	l, err := NewStore(home, "shop", "web").Acquire(t.Context(), "a/1", func(string) bool { return false }, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if !l.renew(t.Context()) || l.Current() != nil {
		t.Fatal("it is lost")
	}
	now = now.Add(5 * time.Second)
	if l.Current() == nil {
		t.Error("it is current 15 seconds after its renewal was sent")
	}
}

// A command that only keeps names is no process that carries the plan out, and the next one that does says so again.
func TestALeaseSaysWhatItIsFor(t *testing.T) {
	store := NewStore(fake.NewClientBuilder().Build(), "shop", "web")
	alive := func(string) bool { return false }
	l, err := store.Acquire(t.Context(), "a/1", alive, planstest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	l.OnlyKeeps()
	l.renew(t.Context())
	if carries, names, err := store.Holder(t.Context(), planstest.Noon); carries != "" || names != "a/1" || err != nil {
		t.Errorf("%q carries it out, and %q keeps its names (%v), expected nobody and a/1", carries, names, err)
	}
	var taken ErrLeaseTaken
	if _, err := store.Acquire(t.Context(), "b/2", alive, planstest.Noon); !errors.As(err, &taken) || !strings.Contains(err.Error(), "the names of plan web are kept by a/1") || !strings.Contains(err.Error(), "Ctrl-C") {
		t.Errorf("another process gets %v", err)
	}
	if err := l.Release(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(t.Context(), "b/2", alive, planstest.Noon); err != nil {
		t.Fatal(err)
	}
	if carries, names, err := store.Holder(t.Context(), planstest.Noon); carries != "b/2" || names != "" || err != nil {
		t.Errorf("%q carries it out, and %q keeps its names (%v), expected b/2 and nobody", carries, names, err)
	}
}

// A plan is abandoned if nobody has its Lease. A Lease that has run out by this clock is watched first: its holder may only
// have another clock.
func TestAPlanIsAbandonedWhenItsLeaseIsNotRenewed(t *testing.T) {
	p := planstest.Named(t, "abc")
	for name, c := range map[string]struct {
		holder    string
		renews    bool
		dead      bool
		abandoned bool
		watched   bool
	}{
		"no Lease":                 {abandoned: true},
		"of one that is dead":      {holder: "a/1", dead: true, abandoned: true},
		"of one that says nothing": {holder: "a/1", abandoned: true, watched: true},
		"of one that lives":        {holder: "a/1", renews: true, watched: true},
	} {
		home := fake.NewClientBuilder().Build()
		store := NewStore(home, "mall", p.Name)
		var lease *Lease
		if c.holder != "" {
			var err error
			if lease, err = store.Acquire(t.Context(), c.holder, func(string) bool { return false }, planstest.Noon); err != nil {
				t.Fatal(err)
			}
		}
		watched := false
		after := func(d time.Duration) <-chan time.Time {
			if watched = true; d != LeaseSeconds*time.Second {
				t.Errorf("%s: watched for %s", name, d)
			}
			if c.renews {
				lease.renew(t.Context())
			}
			out := make(chan time.Time, 1)
			out <- time.Time{}
			return out
		}
		got, err := store.Abandoned(t.Context(), func(string) bool { return c.dead }, after)
		if err != nil || got != c.abandoned || watched != c.watched {
			t.Errorf("%s: %t, %v, watched %t", name, got, err, watched)
		}
	}
}

// A Lease says when the process that carried the plan out was last alive, whether it released the Lease or died. One that
// only kept the names has carried nothing out.
func TestALeaseSaysWhenThePlanWasLastCarriedOut(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(t *testing.T, l *Lease)
		want bool
	}{
		"released":                        {func(t *testing.T, l *Lease) { t.Helper(); released(t, l) }, true},
		"dead":                            {func(*testing.T, *Lease) {}, true},
		"kept names":                      {func(t *testing.T, l *Lease) { t.Helper(); l.OnlyKeeps(); l.renew(t.Context()); released(t, l) }, false},
		"an orchestrator that kept names": {func(t *testing.T, l *Lease) { t.Helper(); l.Stretch(); l.renew(t.Context()) }, false},
	} {
		now := time.Unix(1000, 0).UTC()
		clock := func() time.Time { return now }
		s := NewStore(fake.NewClientBuilder().Build(), "shop", "web")
		gone := func(string) bool { return true }
		first, err := s.Acquire(t.Context(), "laptop/1", gone, clock)
		if err != nil || !first.Before().IsZero() {
			t.Fatalf("%s: %v, %+v", name, err, first)
		}
		now = now.Add(7 * time.Second)
		was := now
		first.renew(t.Context())
		c.end(t, first)
		now = now.Add(time.Hour)
		next, err := s.Acquire(t.Context(), "laptop/2", gone, clock)
		if err != nil {
			t.Fatal(err)
		}
		if got := next.Before(); c.want && !got.Equal(was) || !c.want && !got.IsZero() {
			t.Errorf("%s: %s, expected %s: %t", name, got, was, c.want)
		}
	}
}

func released(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Release(t.Context(), false); err != nil {
		t.Fatal(err)
	}
}
