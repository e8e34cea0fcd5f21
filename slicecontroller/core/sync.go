package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pass is one Sync in progress.
type pass struct {
	*teller
	adoption
	history
	*account

	lock sync.Mutex
}

// replica is a pod and its ordinal.
type replica struct {
	*corev1.Pod
	ordinal int32
}

func newPass(w World, do Effects) *pass {
	t := &teller{picture: &picture{set: w.Set, world: w}, do: do}
	claims := &claimKeeper{teller: t, kept: map[string]*corev1.PersistentVolumeClaim{}}
	return &pass{teller: t, adoption: adoption{teller: t}, history: history{teller: t}, account: &account{teller: t, claimKeeper: claims, protection: &protection{teller: t}}}
}

// Sync does for a set what can be done now (SY-1). If an effect fails, Sync still does what does not depend
// on it, writes the status, and returns the errors; the caller retries. For an invalid set it writes only
// the conditions and returns ErrInvalid: a retry is useless until the set changes.
func Sync(ctx context.Context, w World, do Effects) (Outcome, error) {
	p := newPass(w, do)
	if over, err := p.protect(ctx); over {
		return Outcome{}, err
	}
	if p.set.Fault != nil && len(p.world.ownRevisions()) == 0 {
		return p.refuse(ctx)
	}
	if reason, why := p.set.invalid(); why != "" {
		return Outcome{}, p.leave(ctx, reason, why)
	}
	selector, err := metav1.LabelSelectorAsSelector(p.set.Spec.Selector)
	if err != nil {
		return Outcome{}, err
	}
	revisions, err := p.ownRevisions(ctx, selector)
	if err != nil {
		return p.stop(ctx, err)
	}
	pods, err := p.ownPods(ctx, selector)
	if err != nil {
		return p.stop(ctx, err)
	}
	if p.versions, err = p.resolve(ctx, revisions); err != nil {
		return p.stop(ctx, err)
	}
	if err := p.templates(); err != nil {
		return Outcome{}, err
	}
	p.sort(pods)
	p.status = Status{StatefulSetStatus: p.count(), Told: p.set.Status.Told, Progressed: p.set.Status.Progressed, Failed: p.failed()}
	p.outcome = Outcome{MaxUnavailable: p.set.MaxUnavailable(), Unavailable: p.unavailable()}
	if p.set.DeletionTimestamp == nil || p.livesOn() { // CL-8
		err = errors.Join(p.act(ctx), p.growClaims(ctx))
	}
	err = errors.Join(p.unsure, p.unprotected, err)
	p.describe(err)
	err = errors.Join(err, p.unmarked, p.writeStatus(ctx, err), p.truncate(ctx, revisions, p.versions, pods))
	p.outcome.Status, p.outcome.Again = &p.status, p.again()
	return p.outcome, err
}

// act makes the passes over the pods (SY-1, 8 to 12). In order, each pass is made only when the one before
// it has left nothing to wait for. There are two exceptions: under EnforcedRollingUpdate a pass that ended
// early does not delay the deletion of condemned pods (ER-12), and without an order a full quota does not
// either (PA-3).
func (p *pass) act(ctx context.Context) error {
	p.keepClaims(ctx)
	up, err := p.scaleUp(ctx)
	made := up == acted && err == nil
	if p.set.ordered() && (up != settled || err != nil) && (made || !p.enforced()) {
		return errors.Join(errors.Join(p.unkept...), err)
	}
	down, failed := p.scaleDown(ctx, p.spare(err))
	err = errors.Join(err, failed)
	if err == nil && !p.astray() && (!p.set.ordered() || up == settled && down == settled) {
		err = p.update(ctx)
	}
	return errors.Join(errors.Join(p.unkept...), err)
}

// again returns the earliest time at which the set must be reconciled without an event, or zero: an eviction
// may be retried, a deadline passes, or a pod becomes available (SY-5).
func (p *pass) again() time.Time {
	first := p.refusedUntil
	sooner := func(at time.Time) {
		if at.After(p.world.Now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, r := range p.decisive() {
		sooner(p.hopelessAt(r.Pod)) // ER-17
	}
	if p.waits {
		sooner(p.overdue())
	}
	if r := p.firstDown(); r != nil && p.set.Conditioned && r.Status.Phase == corev1.PodPending {
		sooner(settledAt(r.Pod))
	}
	for _, r := range slices.Concat(p.living, p.condemned) {
		sooner(p.set.availableAt(r.Pod, p.world.Now))
	}
	return first
}
