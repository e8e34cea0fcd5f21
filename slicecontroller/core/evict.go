package core

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// replace removes a pod for an update, and reports whether the pod goes. For a set that evicts, a refused
// eviction is retried later and is not an error.
func (p *pass) replace(ctx context.Context, r replica, forced bool) (gone bool, err error) {
	if !p.set.Evicts {
		if forced {
			p.tellOfForce(r)
		}
		err = p.remove(ctx, r)
		return err == nil, err
	}
	err = p.do.Evict(ctx, r.Pod)
	switch {
	case apierrors.IsNotFound(err): // SC-7
		return true, nil
	case p.postponed(r.Pod, err):
		return false, nil
	case err == nil:
		p.moved.Store(true)
		if forced {
			p.tellOfForce(r)
		}
	}
	p.tellOf("Evict", r.Pod, err)
	return err == nil, err
}

// postponed reports whether an eviction must be requested again later: after a change of the budget, which
// triggers a reconcile, or at the time that the API server names. A refusal without either is an ordinary
// error.
func (p *pass) postponed(pod *corev1.Pod, err error) bool {
	if !apierrors.IsTooManyRequests(err) {
		return false
	}
	budget := ""
	if c, found := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); found {
		budget = c.Message // it names the PodDisruptionBudget
	}
	seconds, named := apierrors.SuggestsClientDelay(err)
	if budget == "" && !named {
		return false
	}
	if named {
		p.refusedUntil = p.world.Now.Add(time.Duration(seconds) * time.Second)
	}
	if budget == "" {
		budget, p.retried = err.Error(), true
	}
	p.refused = fmt.Sprintf("pod %s is not evicted for the update: %s", pod.Name, budget)
	p.do.Tell(Event{Type: corev1.EventTypeNormal, Reason: EvictionRefused, Related: pod, Once: string(pod.UID), Message: p.refused})
	return true
}
