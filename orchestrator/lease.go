package orchestrator

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leaseSeconds is how long a Lease that is no longer renewed keeps others away.
const leaseSeconds = 15

// Lease keeps a second process of the same plan away while the first one
// lives. It is politeness, not safety: safety is the epoch (design rule 8).
type Lease struct {
	home   client.Client
	key    client.ObjectKey
	holder string
	now    func() time.Time
	// have is the Lease as it was last written.
	have *coordinationv1.Lease
}

// ErrHeld says that another process works on the plan.
type ErrHeld struct {
	Plan, Holder string
	Renewed      time.Time
}

func (e ErrHeld) Error() string {
	return fmt.Sprintf("plan %s is being carried out by %s (seen alive at %s); watch it with `stsmigrate status %s -w`, or, if that process is dead, try again %d seconds after its last sign of life",
		e.Plan, e.Holder, e.Renewed.UTC().Format("15:04:05 MST"), e.Plan, leaseSeconds)
}

// Acquire takes the Lease of a plan, or answers ErrHeld. dead says of a holder
// whether it is certainly gone, so that nobody waits for a process of the same
// machine that was killed. A Lease is ours alone, and is written whole.
func (s *Store) Acquire(ctx context.Context, holder string, dead func(holder string) bool, now func() time.Time) (*Lease, error) {
	l := &Lease{home: s.home, key: client.ObjectKey(s.planMap()), holder: holder, now: now}
	for {
		var have coordinationv1.Lease
		err := s.home.Get(ctx, l.key, &have)
		switch {
		case apierrors.IsNotFound(err):
			have.ObjectMeta = s.meta(s.planMap())
			err = s.home.Create(ctx, l.sign(&have))
		case err == nil && l.taken(&have) && !dead(*have.Spec.HolderIdentity):
			return nil, ErrHeld{Plan: s.name.Name, Holder: *have.Spec.HolderIdentity, Renewed: have.Spec.RenewTime.Time}
		case err == nil:
			err = s.home.Update(ctx, l.sign(&have))
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue // somebody was faster; see who
		}
		if err != nil {
			return nil, fmt.Errorf("taking the Lease of plan %s: %w", s.name, err)
		}
		l.have = &have
		return l, nil
	}
}

// LeaseName is the name of a plan's Lease.
func LeaseName(plan string) string {
	return (&Store{name: types.NamespacedName{Name: plan}}).planMap().Name
}

// LeaseLeft says for how long a Lease keeps others than its holder away, 0 for not at all.
func LeaseLeft(have *coordinationv1.Lease, me string, dead func(holder string) bool, now time.Time) time.Duration {
	l := &Lease{holder: me, now: func() time.Time { return now }}
	if !l.taken(have) || dead(*have.Spec.HolderIdentity) {
		return 0
	}
	return leaseSeconds*time.Second - now.Sub(have.Spec.RenewTime.Time)
}

func (l *Lease) taken(have *coordinationv1.Lease) bool {
	s := have.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || *s.HolderIdentity == l.holder || s.RenewTime == nil {
		return false
	}
	return l.now().Sub(s.RenewTime.Time) < leaseSeconds*time.Second
}

func (l *Lease) sign(lease *coordinationv1.Lease) *coordinationv1.Lease {
	seconds, now := int32(leaseSeconds), metav1.NewMicroTime(l.now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &l.holder, &seconds, &now
	return lease
}

// Keep renews the Lease until ctx ends. A failure to renew is not an error: at
// worst another process takes over, which is safe.
func (l *Lease) Keep(ctx context.Context) {
	tick := time.NewTicker(leaseSeconds * time.Second / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.renew(ctx)
		}
	}
}

// renew writes the Lease as it was last written, which costs one request; only when somebody
// else has written it meanwhile is it read.
func (l *Lease) renew(ctx context.Context) {
	next := l.sign(l.have.DeepCopy())
	err := l.home.Update(ctx, next)
	if apierrors.IsConflict(err) {
		if err = l.home.Get(ctx, l.key, next); err != nil || l.taken(next) {
			return
		}
		err = l.home.Update(ctx, l.sign(next))
	}
	if err == nil {
		l.have = next
	}
}

// Release gives the Lease back. With ended it is deleted, since nobody will
// need it again (S15).
func (l *Lease) Release(ctx context.Context, ended bool) error {
	var have coordinationv1.Lease
	if err := l.home.Get(ctx, l.key, &have); err != nil || l.taken(&have) {
		return client.IgnoreNotFound(err)
	}
	if ended {
		uid, version := have.UID, have.ResourceVersion
		return client.IgnoreNotFound(l.home.Delete(ctx, &have, &client.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		}))
	}
	have.Spec.HolderIdentity, have.Spec.RenewTime = nil, nil
	return l.home.Update(ctx, &have)
}

// Holder tells who works on the plan, and "" when nobody does.
func (s *Store) Holder(ctx context.Context, now func() time.Time) (string, error) {
	var have coordinationv1.Lease
	if err := s.home.Get(ctx, client.ObjectKey(s.planMap()), &have); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if l := (&Lease{now: now}); l.taken(&have) {
		return *have.Spec.HolderIdentity, nil
	}
	return "", nil
}
