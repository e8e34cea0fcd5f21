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

// update deletes pods of an old revision, so that they are recreated from the new one. It is called when
// everything else is done; in order, that means that every pod of the range is available (MU-5, MU-14).
func (p *pass) update(ctx context.Context) error {
	for _, r := range p.victims() {
		forced := p.forces() && !ready(r.Pod) // ER-6
		if gone, err := p.replace(ctx, r, forced); !gone {
			return err
		}
		p.begins = p.enforced()
		if forced {
			p.outcome.Forced = append(p.outcome.Forced, Forced{Pod: r.Name, UID: r.UID, Stuck: p.world.Now.Sub(notReadySince(r.Pod))})
		}
		if revisionOf(r.Pod) == p.current.Name && p.status.CurrentReplicas > 0 {
			p.status.CurrentReplicas-- // ST-3
		}
	}
	return nil
}
