package core

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// growClaims raises the storage requests of the claims of living pods to those of their templates. The API
// server decides by the storage class whether a claim may grow. In one pass, a refusal for one claim holds
// for all claims of its class.
func (k *claimKeeper) growClaims(ctx context.Context) error {
	if !k.set.ClaimsGrow {
		return nil
	}
	var errs []error
	refused := map[string]string{} // by class, the first claim that was refused
	for _, t := range k.set.Spec.VolumeClaimTemplates {
		want, asked := t.Spec.Resources.Requests[corev1.ResourceStorage]
		for _, r := range k.living {
			c := k.claim(t.Name, r.ordinal)
			if !asked || c == nil || c.DeletionTimestamp != nil || terminating(r.Pod) {
				continue
			}
			if err := k.growClaim(ctx, c, want, refused); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// growClaim raises the request of one claim, and notes what is still waited for. An error is worth a retry.
func (k *claimKeeper) growClaim(ctx context.Context, c *corev1.PersistentVolumeClaim, want resource.Quantity, refused map[string]string) error {
	have := c.Spec.Resources.Requests[corev1.ResourceStorage]
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	switch {
	case have.Cmp(want) >= 0:
		if size, known := c.Status.Capacity[corev1.ResourceStorage]; known && size.Cmp(want) < 0 {
			k.ungrown = append(k.ungrown, fmt.Errorf("claim %s has %s of %s: %s", c.Name, &size, &want, growing(c)))
		}
		return nil
	case c.Status.Phase != corev1.ClaimBound:
		k.ungrown = append(k.ungrown, fmt.Errorf("claim %s requests %s and needs %s: it has no volume yet, and can grow once it has", c.Name, &have, &want))
		return nil
	case refused[class] != "":
		k.ungrown = append(k.ungrown, fmt.Errorf("claim %s requests %s and needs %s: as claim %s", c.Name, &have, &want, refused[class]))
		return nil
	}
	next := c.DeepCopy()
	next.Spec.Resources.Requests[corev1.ResourceStorage] = want
	if err := k.do.Update(ctx, next); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			refused[class] = c.Name
		}
		err = fmt.Errorf("claim %s requests %s and needs %s: %w", c.Name, &have, &want, err)
		k.ungrown = append(k.ungrown, err)
		return err
	}
	k.kept[c.Name] = next
	k.ungrown = append(k.ungrown, fmt.Errorf("claim %s has %s of %s: its storage request was just raised", c.Name, &have, &want))
	k.do.Tell(Event{Type: corev1.EventTypeNormal, Reason: "ClaimGrows", Related: c, Message: fmt.Sprintf("claim %s is asked to grow from %s to %s", c.Name, &have, &want)})
	return nil
}

// growing describes the progress of the storage system.
func growing(c *corev1.PersistentVolumeClaim) string {
	for _, s := range c.Status.Conditions {
		if s.Status == corev1.ConditionTrue && s.Message != "" {
			return fmt.Sprintf("%s: %s", s.Type, s.Message)
		}
		if s.Status == corev1.ConditionTrue {
			return string(s.Type)
		}
	}
	return "its storage class has not grown it yet"
}
