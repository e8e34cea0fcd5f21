package core

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Protection is the finalizer of a protected set. The garbage collector deletes the dependents of an object
// once the object is gone, and a finalizer keeps the object from going.
const Protection = "apps.stsmigrate.dev/deletion-protection"

// protect adds or removes the finalizer as the set's protection requires, BEFORE anything that must be
// protected is created. over means that the pass ends here: a set that is being deleted was released, or
// that failed.
func (p *pass) protect(ctx context.Context) (over bool, err error) {
	held, wanted := slices.Contains(p.set.Finalizers, Protection), p.set.Protected
	if p.set.DeletionTimestamp == nil {
		if held != wanted {
			if err := p.do.Hold(ctx, wanted); err != nil {
				p.unprotected = fmt.Errorf("changing the finalizer of the deletion protection: %w", err)
			}
		}
		return false, nil
	}
	if !held { // a finalizer can no longer be added
		return false, nil
	}
	if wanted {
		if p.holds, err = p.losesByDeletion(ctx); p.holds || err != nil {
			return err != nil, err
		}
	}
	return true, p.do.Hold(ctx, false)
}

// losesByDeletion reports whether something would be deleted with the set: its dependents are not orphaned
// (--cascade=orphan), and it has some. A release cannot be undone, so the absence of pods is confirmed by
// live reads.
func (p *pass) losesByDeletion(ctx context.Context) (bool, error) {
	if slices.Contains(p.set.Finalizers, metav1.FinalizerOrphanDependents) {
		return false, nil
	}
	if len(p.world.Owned) > 0 || slices.ContainsFunc(p.world.Pods, p.controls) {
		return true, nil
	}
	for o := range p.set.ordinals() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: p.set.podName(o)}}
		err := p.do.Read(ctx, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return true, fmt.Errorf("reading pod %s before its set is let go: %w", pod.Name, err)
		case p.controls(pod):
			return true, nil
		}
	}
	return false, nil
}

func (p *pass) controls(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, p.set) }

// livesOn reports whether a set that is being deleted is reconciled as before. In a foreground deletion the
// garbage collector deletes its pods whatever other finalizers there are, and would delete recreated pods,
// too.
func (p *pass) livesOn() bool { return p.holds && !p.inForeground() }

func (p *pass) inForeground() bool {
	return slices.Contains(p.set.Finalizers, metav1.FinalizerDeleteDependents)
}

// heldBack returns why a set that is being deleted is kept, and what the user can do about it, or "".
func (p *pass) heldBack() (reason, message string) {
	switch {
	case !p.holds:
		return "", ""
	case p.inForeground():
		return "Foreground", "the set was deleted in the foreground: the garbage collector deletes its pods, and deletion protection cannot keep them"
	}
	return "Protected", "the set is being deleted, and its deletion protection keeps its pods: delete it again with --cascade=orphan to keep them without the set, or set spec.deletionProtection to false to delete them, too"
}
