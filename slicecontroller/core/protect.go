package core

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Protection is the finalizer of a set that is protected. The garbage collector deletes what belongs to an object once that is
// gone, and a finalizer keeps it from going.
const Protection = "apps.stsmigrate.dev/deletion-protection"

// protect keeps the finalizer as the protection of the set asks for, before anything that is to be protected is made. over
// says that a set which is being deleted is let go, and nothing else is to be done for it.
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
	if !held { // none can be put on any more
		return false, nil
	}
	if wanted {
		if p.holds, err = p.losesByDeletion(ctx); p.holds || err != nil {
			return err != nil, err
		}
	}
	return true, p.do.Hold(ctx, false)
}

// losesByDeletion reports whether something would be deleted with the set: neither were its dependents let go
// (--cascade=orphan), nor has it none. What is let go cannot be taken back, so that the cache is not enough for the latter.
func (p *pass) losesByDeletion(ctx context.Context) (bool, error) {
	if slices.Contains(p.set.Finalizers, metav1.FinalizerOrphanDependents) {
		return false, nil
	}
	if len(p.world.Owned) > 0 || slices.ContainsFunc(p.world.Pods, p.controls) {
		return true, nil
	}
	for o := p.set.start(); p.set.has(o); o++ {
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

func (p *pass) controls(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.UID == p.set.UID
}

// livesOn says that a set that is being deleted goes on as before. In the foreground the garbage collector deletes its pods
// whatever other finalizers there are, and would do so with those that are made anew.
func (p *pass) livesOn() bool { return p.holds && !p.inForeground() }

func (p *pass) inForeground() bool {
	return slices.Contains(p.set.Finalizers, metav1.FinalizerDeleteDependents)
}

// heldBack says what somebody has to do about a set that is being deleted and held, or "".
func (p *pass) heldBack() (reason, message string) {
	switch {
	case !p.holds:
		return "", ""
	case p.inForeground():
		return "Foreground", "the set was deleted in the foreground: the garbage collector deletes its pods, and deletion protection cannot keep them"
	}
	return "Protected", "the set is being deleted, and its pods live on by its deletion protection: delete it again with --cascade=orphan to keep them without it, or set spec.deletionProtection to false to delete them, too"
}
