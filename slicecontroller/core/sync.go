package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pass is one Sync in progress.
type pass struct {
	set   *Set
	world World
	do    Effects
	fresh bool // a live read has confirmed the set

	versions
	// currentTemplate and targetTemplate are those of the two revisions.
	currentTemplate, targetTemplate *corev1.PodTemplateSpec
	// living are the existing pods of the range, ascending. condemned are the others, descending.
	living, condemned []replica
	// lowestDown is the lowest ordinal that is unavailable, of the range first and else of the condemned
	// (OR-6).
	lowestDown string
	status     Status
	outcome    Outcome
	// unsure is the error for which the target is the newest existing revision, and not that of the
	// template: missing pods are made from it, and no pod is replaced.
	unsure error
	// unmarked is the error for which the target has no note of the template that it was filled in from.
	// Nothing waits for that.
	unmarked error
	begins   bool        // an enforced update deletes a pod in this pass
	waits    bool        // something must happen before the set is as its spec requires
	moved    atomic.Bool // a pod was created or deleted in this pass
	lock     sync.Mutex
	made     int // how many pods were created in this pass
	// kept are the claims whose owners this pass removed so that they outlive the set, as they are now.
	// unkept are the errors of the claims for which that failed, or which are deleted with a former owner.
	kept     map[string]*corev1.PersistentVolumeClaim
	unkept   []error
	conflict string // the message that another owner's pod has the name of one of ours
	// ungrown are the claims whose size is not that of their template, with the reasons.
	ungrown []error
	// holds means that the set is being deleted and kept. unprotected is the error of a change of the
	// finalizer.
	holds       bool
	unprotected error
	// refused is why a pod cannot be evicted now. refusedUntil is when to retry, if the API server names a
	// time.
	refused      string
	refusedUntil time.Time
	// retried means that conditions quote an error, and that what failed is retried in any case.
	retried bool
}

// replica is a pod and its ordinal.
type replica struct {
	*corev1.Pod
	ordinal int32
}

// Sync does for a set what can be done now (SY-1). If an effect fails, Sync still does what does not depend
// on it, writes the status, and returns the errors; the caller retries. For an invalid set it writes only
// the conditions and returns ErrInvalid: a retry is useless until the set changes.
func Sync(ctx context.Context, w World, do Effects) (Outcome, error) {
	p := &pass{set: w.Set, world: w, do: do, kept: map[string]*corev1.PersistentVolumeClaim{}}
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

// astray reports whether the target revision is not that of the set's template. Then no pod is replaced.
func (p *pass) astray() bool { return p.set.Fault != nil || p.unsure != nil }

func (p *pass) templates() (err error) {
	if p.targetTemplate, err = template(p.target); err != nil {
		return err
	}
	p.currentTemplate = p.targetTemplate
	if p.current.Name != p.target.Name {
		p.currentTemplate, err = template(p.current)
	}
	return err
}

// sort divides the pods into living and condemned.
func (p *pass) sort(pods []*corev1.Pod) {
	for _, pod := range pods {
		ordinal, _ := Ordinal(p.set.Name, pod.Name)
		if r := (replica{pod, ordinal}); p.set.has(ordinal) {
			p.living = append(p.living, r)
		} else {
			p.condemned = append(p.condemned, r)
		}
	}
	slices.SortFunc(p.living, func(a, b replica) int { return cmp.Compare(a.ordinal, b.ordinal) })
	slices.SortFunc(p.condemned, func(a, b replica) int { return cmp.Compare(b.ordinal, a.ordinal) })
	if r := p.firstDown(); r != nil {
		p.lowestDown = r.Name
		return
	}
	for _, r := range slices.Backward(p.condemned) {
		if p.set.down(r.Pod, p.world.Now) {
			p.lowestDown = r.Name
			return
		}
	}
}

// at returns the pod of an ordinal of the range. A missing pod has nothing but its name and namespace; it is
// made on demand, since any number of pods may be missing.
func (p *pass) at(ordinal int32) replica {
	k, found := slices.BinarySearchFunc(p.living, ordinal, func(r replica, o int32) int { return cmp.Compare(r.ordinal, o) })
	if found {
		return p.living[k]
	}
	return replica{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: p.set.podName(ordinal)}}, ordinal}
}

// firstDown returns the lowest ordinal of the range that is missing or not available, or nil.
func (p *pass) firstDown() *replica {
	for o := range p.set.ordinals() {
		if r := p.at(o); p.set.down(r.Pod, p.world.Now) {
			return &r
		}
	}
	return nil
}

// madeFrom returns the template and the revision for the missing pod of an ordinal (RV-11).
func (p *pass) madeFrom(ordinal int32) (*corev1.PodTemplateSpec, *appsv1.ControllerRevision) {
	protected := false
	switch ru := p.set.Spec.UpdateStrategy.RollingUpdate; {
	case p.set.strategy() == appsv1.OnDeleteStatefulSetStrategyType:
	case ru == nil:
		protected = ordinal-p.set.start() < p.set.Status.CurrentReplicas // RV-12
	default:
		protected = !p.set.staged(ordinal)
	}
	if protected {
		return p.currentTemplate, p.current
	}
	return p.targetTemplate, p.target
}

// unavailable counts the ordinals of the range that are down (MU-3).
func (p *pass) unavailable() int {
	n := p.missing()
	for _, r := range p.living {
		if p.set.down(r.Pod, p.world.Now) {
			n++
		}
	}
	return n
}

// missing counts the ordinals of the range without a pod.
func (p *pass) missing() int { return int(p.set.replicas()) - len(p.living) }

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

// decisive returns the pods that are not available, and that halt the update or roll it back if they stay so.
func (p *pass) decisive() []replica {
	var out []replica
	if c := p.canary(); c != nil && p.enforced() && created(c.Pod) && p.set.down(c.Pod, p.world.Now) {
		out = append(out, *c)
	}
	for _, r := range p.living {
		if p.set.RollsBack && p.mayFail(r) {
			out = append(out, r)
		}
	}
	return out
}
