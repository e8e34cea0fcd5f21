package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimKeeper makes, owns, keeps and grows the claims of a set.
type claimKeeper struct {
	*teller

	lock sync.Mutex
	// kept are the claims whose owners this pass removed so that they outlive the set, as they are now.
	// unkept are the errors of the claims for which that failed, or which are deleted with a former owner.
	kept   map[string]*corev1.PersistentVolumeClaim
	unkept []error
	// ungrown are the claims whose size is not that of their template, with the reasons.
	ungrown []error
}

// lost notes that a claim that must be kept is about to be deleted with a former owner, unless the policy expects that.
func (k *claimKeeper) lost(c *corev1.PersistentVolumeClaim, former metav1.OwnerReference, expected bool) {
	if expected {
		return
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	k.unkept = append(k.unkept, fmt.Errorf("claim %s cannot be kept: its owner %s %s no longer exists, and the garbage collector must process the claim first", c.Name, former.Kind, former.Name))
}

// makeClaims creates the missing claims of a pod.
func (k *claimKeeper) makeClaims(ctx context.Context, r replica) error {
	var errs []error
	for _, c := range k.set.newClaims(r.ordinal) {
		have := k.world.Claim(c.Name)
		switch {
		case have != nil && have.DeletionTimestamp != nil:
			errs = append(errs, fmt.Errorf("pvc %s is being deleted", c.Name)) // CP-3, in the words of the built-in controller
		case have != nil: // CP-2
		default:
			err := k.do.Create(ctx, c)
			if err != nil {
				errs = append(errs, err)
			}
			if !apierrors.IsAlreadyExists(err) && !errors.Is(err, ErrBehind) { // CP-4
				k.tellOfClaim(c, r.Pod, err)
			}
		}
	}
	return errors.Join(errs...)
}

// claim returns a claim as it was read, or as this pass has changed it since.
func (k *claimKeeper) claim(template string, ordinal int32) *corev1.PersistentVolumeClaim {
	name := k.set.claimName(template, ordinal)
	if c := k.kept[name]; c != nil {
		return c
	}
	return k.world.Claim(name)
}

// ownNew sets the owner of the claims of a new pod: claims that existed before the pod have none yet (CP-2).
func (k *claimKeeper) ownNew(ctx context.Context, r replica) error {
	_, err := k.ownClaims(ctx, r, false)
	if err != nil {
		k.tellOf("Update", r.Pod, err)
	}
	return err
}

// ownClaims updates the owner of the claims of a pod (CP-6, CP-7).
func (k *claimKeeper) ownClaims(ctx context.Context, r replica, condemned bool) (changed bool, err error) {
	for _, t := range k.set.Spec.VolumeClaimTemplates {
		c := k.claim(t.Name, r.ordinal)
		if c == nil {
			continue
		}
		mended, err := k.ownClaim(ctx, c, r, condemned)
		changed = changed || mended
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// ownClaim updates the owner of one claim. After a conflict with another writer it reads the claim again
// (ST-8).
func (k *claimKeeper) ownClaim(ctx context.Context, c *corev1.PersistentVolumeClaim, r replica, condemned bool) (changed bool, err error) {
	for range maxIdentityRepairs {
		next, conflict := k.set.reowned(c, r.Pod, condemned)
		if conflict && (next != nil || r.Status.Phase == corev1.PodPending) {
			k.do.Tell(Event{
				Type: corev1.EventTypeWarning, Reason: "ConflictingController", Related: c,
				Message: fmt.Sprintf("PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim", c.Name), // spelled as in the built-in controller
			})
		}
		if next == nil {
			return false, nil
		}
		if err = k.do.Update(ctx, next); !apierrors.IsConflict(err) {
			return err == nil, err
		}
		now := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
		if k.do.Read(ctx, now) != nil || now.UID != c.UID {
			break // the next pass retries
		}
		c = now
	}
	return false, err
}

// keepClaims removes the owners from claims that must outlive them (CP-5, CP-12, CP-14). It does so for all
// claims of the set, whatever the state of their pods: the set may be deleted at any time. A claim that
// cannot be changed delays nothing else.
func (k *claimKeeper) keepClaims(ctx context.Context) {
	whenScaled, _ := k.set.claimsGo()
	used := map[string]bool{}
	for _, r := range slices.Concat(k.living, k.condemned) {
		if whenScaled && !k.set.has(r.ordinal) {
			continue // they are deleted with the pod
		}
		for _, t := range k.set.Spec.VolumeClaimTemplates {
			if c := k.claim(t.Name, r.ordinal); c != nil {
				used[c.Name] = true
				k.keepClaim(ctx, c, r)
			}
		}
	}
	for _, c := range k.world.Owned {
		if ordinal, named := k.set.claimOf(c.Name); named && !used[c.Name] {
			k.keepClaim(ctx, c, k.at(ordinal))
		}
	}
}

// keepClaim removes the set and the pod from a claim's owners, unless the policy requires them.
func (k *claimKeeper) keepClaim(ctx context.Context, c *corev1.PersistentVolumeClaim, r replica) {
	want := k.set.claimOwner(nil)
	unwanted := slices.ContainsFunc(c.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return slices.Contains([]types.UID{k.set.UID, r.UID}, ref.UID) && (want == nil || want.UID != ref.UID)
	})
	if !unwanted {
		return
	}
	next, _ := k.set.reowned(c, r.Pod, false)
	if next == nil {
		k.lost(c, *k.set.former(c, r.Pod), false)
		return
	}
	err := k.do.Update(ctx, next)
	if err != nil {
		k.unkept = append(k.unkept, fmt.Errorf("claim %s cannot be kept, and goes with its owner: %w", c.Name, err))
	} else {
		k.kept[c.Name] = next
	}
	if created(r.Pod) && k.set.has(r.ordinal) {
		k.tellOf("Update", r.Pod, err)
	}
}
