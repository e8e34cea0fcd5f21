package core

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// adoption adopts what is of a set, and releases what is not.
type adoption struct {
	*teller

	fresh bool // a live read has confirmed the set
}

// mayAdopt checks, once in a pass and by a live read, that the set is still the one that was seen, and is
// not being deleted (CL-5).
func (a *adoption) mayAdopt(ctx context.Context) error {
	if a.fresh {
		return nil
	}
	now, err := a.do.Fresh(ctx)
	if err != nil {
		return fmt.Errorf("reading the set before adopting: %w", err)
	}
	if now.GetUID() != a.set.UID {
		return fmt.Errorf("%s/%s was recreated (UID %s, was %s)", a.set.Namespace, a.set.Name, now.GetUID(), a.set.UID)
	}
	if now.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s/%s is being deleted", a.set.Namespace, a.set.Name)
	}
	a.fresh = true
	return nil
}

func (a *adoption) adopt(ctx context.Context, o Object) error {
	if err := a.mayAdopt(ctx); err != nil {
		return err
	}
	return a.do.Adopt(ctx, o, a.set.owner())
}

// ownRevisions returns the revisions of the set, and adopts orphans (CL-7). Sets with the same selector may be beside
// each other: an orphan with the name of another set is left to that set, unless the rules are those of StatefulSets.
func (a *adoption) ownRevisions(ctx context.Context, selector labels.Selector) ([]*appsv1.ControllerRevision, error) {
	var out []*appsv1.ControllerRevision
	for _, r := range a.world.Revisions {
		owner := metav1.GetControllerOfNoCopy(r)
		switch {
		case owner != nil && owner.UID != a.set.UID, !selector.Matches(labels.Set(r.Labels)):
			continue
		case owner == nil && !a.set.AdoptOutside && !a.set.named(r):
			continue
		case a.set.DeletionTimestamp == nil && (owner == nil || owner.APIVersion != a.set.owner().APIVersion):
			if err := a.adopt(ctx, r); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return sorted(out), nil
}

// ownPods returns the pods of the set. It adopts orphans and releases strays (CL-2 to CL-6), unless the set
// is being deleted.
func (a *adoption) ownPods(ctx context.Context, selector labels.Selector) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	var errs []error
	for _, pod := range a.world.Pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		ordinal, member := Ordinal(a.set.Name, pod.Name)
		member = member && selector.Matches(labels.Set(pod.Labels))
		switch {
		case owner != nil && owner.UID != a.set.UID:
		case owner != nil && member:
			out = append(out, pod)
			errs = append(errs, a.refer(ctx, pod, owner))
		case a.set.DeletionTimestamp != nil:
		case owner != nil:
			errs = append(errs, a.release(ctx, pod))
		case !member, terminating(pod):
		case !a.set.AdoptOutside && !a.set.has(ordinal):
			a.tellOfOrphan(pod)
		default:
			err := a.adopt(ctx, pod)
			if err == nil {
				out = append(out, pod)
			} else if !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return out, errors.Join(errs...)
}

// refer brings the owner reference of a pod to this version of the kind.
func (a *adoption) refer(ctx context.Context, pod *corev1.Pod, by *metav1.OwnerReference) error {
	if by.APIVersion == a.set.owner().APIVersion || a.set.DeletionTimestamp != nil {
		return nil
	}
	if err := a.adopt(ctx, pod); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// release removes the set's owner reference from a pod. A pod that is gone, or that can no longer be
// changed, counts as released.
func (a *adoption) release(ctx context.Context, pod *corev1.Pod) error {
	err := a.do.Release(ctx, pod, a.set.UID)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}
