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

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
)

// LeaseSeconds is how long a Lease that is no longer renewed keeps other processes away. KeepSeconds is
// the same for a plan that only has its names kept: there are many of these, for weeks, and each renewal
// is a write.
const (
	LeaseSeconds = 15
	KeepSeconds  = 4 * LeaseSeconds
)

// Lease keeps a second process away from a plan while the first one lives. For the engine it only saves
// a conflict: safety comes from the epoch (design rule 8). A Keeper of names has no epoch, and therefore
// writes only while Current returns nil.
type Lease struct {
	home   client.Client
	key    client.ObjectKey
	plan   string
	holder string
	now    func() time.Time
	// have is the Lease as it was last written.
	have *coordinationv1.Lease
	// lost is closed when it is certain that another process holds the Lease, or that it is deleted.
	lost chan struct{}
	// seconds is the duration that the next renewal requests. keeps reports that it says that the plan rests.
	seconds int32
	keeps   bool
	lock    sync.Mutex
	// renewed is when the last successful renewal was sent, and good how long that keeps others away. failed is the
	// error of the last renewal.
	renewed time.Time
	good    time.Duration
	failed  error
	// before is the last renewal by the process that carried the plan out before; zero if it is not known.
	before time.Time
	// writing is locked while the Lease is written. over reports that the Lease was released: a later
	// renewal would keep others away on behalf of a process that does no more work.
	writing sync.Mutex
	over    bool
}

// keepsAnnotation marks the Lease of a command that carries nothing out: it keeps the names of a plan at rest.
const keepsAnnotation = "stsmigrate.dev/keeps-names"

// ErrLeaseTaken reports that another process works on the plan, or only keeps its names.
type ErrLeaseTaken struct {
	Plan, Holder string
	Keeps        bool
	Renewed      time.Time
	Lasts        time.Duration
}

func (e ErrLeaseTaken) Error() string {
	does, end := fmt.Sprintf("plan %s is being carried out by %s", e.Plan, e.Holder), "wait for it"
	if e.Keeps {
		does, end = fmt.Sprintf("the names of plan %s are kept by %s", e.Plan, e.Holder), "end that command with Ctrl-C first"
	}
	return fmt.Sprintf("%s (seen alive at %s); %s, or, if that process is dead, try again %d seconds after its last sign of life", does, e.Renewed.UTC().Format("15:04:05 MST"), end, int(e.Lasts.Seconds()))
}

// ReasonID implements reasons.Reasoned.
func (e ErrLeaseTaken) ReasonID() reasons.ID { return reasons.CarriedOutElsewhere }

// ErrLeaseLost reports that this process no longer holds the Lease of a plan, or cannot know.
type ErrLeaseLost struct {
	Plan, Why string
	Taken     bool // by another process
}

func (e ErrLeaseLost) Error() string {
	return fmt.Sprintf("the Lease of plan %s %s", e.Plan, e.Why)
}

// Acquire takes the Lease of a plan, or returns ErrLeaseTaken. dead reports whether a holder is certainly
// gone, so that no caller waits for a killed process of the same machine. No other program writes the
// Lease, so it is written as a whole.
//
// Acquire compares no two clocks to take a Lease from its holder. If the last renewal looks old, or lies
// in the future, Acquire watches the Lease for as long as it lasts, and takes it if it is not renewed
// meanwhile. A Lease that looks fresh fails at once with ErrLeaseTaken.
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
				return nil, ErrLeaseTaken{Plan: s.name.Name, Holder: *have.Spec.HolderIdentity, Keeps: keeps(&have), Renewed: have.Spec.RenewTime.Time, Lasts: lasts(&have)}
			}
			watched = have.ResourceVersion
			if err := sleep(ctx, lasts(&have)); err != nil {
				return nil, err
			}
			continue
		case err == nil:
			l.before = carriedUntil(&have)
			err = s.home.Update(ctx, l.sign(&have))
		}
		if (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) && n.Again(ctx) {
			continue // another process was faster: read again
		}
		if err != nil {
			return nil, fmt.Errorf("taking the Lease of plan %s: %w", s.name, err)
		}
		l.have = &have
		l.renewedAt(at)
		return l, nil
	}
}

