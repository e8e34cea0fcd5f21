package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// standing is the progress of a pass over the pods.
type standing int

const (
	settled standing = iota // there is nothing left to do or to wait for
	blocked                 // something must happen first
	acted                   // something was written; the next pass sees the result
)

// largestBatch is the maximum number of pods of a Parallel set that are written at once (SY-2).
const largestBatch = 500

// inBatches calls do n times, in batches of 1, 2, 4 and so on, so that an error that hits every call is met
// only a few times. A batch with errors is finished, and is the last one.
func inBatches(n int, do func(int) error) error {
	for done, size := 0, 1; done < n; size = min(2*size, largestBatch) {
		errs := make([]error, min(size, n-done))
		var all sync.WaitGroup
		for k := range errs {
			all.Go(func() { errs[k] = do(done + k) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		done += len(errs)
	}
	return nil
}

// scaleUp tends the pods of the range, ascending, and creates those that are missing. In order, the first
// pod that is not available ends the pass (OR-1 to OR-4). A Parallel set waits for no pod (PA-1, PA-2).
func (p *pass) scaleUp(ctx context.Context) (standing, error) {
	if !p.set.ordered() {
		return settled, inBatches(int(p.set.replicas()), func(k int) error {
			_, err := p.tend(ctx, p.at(int32(p.set.nth(int32(k))))) //nolint:gosec // below the number of replicas, and of the range
			return err
		})
	}
	for o := range p.set.ordinals() {
		if s, err := p.tend(ctx, p.at(o)); s != settled || err != nil {
			return s, err
		}
	}
	return settled, nil
}

// tend does for one pod of the range what can be done now.
func (p *pass) tend(ctx context.Context, r replica) (standing, error) {
	switch {
	case ended(r.Pod) && (!p.exempt(r) || p.canaryDown() || p.astray()): // OR-3; else it is replaced in its turn (ER-4)
		if terminating(r.Pod) {
			return blocked, nil
		}
		if _, err := p.ownClaims(ctx, r, false); err != nil { // the garbage collector takes a claim with the pod that owns it (CP-14)
			return blocked, err
		}
		return acted, p.remove(ctx, r)
	case !created(r.Pod):
		if c, with, expected := p.leaving(r); c != nil { // the new pod must not get its volume (CP-8)
			p.lost(c, *with, expected)
			return blocked, nil
		}
		return acted, p.bringUp(ctx, r)
	}
	if r.Status.Phase == corev1.PodPending {
		if err := p.makeClaims(ctx, r); err != nil { // OR-9
			return blocked, err
		}
		if err := p.ownNew(ctx, r); err != nil {
			return blocked, err
		}
	}
	if p.set.ordered() && p.set.down(r.Pod, p.world.Now) && !p.exempt(r) {
		return blocked, nil
	}
	return settled, p.repair(ctx, r)
}

// bringUp creates the claims of a pod, and then the pod (CP-1).
func (p *pass) bringUp(ctx context.Context, r replica) error {
	if err := p.makeClaims(ctx, r); err != nil {
		if !errors.Is(err, ErrBehind) {
			p.tellOf("Create", r.Pod, utilerrors.NewAggregate(parts(err))) // in the form of the built-in controller
		}
		return err
	}
	t, revision := p.madeFrom(r.ordinal)
	made := replica{p.set.newPod(t, revision.Name, r.ordinal), r.ordinal}
	err := p.do.Create(ctx, made.Pod)
	switch {
	case apierrors.IsAlreadyExists(err):
		return p.taken(ctx, r)
	case errors.Is(err, ErrBehind):
		return err
	case err == nil:
		p.moved.Store(true)
		p.lock.Lock()
		p.made++
		p.lock.Unlock()
		if err := p.ownNew(ctx, made); err != nil {
			return err
		}
	}
	p.tellOf("Create", made.Pod, err)
	return err
}

// taken returns the reason why the name of a pod is taken (CL-10).
func (p *pass) taken(ctx context.Context, r replica) error {
	there := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
	if err := p.do.Read(ctx, there); err != nil {
		return fmt.Errorf("reading pod %s, whose name is taken: %w", r.Name, err)
	}
	owner := metav1.GetControllerOfNoCopy(there)
	selector, err := metav1.LabelSelectorAsSelector(p.set.Spec.Selector)
	if err != nil {
		return err
	}
	// An orphan is adopted once the cache has it as an orphan.
	if owner != nil && owner.UID == p.set.UID || owner == nil && selector.Matches(labels.Set(there.Labels)) {
		return fmt.Errorf("%w: pod %s exists", ErrBehind, r.Name)
	}
	by := "no controller"
	if owner != nil {
		by = owner.Kind + " " + owner.Name
	}
	err = fmt.Errorf("pod %s exists and is controlled by %s: it is left unchanged", r.Name, by)
	p.lock.Lock()
	p.conflict = err.Error()
	p.lock.Unlock()
	p.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: "PodNameConflict", Message: err.Error(), Related: there, Once: string(there.UID)})
	return err
}

// ErrBehind means that the World lacked something that the API server has.
var ErrBehind = errors.New("the cache is behind")

// repair repairs what the controller may repair of a running pod: its labels, and the owners of its claims.
func (p *pass) repair(ctx context.Context, r replica) error {
	mended, err := p.identify(ctx, r)
	if err != nil {
		p.tellOf("Update", r.Pod, err)
		return err
	}
	if why := p.set.foreignVolume(r.Pod, r.ordinal); why != "" {
		p.do.Tell(Event{Type: corev1.EventTypeWarning, Reason: "StorageMismatch", Related: r.Pod, Once: string(r.UID), Message: why})
	}
	changed, err := p.ownClaims(ctx, r, false)
	if changed || mended || err != nil {
		p.tellOf("Update", r.Pod, err)
	}
	return err
}

// maxIdentityRepairs is how often a change is retried after conflicts with other writers (ID-4).
const maxIdentityRepairs = 5

// identify repairs the labels that identify a pod.
func (p *pass) identify(ctx context.Context, r replica) (changed bool, err error) {
	pod := r.Pod
	for range maxIdentityRepairs {
		next := identified(pod, r.ordinal)
		if next == nil {
			return false, nil
		}
		if err = p.do.Update(ctx, next); !apierrors.IsConflict(err) {
			return true, err
		}
		pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
		if p.do.Read(ctx, pod) != nil || pod.UID != r.UID {
			break // the next pass retries
		}
	}
	return false, err
}

// spare returns how many condemned pods may be deleted after scaleUp returned err. If every pod of the range
// exists or was created, all may. Else only as many may as leave the wanted number of pods (3335-08), and
// none may if anything but a full quota was the reason: their deletion would not help.
func (p *pass) spare(err error) int {
	there := p.made
	for _, r := range slices.Concat(p.living, p.condemned) {
		if !terminating(r.Pod) && !ended(r.Pod) {
			there++
		}
	}
	switch failed := parts(err); {
	case len(failed) == 0 && p.made == p.missing():
		return len(p.condemned)
	case slices.ContainsFunc(failed, func(err error) bool { return !isFull(err) }):
		return 0
	}
	return max(0, there-int(p.set.replicas()))
}

// isFull reports whether an error is the refusal of a quota.
func isFull(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// scaleDown deletes at most spare pods outside the range, descending: the high side first, then the low side
// (OR-8). In order it deletes one at a time, and each only when all others are available (OR-5, OR-6). A
// Parallel set deletes all at once.
func (p *pass) scaleDown(ctx context.Context, spare int) (standing, error) {
	switch {
	case len(p.condemned) == 0:
		return settled, nil
	case spare == 0:
		return blocked, nil
	}
	for _, r := range p.condemned { // before any of them is deleted (CP-7)
		if _, err := p.ownClaims(ctx, r, true); err != nil {
			p.tellOf("Update", r.Pod, err)
			return blocked, err
		}
	}
	if !p.set.ordered() {
		there := slices.DeleteFunc(slices.Clone(p.condemned), func(r replica) bool { return terminating(r.Pod) })
		there = first(spare, there)
		return settled, inBatches(len(there), func(k int) error { return p.remove(ctx, there[k]) })
	}
	next := p.condemned[0]
	healthy := !p.set.down(next.Pod, p.world.Now) || p.enforced() // ER-12
	if terminating(next.Pod) || !healthy && next.Name != p.lowestDown {
		return blocked, nil
	}
	return acted, p.remove(ctx, next)
}

// remove deletes a pod with its own grace period (AM-2). A pod that is already gone is no error (SC-7).
func (p *pass) remove(ctx context.Context, r replica) error {
	err := p.do.Delete(ctx, r.Pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		p.moved.Store(true)
	}
	p.tellOf("Delete", r.Pod, err)
	return err
}
