package core

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// growClaims lets the claims of living pods ask for as much storage as their template does. Whether a claim may grow the API
// server says, by its storage class, and what it says of one claim holds for the others of that class in this pass.
func (p *pass) growClaims(ctx context.Context) error {
	if !p.set.ClaimsGrow {
		return nil
	}
	var errs []error
	refused := map[string]string{} // the first claim of a class that was refused
	for _, t := range p.set.Spec.VolumeClaimTemplates {
		want, asked := t.Spec.Resources.Requests[corev1.ResourceStorage]
		for _, r := range p.living {
			c := p.claim(t.Name, r.ordinal)
			if !asked || c == nil || c.DeletionTimestamp != nil || terminating(r.Pod) {
				continue
			}
			if err := p.growClaim(ctx, c, want, refused); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// growClaim lets one claim grow, and notes what is left to wait for. An error is worth trying again.
func (p *pass) growClaim(ctx context.Context, c *corev1.PersistentVolumeClaim, want resource.Quantity, refused map[string]string) error {
	have := c.Spec.Resources.Requests[corev1.ResourceStorage]
	class := ""
	if c.Spec.StorageClassName != nil {
		class = *c.Spec.StorageClassName
	}
	switch {
	case have.Cmp(want) >= 0:
		if size, known := c.Status.Capacity[corev1.ResourceStorage]; known && size.Cmp(want) < 0 {
			p.ungrown = append(p.ungrown, fmt.Errorf("claim %s has %s of %s: %s", c.Name, &size, &want, growing(c)))
		}
		return nil
	case c.Status.Phase != corev1.ClaimBound:
		p.ungrown = append(p.ungrown, fmt.Errorf("claim %s asks for %s and is to have %s: it has no volume yet, and can grow once it has", c.Name, &have, &want))
		return nil
	case refused[class] != "":
		p.ungrown = append(p.ungrown, fmt.Errorf("claim %s asks for %s and is to have %s: as claim %s", c.Name, &have, &want, refused[class]))
		return nil
	}
	next := c.DeepCopy()
	next.Spec.Resources.Requests[corev1.ResourceStorage] = want
	if err := p.do.Update(ctx, next); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			refused[class] = c.Name
		}
		err = fmt.Errorf("claim %s asks for %s and is to have %s: %w", c.Name, &have, &want, err)
		p.ungrown = append(p.ungrown, err)
		return err
	}
	p.kept[c.Name] = next
	p.ungrown = append(p.ungrown, fmt.Errorf("claim %s has %s of %s: it has just been asked to grow", c.Name, &have, &want))
	p.do.Tell(Event{Type: corev1.EventTypeNormal, Reason: "ClaimGrows", Related: c, Message: fmt.Sprintf("claim %s is asked to grow from %s to %s", c.Name, &have, &want)})
	return nil
}

// growing says how far the storage system is.
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