// carriedUntil returns the last sign of the process that carried the plan out; zero if only its names were kept since.
func carriedUntil(have *coordinationv1.Lease) (at time.Time) {
	if r := have.Spec.RenewTime; r != nil && !keeps(have) && lasts(have) <= LeaseSeconds*time.Second {
		at = r.Time
	}
	return at
}

// Before returns the last sign of life of the process that carried the plan out before this one took the Lease; zero if it
// is not known. It is reported, and decides nothing: it is by another clock.
func (l *Lease) Before() time.Time { return l.before }

// leaseMeta makes the plan the owner of its Lease: a process that dies at the very end leaves the Lease
// behind.
func (s *Store) leaseMeta(ctx context.Context) metav1.ObjectMeta {
	meta := s.meta(s.planMap())
	if uid, err := s.UID(ctx); err == nil {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: meta.Name, UID: uid}}
	}
	return meta
}

// clockSkew is the difference between the clocks of two processes that is tolerated.
const clockSkew = time.Second

// LeaseName returns the name of a plan's Lease.
func LeaseName(plan string) string {
	return (&Store{name: types.NamespacedName{Name: plan}}).planMap().Name
}

// LeaseSightings record, by name, when each Lease was first observed in its present version.
type LeaseSightings map[string]leaseSighting

type leaseSighting struct {
	version string
	at      time.Time
}

// Since returns when a Lease was first observed in its present version; now if it was not observed
// before.
func (s LeaseSightings) Since(l *coordinationv1.Lease, now func() time.Time) time.Time {
	if s[l.Name].version != l.ResourceVersion {
		s[l.Name] = leaseSighting{l.ResourceVersion, now()}
	}
	return s[l.Name].at
}

// Holder returns which process holds a Lease, or "" if none does, and how long the Lease keeps others away unless it
// is renewed. Both follow from what was seen of the Lease, as in LeaseLeft.
func (s LeaseSightings) Holder(l *coordinationv1.Lease, dead func(holder string) bool, now func() time.Time) (string, time.Duration) {
	left := LeaseLeft(l, "", dead, s.Since(l, now), now())
	if left == 0 {
		return "", 0
	}
	return *l.Spec.HolderIdentity, left
}

// LeaseLeft returns how long a Lease still keeps processes other than its holder away; 0 means not at
// all. since is when the caller first observed the present version. Only that time is compared, since
// the holder's clock may be ahead or behind.
func LeaseLeft(have *coordinationv1.Lease, me string, dead func(holder string) bool, since, now time.Time) time.Duration {
	if l := (&Lease{holder: me}); !l.others(have) || dead(*have.Spec.HolderIdentity) {
		return 0
	}
	return max(lasts(have)-clusters.Elapsed(since, now), 0)
}

// others reports whether another process holds the Lease, or held it when it died.
func (l *Lease) others(have *coordinationv1.Lease) bool {
	s := have.Spec
	return s.HolderIdentity != nil && *s.HolderIdentity != "" && *s.HolderIdentity != l.holder && s.RenewTime != nil
}

// fresh reports whether a Lease looks recently renewed. Clocks may differ, so no Lease is taken because
// of it.
func (l *Lease) fresh(have *coordinationv1.Lease) bool {
	age := l.now().Sub(have.Spec.RenewTime.Time)
	return age > -clockSkew && age < lasts(have)
}

// lasts returns how long a Lease that is no longer renewed keeps others away: the duration that its
// holder wrote, or LeaseSeconds if that is missing or above KeepSeconds.
func lasts(have *coordinationv1.Lease) time.Duration {
	if s := have.Spec.LeaseDurationSeconds; s != nil && *s > 0 && *s <= KeepSeconds {
		return time.Duration(*s) * time.Second
	}
	return LeaseSeconds * time.Second
}

func (l *Lease) sign(lease *coordinationv1.Lease) *coordinationv1.Lease {
	seconds, now := l.seconds, metav1.NewMicroTime(l.now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &l.holder, &seconds, &now
	delete(lease.Annotations, keepsAnnotation)
	if l.keeps {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, keepsAnnotation, "true")
	}
	return lease
}

// keeps reports whether the holder of a Lease carries nothing out.
func keeps(have *coordinationv1.Lease) bool { return have.Annotations[keepsAnnotation] != "" }

// OnlyKeeps makes the Lease say from its next renewal on that its holder carries nothing out: the plan needs a command
// to go on.
func (l *Lease) OnlyKeeps() { l.keeps = true }

