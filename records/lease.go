package records

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/writes"
)

// LeaseSeconds is how long a Lease that is no longer renewed keeps others away, and keepSeconds that of a plan that only
// has its names kept: there are many of those, for weeks, and each renewal is a write.
const (
	LeaseSeconds = 15
	KeepSeconds  = 4 * LeaseSeconds
)

// Lease keeps a second process of the same plan away while the first one
// lives. For the engine it is politeness, not safety: safety is the epoch (design rule 8). What
// has no epoch, a Keeper of names, writes only while Current says so.
type Lease struct {
	home   client.Client
	key    client.ObjectKey
	plan   string
	holder string
	now    func() time.Time
	// have is the Lease as it was last written.
	have *coordinationv1.Lease
	// lost is closed when it is certain that another process has it, or that it is gone.
	lost chan struct{}
	// seconds is for how long the next renewal asks.
	seconds int32
	lock    sync.Mutex
	// renewed is when the last renewal that went well was sent, and good for how long that keeps others away.
	renewed time.Time
	good    time.Duration
	// writing is held by whoever writes the Lease, and over says that it was given back: a renewal that comes too late
	// would keep others away for a process that works no more.
	writing sync.Mutex
	over    bool
}

// ErrLeaseTaken says that another process works on the plan.
type ErrLeaseTaken struct {
	Plan, Holder string
	Renewed      time.Time
	Lasts        time.Duration
}

func (e ErrLeaseTaken) Error() string {
	return fmt.Sprintf("plan %s is being carried out by %s (seen alive at %s); watch it with `stsmigrate status %s -w`, or, if that process is dead, try again %d seconds after its last sign of life",
		e.Plan, e.Holder, e.Renewed.UTC().Format("15:04:05 MST"), e.Plan, int(e.Lasts.Seconds()))
}

// ErrLeaseLost says that this process does not have the Lease of a plan any more, or cannot tell.
type ErrLeaseLost struct{ Plan, Why string }

func (e ErrLeaseLost) Error() string {
	return fmt.Sprintf("the Lease of plan %s %s; this process keeps its names no longer", e.Plan, e.Why)
}

// Acquire takes the Lease of a plan, or answers ErrHeld. dead says of a holder
// whether it is certainly gone, so that nobody waits for a process of the same
// machine that was killed. A Lease is ours alone, and is written whole.
//
// No two clocks are compared to take a Lease away: one whose last renewal looks old, or is yet to come, is watched for as
// long as it lasts, and is expired if it is not renewed meanwhile. One that looks fresh keeps this process away at once.
func (s *Store) Acquire(ctx context.Context, holder string, dead func(holder string) bool, now func() time.Time) (*Lease, error) {
	l := &Lease{home: s.home, key: client.ObjectKey(s.planMap()), plan: s.name.Name, holder: holder, now: now, lost: make(chan struct{}), seconds: LeaseSeconds}
	watched, n := "", new(Attempts)
	for {
		var have coordinationv1.Lease
		err := s.home.Get(ctx, l.key, &have)
		at := now()
		switch {
		case apierrors.IsNotFound(err):
			have.ObjectMeta = s.leaseMeta(ctx)
			err = s.home.Create(ctx, l.sign(&have))
		case err == nil && l.others(&have) && !dead(*have.Spec.HolderIdentity) && have.ResourceVersion != watched:
			if watched != "" || l.fresh(&have) {
				return nil, ErrLeaseTaken{Plan: s.name.Name, Holder: *have.Spec.HolderIdentity, Renewed: have.Spec.RenewTime.Time, Lasts: lasts(&have)}
			}
			watched = have.ResourceVersion
			if err := sleep(ctx, lasts(&have)); err != nil {
				return nil, err
			}
			continue
		case err == nil:
			err = s.home.Update(ctx, l.sign(&have))
		}
		if (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) && n.Again(ctx) {
			continue // somebody was faster; see who
		}
		if err != nil {
			return nil, fmt.Errorf("taking the Lease of plan %s: %w", s.name, err)
		}
		l.have = &have
		l.renewedAt(at)
		return l, nil
	}
}

// leaseMeta lets a Lease go with its plan: who dies at its very end leaves it.
func (s *Store) leaseMeta(ctx context.Context) metav1.ObjectMeta {
	meta := s.meta(s.planMap())
	if uid, err := s.UID(ctx); err == nil {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: meta.Name, UID: uid}}
	}
	return meta
}

// clockSkew is by how much the clocks of two processes may differ without being told of.
const clockSkew = time.Second

// LeaseName is the name of a plan's Lease.
func LeaseName(plan string) string {
	return (&Store{name: types.NamespacedName{Name: plan}}).planMap().Name
}

// LeaseSightings are when Leases were first seen as they are, by their names.
type LeaseSightings map[string]leaseSighting

type leaseSighting struct {
	version string
	at      time.Time
}

// Since returns when a Lease was first seen as it is, which is now for one that was not seen before.
func (s LeaseSightings) Since(l *coordinationv1.Lease, now func() time.Time) time.Time {
	if s[l.Name].version != l.ResourceVersion {
		s[l.Name] = leaseSighting{l.ResourceVersion, now()}
	}
	return s[l.Name].at
}

