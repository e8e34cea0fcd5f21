package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leaving returns a claim of the pod that is about to be deleted with a former pod that was scaled away, or with a
// former set, and the reference to it. expected means that the policy requires that, and that its deletion wakes the
// set. The policy may be Retain by now, but the garbage collector decides by the reference.
func (p *pass) leaving(r replica) (_ *corev1.PersistentVolumeClaim, with *metav1.OwnerReference, expected bool) {
	whenScaled, _ := p.set.claimsGo()
	for _, t := range p.set.Spec.VolumeClaimTemplates {
		c := p.world.Claim(p.set.claimName(t.Name, r.ordinal))
		if c == nil {
			continue
		}
		with = p.set.former(c, r.Pod)
		expected = whenScaled && with != nil && with.Kind == "Pod"
		if with != nil && (expected || c.DeletionTimestamp == nil) { // else makeClaims reports it (CP-3)
			return c, with, expected
		}
	}
	return nil, nil, false
}

// lost notes that a claim that must be kept is about to be deleted with a former owner, unless the policy expects that.
func (p *pass) lost(c *corev1.PersistentVolumeClaim, former metav1.OwnerReference, expected bool) {
	if expected {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.unkept = append(p.unkept, fmt.Errorf("claim %s cannot be kept: its owner %s %s no longer exists, and the garbage collector must process the claim first", c.Name, former.Kind, former.Name))
}

// makeClaims creates the missing claims of a pod.
func (p *pass) makeClaims(ctx context.Context, r replica) error {
	var errs []error
	for _, c := range p.set.newClaims(r.ordinal) {
		have := p.world.Claim(c.Name)
		switch {
		case have != nil && have.DeletionTimestamp != nil:
			errs = append(errs, fmt.Errorf("pvc %s is being deleted", c.Name)) // CP-3, in the words of the built-in controller
		case have != nil: // CP-2
		default:
			err := p.do.Create(ctx, c)
			if err != nil {
				errs = append(errs, err)
			}
			if !apierrors.IsAlreadyExists(err) && !errors.Is(err, ErrBehind) { // CP-4
				p.tellOfClaim(c, r.Pod, err)
			}
		}
	}
	return errors.Join(errs...)
}

// claim returns a claim as it was read, or as this pass has changed it since.
func (p *pass) claim(template string, ordinal int32) *corev1.PersistentVolumeClaim {
	name := p.set.claimName(template, ordinal)
	if c := p.kept[name]; c != nil {
		return c
	}
	return p.world.Claim(name)
}

// ownNew sets the owner of the claims of a new pod: claims that existed before the pod have none yet (CP-2).
func (p *pass) ownNew(ctx context.Context, r replica) error {
	_, err := p.ownClaims(ctx, r, false)
	if err != nil {
		p.tellOf("Update", r.Pod, err)
	}
	return err
}

// ownClaims updates the owner of the claims of a pod (CP-6, CP-7).
func (p *pass) ownClaims(ctx context.Context, r replica, condemned bool) (changed bool, err error) {
	for _, t := range p.set.Spec.VolumeClaimTemplates {
		c := p.claim(t.Name, r.ordinal)
		if c == nil {
			continue
		}
		mended, err := p.ownClaim(ctx, c, r, condemned)
		changed = changed || mended
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// ownClaim updates the owner of one claim. After a conflict with another writer it reads the claim again
// (ST-8).
func (p *pass) ownClaim(ctx context.Context, c *corev1.PersistentVolumeClaim, r replica, condemned bool) (changed bool, err error) {
	for range maxIdentityRepairs {
		next, conflict := p.set.reowned(c, r.Pod, condemned)
		if conflict && (next != nil || r.Status.Phase == corev1.PodPending) {
			p.do.Tell(Event{
				Type: corev1.EventTypeWarning, Reason: "ConflictingController", Related: c,
				Message: fmt.Sprintf("PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim", c.Name), // spelled as in the built-in controller
			})
		}
		if next == nil {
			return false, nil
		}
		if err = p.do.Update(ctx, next); !apierrors.IsConflict(err) {
			return err == nil, err
		}
		now := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
		if p.do.Read(ctx, now) != nil || now.UID != c.UID {
			break // the next pass retries
		}
		c = now
	}
	return false, err
}

// keepClaims removes the owners from claims that must outlive them (CP-5, CP-12, CP-14). It does so for all
// claims of the set, whatever the state of their pods: the set may be deleted at any time. A claim that
// cannot be changed delays nothing else.
func (p *pass) keepClaims(ctx context.Context) {
	whenScaled, _ := p.set.claimsGo()
	used := map[string]bool{}
	for _, r := range slices.Concat(p.living, p.condemned) {
		if whenScaled && !p.set.has(r.ordinal) {
			continue // they are deleted with the pod
		}
		for _, t := range p.set.Spec.VolumeClaimTemplates {
			if c := p.claim(t.Name, r.ordinal); c != nil {
				used[c.Name] = true
				p.keepClaim(ctx, c, r)
			}
		}
	}
	for _, c := range p.world.Owned {
		if ordinal, named := p.set.claimOf(c.Name); named && !used[c.Name] {
			p.keepClaim(ctx, c, p.at(ordinal))
		}
	}
}

// keepClaim removes the set and the pod from a claim's owners, unless the policy requires them.
func (p *pass) keepClaim(ctx context.Context, c *corev1.PersistentVolumeClaim, r replica) {
	want := p.set.claimOwner(nil)
	unwanted := slices.ContainsFunc(c.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return slices.Contains([]types.UID{p.set.UID, r.UID}, ref.UID) && (want == nil || want.UID != ref.UID)
	})
	if !unwanted {
		return
	}
	next, _ := p.set.reowned(c, r.Pod, false)
	if next == nil {
		p.lost(c, *p.set.former(c, r.Pod), false)
		return
	}
	err := p.do.Update(ctx, next)
	if err != nil {
		p.unkept = append(p.unkept, fmt.Errorf("claim %s cannot be kept, and goes with its owner: %w", c.Name, err))
	} else {
		p.kept[c.Name] = next
	}
	if created(r.Pod) && p.set.has(r.ordinal) {
		p.tellOf("Update", r.Pod, err)
	}
}
