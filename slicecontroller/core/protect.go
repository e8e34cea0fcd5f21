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

// protection keeps a set that is being deleted for as long as its pods must not go.
type protection struct {
	*teller

	// holds means that the set is being deleted and kept. unprotected is the error of a change of the
	// finalizer.
	holds       bool
	unprotected error
}

// protect adds or removes the finalizer as the set's protection requires, BEFORE anything that must be
// protected is created. over means that the pass ends here: a set that is being deleted was released, or
// that failed.
func (g *protection) protect(ctx context.Context) (over bool, err error) {
	held, wanted := slices.Contains(g.set.Finalizers, Protection), g.set.Protected
	if g.set.DeletionTimestamp == nil {
		if held != wanted {
			if err := g.do.Hold(ctx, wanted); err != nil {
				g.unprotected = fmt.Errorf("changing the finalizer of the deletion protection: %w", err)
			}
		}
		return false, nil
	}
	if !held { // a finalizer can no longer be added
		return false, nil
	}
	if wanted {
		if g.holds, err = g.losesByDeletion(ctx); g.holds || err != nil {
			return err != nil, err
		}
	}
	return true, g.do.Hold(ctx, false)
}

// losesByDeletion reports whether something would be deleted with the set: its dependents are not orphaned
// (--cascade=orphan), and it has some. A release cannot be undone, so the absence of pods is confirmed by
// live reads.
func (g *protection) losesByDeletion(ctx context.Context) (bool, error) {
	if slices.Contains(g.set.Finalizers, metav1.FinalizerOrphanDependents) {
		return false, nil
	}
	if len(g.world.Owned) > 0 || slices.ContainsFunc(g.world.Pods, g.controls) {
		return true, nil
	}
	for o := range g.set.ordinals() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: g.set.Namespace, Name: g.set.podName(o)}}
		err := g.do.Read(ctx, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return true, fmt.Errorf("reading pod %s before its set is let go: %w", pod.Name, err)
		case g.controls(pod):
			return true, nil
		}
	}
	return false, nil
}

// livesOn reports whether a set that is being deleted is reconciled as before. In a foreground deletion the
// garbage collector deletes its pods whatever other finalizers there are, and would delete recreated pods,
// too.
func (g *protection) livesOn() bool { return g.holds && !g.inForeground() }

// heldBack returns why a set that is being deleted is kept, and what the user can do about it, or "".
func (g *protection) heldBack() (reason, message string) {
	switch {
	case !g.holds:
		return "", ""
	case g.inForeground():
		return "Foreground", "the set was deleted in the foreground: the garbage collector deletes its pods, and deletion protection cannot keep them"
	}
	return "Protected", "the set is being deleted, and its deletion protection keeps its pods: delete it again with --cascade=orphan to keep them without the set, or set spec.deletionProtection to false to delete them, too"
}