// Stretch makes the Lease last KeepSeconds from its next renewal on, for a process that only keeps
// names.
func (l *Lease) Stretch() { l.seconds = KeepSeconds }

// every returns the interval between renewals of the Lease.
func (l *Lease) every() time.Duration { return time.Duration(l.seconds) * time.Second / 3 }

// Keep renews the Lease until ctx ends or the Lease is lost. A failed renewal is not an error: at worst
// another process takes over, which is safe.
func (l *Lease) Keep(ctx context.Context) {
	tick := time.NewTicker(l.every())
	defer tick.Stop()
	for anew := l.keeps || l.seconds > LeaseSeconds; ; anew = false {
		if anew && !l.renew(ctx) { // at once: the duration that others know ends before the first tick
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

// renew writes the Lease as it was last written, which costs one request. It reads the Lease only after
// a conflict with another writer. It returns false when the Lease is certainly lost.
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
	l.lock.Lock()
	defer l.lock.Unlock()
	l.failed = err
	return !apierrors.IsNotFound(err)
}

func (l *Lease) renewedAt(at time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.renewed, l.good = at, lasts(l.have)
}

// Lost returns a channel that is closed when the Lease is certainly not this process's any more.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Current returns nil while no other process can have taken the Lease, as far as this process can know
// without a read: the last renewal was in time.
func (l *Lease) Current() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if clusters.Elapsed(l.renewed, l.now()) < l.good {
		return nil
	}
	why := fmt.Sprintf("has not been renewed since %s, and this process keeps no names until it is", l.renewed.UTC().Format("15:04:05 MST"))
	if l.failed != nil {
		why += ": " + l.failed.Error()
	}
	return ErrLeaseLost{Plan: l.plan, Why: why}
}

// Mine returns nil if this process is the holder of the Lease, read live.
func (l *Lease) Mine(ctx context.Context) error {
	var have coordinationv1.Lease
	err := l.home.Get(ctx, l.key, &have)
	switch {
	case apierrors.IsNotFound(err):
		return ErrLeaseLost{Plan: l.plan, Why: "is gone; this process does nothing more for the plan"}
	case err != nil:
		return fmt.Errorf("reading the Lease of plan %s: %w", l.plan, err)
	case have.Spec.HolderIdentity == nil || *have.Spec.HolderIdentity != l.holder:
		return ErrLeaseLost{Plan: l.plan, Why: "was taken by another process; this one does nothing more for the plan", Taken: true}
	}
	return nil
}

// Release gives the Lease up. With ended it deletes the Lease, since no process will need it again
// (S15).
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
	// Without a holder the Lease keeps no process away. Its time stays, as the last sign of this process.
	now := metav1.NewMicroTime(l.now())
	have.Spec.HolderIdentity, have.Spec.RenewTime = nil, &now
	return l.home.Update(ctx, &have)
}

// Holder returns which process carries the plan out, or which one only keeps its names, as far as a comparison of two
// clocks can show. No takeover relies on it: that needs Acquire.
func (s *Store) Holder(ctx context.Context, now func() time.Time) (carries, names string, err error) {
	var have coordinationv1.Lease
	if err := s.home.Get(ctx, client.ObjectKey(s.planMap()), &have); err != nil {
		return "", "", client.IgnoreNotFound(err)
	}
	l := &Lease{now: now}
	switch {
	case !l.others(&have) || l.now().Sub(have.Spec.RenewTime.Time) >= lasts(&have):
		return "", "", nil
	case keeps(&have):
		return "", *have.Spec.HolderIdentity, nil
	}
	return *have.Spec.HolderIdentity, "", nil
}

// Abandoned reports whether no process has the Lease. One that names a holder which may live is watched for as long as it
// lasts, since the clock of the holder may be behind. after is time.After.
func (s *Store) Abandoned(ctx context.Context, dead func(holder string) bool, after func(time.Duration) <-chan time.Time) (bool, error) {
	for watched := ""; ; {
		var have coordinationv1.Lease
		err := s.home.Get(ctx, client.ObjectKey(s.planMap()), &have)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, err
		case !new(Lease).others(&have), dead(*have.Spec.HolderIdentity), have.ResourceVersion == watched:
			return true, nil
		case watched != "":
			return false, nil
		}
		watched = have.ResourceVersion
		select {
		case <-after(lasts(&have)):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}