// LeaseLeft returns for how long a Lease keeps others than its holder away, 0 for not at all. since is when
// whoever asks has first seen it as it is: only that is compared, since the holder's clock may be ahead or behind.
func LeaseLeft(have *coordinationv1.Lease, me string, dead func(holder string) bool, since, now time.Time) time.Duration {
	if l := (&Lease{holder: me}); !l.others(have) || dead(*have.Spec.HolderIdentity) {
		return 0
	}
	return max(lasts(have)-Elapsed(since, now), 0)
}

// others reports whether another process has the Lease, or had it when it died.
func (l *Lease) others(have *coordinationv1.Lease) bool {
	s := have.Spec
	return s.HolderIdentity != nil && *s.HolderIdentity != "" && *s.HolderIdentity != l.holder && s.RenewTime != nil
}

// fresh reports whether a Lease looks as if it was renewed lately. Clocks may differ, so nothing is taken away by it.
func (l *Lease) fresh(have *coordinationv1.Lease) bool {
	age := l.now().Sub(have.Spec.RenewTime.Time)
	return age > -clockSkew && age < lasts(have)
}

// lasts is how long a Lease that is no longer renewed keeps others away: as its holder says, within reason.
func lasts(have *coordinationv1.Lease) time.Duration {
	if s := have.Spec.LeaseDurationSeconds; s != nil && *s > 0 && *s <= KeepSeconds {
		return time.Duration(*s) * time.Second
	}
	return LeaseSeconds * time.Second
}

func (l *Lease) sign(lease *coordinationv1.Lease) *coordinationv1.Lease {
	seconds, now := l.seconds, metav1.NewMicroTime(l.now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &l.holder, &seconds, &now
	return lease
}

// Stretch lets the Lease last for keepSeconds from its next renewal on, for who only keeps names.
func (l *Lease) Stretch() { l.seconds = KeepSeconds }

// every is how often the Lease is renewed.
func (l *Lease) every() time.Duration { return time.Duration(l.seconds) * time.Second / 3 }

// Keep renews the Lease until ctx ends or it is lost. A failure to renew is not an error: at
// worst another process takes over, which is safe.
func (l *Lease) Keep(ctx context.Context) {
	tick := time.NewTicker(l.every())
	defer tick.Stop()
	for stretched := l.seconds > LeaseSeconds; ; stretched = false {
		if stretched && !l.renew(ctx) { // at once: what others know of is over before the first tick
			close(l.lost)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !l.renew(ctx) {
				close(l.lost)
				return
			}
		}
	}
}

// renew writes the Lease as it was last written, which costs one request; only when somebody
// else has written it meanwhile is it read. It is false when the Lease is certainly lost.
func (l *Lease) renew(ctx context.Context) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.over {
		return true
	}
	at, next := l.now(), l.sign(l.have.DeepCopy())
	err := l.home.Update(ctx, next)
	if apierrors.IsConflict(err) {
		if err = l.home.Get(ctx, l.key, next); err == nil {
			if l.others(next) {
				return false
			}
			at = l.now()
			err = l.home.Update(ctx, l.sign(next))
		}
	}
	if err == nil {
		l.have = next
		l.renewedAt(at)
	}
	return !apierrors.IsNotFound(err)
}

func (l *Lease) renewedAt(at time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.renewed, l.good = at, lasts(l.have)
}

// Lost is closed when the Lease is certainly not this process's any more.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Current returns nil while nobody else can have taken the Lease, as far as this process can tell by
// itself: it was renewed in time.
func (l *Lease) Current() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if age := Elapsed(l.renewed, l.now()); age >= l.good {
		return ErrLeaseLost{l.plan, fmt.Sprintf("was last renewed %s ago", age.Round(time.Second))}
	}
	return nil
}

// Mine returns nil if the Lease, read live, is this process's.
func (l *Lease) Mine(ctx context.Context) error {
	var have coordinationv1.Lease
	err := l.home.Get(ctx, l.key, &have)
	switch {
	case apierrors.IsNotFound(err):
		return ErrLeaseLost{l.plan, "is gone"}
	case err != nil:
		return fmt.Errorf("reading the Lease of plan %s: %w", l.plan, err)
	case have.Spec.HolderIdentity == nil || *have.Spec.HolderIdentity != l.holder:
		return ErrLeaseLost{l.plan, "was taken by another process"}
	}
	return nil
}

// Elapsed is how long ago a time was, by the clock that says more: that of the process stands while
// the machine sleeps, and that of the wall may be set back.
func Elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

// Release gives the Lease back. With ended it is deleted, since nobody will
// need it again (S15).
func (l *Lease) Release(ctx context.Context, ended bool) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.over = true
	var have coordinationv1.Lease
	if err := l.home.Get(ctx, l.key, &have); err != nil || l.others(&have) {
		return client.IgnoreNotFound(err)
	}
	if ended {
		return client.IgnoreNotFound(writes.Delete(ctx, l.home, &have))
	}
	have.Spec.HolderIdentity, have.Spec.RenewTime = nil, nil
	return l.home.Update(ctx, &have)
}

// Holder tells who works on the plan, and "" when nobody does, as far as two clocks can tell. It is for people; who takes
// over goes by Acquire.
func (s *Store) Holder(ctx context.Context, now func() time.Time) (string, error) {
	var have coordinationv1.Lease
	if err := s.home.Get(ctx, client.ObjectKey(s.planMap()), &have); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if l := (&Lease{now: now}); l.others(&have) && l.now().Sub(have.Spec.RenewTime.Time) < lasts(&have) {
		return *have.Spec.HolderIdentity, nil
	}
	return "", nil
}
