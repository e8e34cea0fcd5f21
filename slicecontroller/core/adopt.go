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

// mayAdopt checks, once in a pass and by a live read, that the set is still the one that was seen, and is
// not being deleted (CL-5).
func (p *pass) mayAdopt(ctx context.Context) error {
	if p.fresh {
		return nil
	}
	now, err := p.do.Fresh(ctx)
	if err != nil {
		return fmt.Errorf("reading the set before adopting: %w", err)
	}
	if now.GetUID() != p.set.UID {
		return fmt.Errorf("%s/%s was recreated (UID %s, was %s)", p.set.Namespace, p.set.Name, now.GetUID(), p.set.UID)
	}
	if now.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s/%s is being deleted", p.set.Namespace, p.set.Name)
	}
	p.fresh = true
	return nil
}

func (p *pass) adopt(ctx context.Context, o Object) error {
	if err := p.mayAdopt(ctx); err != nil {
		return err
	}
	return p.do.Adopt(ctx, o, p.set.owner())
}

// ownRevisions returns the revisions of the set, and adopts orphans (CL-7). Sets with the same selector may be beside
// each other: an orphan with the name of another set is left to that set, unless the rules are those of StatefulSets.
func (p *pass) ownRevisions(ctx context.Context, selector labels.Selector) ([]*appsv1.ControllerRevision, error) {
	var out []*appsv1.ControllerRevision
	for _, r := range p.world.Revisions {
		owner := metav1.GetControllerOfNoCopy(r)
		switch {
		case owner != nil && owner.UID != p.set.UID, !selector.Matches(labels.Set(r.Labels)):
			continue
		case owner == nil && !p.set.AdoptOutside && !p.set.named(r):
			continue
		case p.set.DeletionTimestamp == nil && (owner == nil || owner.APIVersion != p.set.owner().APIVersion):
			if err := p.adopt(ctx, r); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return sorted(out), nil
}

// ownPods returns the pods of the set. It adopts orphans and releases strays (CL-2 to CL-6), unless the set
// is being deleted.
func (p *pass) ownPods(ctx context.Context, selector labels.Selector) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	var errs []error
	for _, pod := range p.world.Pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		ordinal, member := Ordinal(p.set.Name, pod.Name)
		member = member && selector.Matches(labels.Set(pod.Labels))
		switch {
		case owner != nil && owner.UID != p.set.UID:
		case owner != nil && member:
			out = append(out, pod)
			errs = append(errs, p.refer(ctx, pod, owner))
		case p.set.DeletionTimestamp != nil:
		case owner != nil:
			errs = append(errs, p.release(ctx, pod))
		case !member, terminating(pod):
		case !p.set.AdoptOutside && !p.set.has(ordinal):
			p.tellOfOrphan(pod)
		default:
			err := p.adopt(ctx, pod)
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
func (p *pass) refer(ctx context.Context, pod *corev1.Pod, by *metav1.OwnerReference) error {
	if by.APIVersion == p.set.owner().APIVersion || p.set.DeletionTimestamp != nil {
		return nil
	}
	if err := p.adopt(ctx, pod); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// release removes the set's owner reference from a pod. A pod that is gone, or that can no longer be
// changed, counts as released.
func (p *pass) release(ctx context.Context, pod *corev1.Pod) error {
	err := p.do.Release(ctx, pod, p.set.UID)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

func (p *pass) tellOfOrphan(pod *corev1.Pod) {
	p.do.Tell(Event{
		Type: corev1.EventTypeWarning, Reason: "OrphanOutOfRange", Related: pod, Once: string(pod.UID),
		Message: fmt.Sprintf("pod %s has no controller and matches this set, but its ordinal is not in the range: it is left unchanged", pod.Name),
	})
}
