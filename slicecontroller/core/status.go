package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// count counts the pods as they were read (ST-1). Pods that this pass creates do not count. Terminating pods
// count as replicas, ready and available, but not as current or updated.
func (p *pass) count() appsv1.StatefulSetStatus {
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: max(p.set.Generation, p.set.Status.ObservedGeneration), // ST-4
		CurrentRevision:    cmp.Or(p.wayGone, p.current.Name),
		UpdateRevision:     p.asked.Name,
		CollisionCount:     &p.collisions,
		Conditions:         p.set.Status.Conditions, // ST-6
	}
	for _, list := range [][]replica{p.living, p.condemned} {
		for _, r := range list {
			s.Replicas++
			if _, ready := readySince(r.Pod); ready {
				s.ReadyReplicas++
			}
			if p.set.available(r.Pod, p.world.Now) {
				s.AvailableReplicas++
			}
			if terminating(r.Pod) {
				continue
			}
			if revisionOf(r.Pod) == s.CurrentRevision {
				s.CurrentReplicas++
			}
			if revisionOf(r.Pod) == s.UpdateRevision && !p.astray() { // astray: then the target is not the wanted template
				s.UpdatedReplicas++
			}
		}
	}
	return s
}

// complete ends an update when every pod is of the new revision and ready (RV-8, RV-9).
func (p *pass) complete() {
	s, n := &p.status, p.set.replicas()
	onDelete := p.set.strategy() == appsv1.OnDeleteStatefulSetStrategyType
	if n == 0 && !p.set.CompleteEmpty || onDelete && p.set.CurrentStays || p.failed() != "" { // RV-10, RV-9
		return
	}
	if s.UpdatedReplicas == n && s.ReadyReplicas == n && s.Replicas == n {
		s.CurrentRevision, s.CurrentReplicas = s.UpdateRevision, s.UpdatedReplicas
	}
}

// writeStatus writes the status if it differs from the stored one (ST-5), and if the next pass does not
// supersede it at once.
func (p *pass) writeStatus(ctx context.Context, failed error) error {
	p.complete()
	p.retried = p.retried || failed != nil
	if failed == nil && p.superseded() {
		return nil
	}
	return p.write(ctx)
}

// superseded reports whether the status differs from the stored one only in what the next pass computes anew:
// this pass has created or deleted a pod in order, and the next pass comes as soon as the cache has that. It
// finds nothing to do but to wait for the pod, so it writes what it sees. Without an order each pass may
// create and delete pods, and the status would be late for as long as they do.
func (p *pass) superseded() bool {
	return p.set.Conditioned && p.set.ordered() && p.moved.Load() && equality.Semantic.DeepEqual(withoutNumbers(p.set.Status), withoutNumbers(p.status))
}

// withoutNumbers returns what of a status does not change with every pod: neither numbers, nor the pod that is
// waited for.
func withoutNumbers(s Status) Status {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas, s.Progressed = 0, 0, 0, 0, 0, nil
	s.Told = slices.Clone(s.Told)
	for k := range s.Told {
		if c := &s.Told[k]; c.Type == Progressing || c.Type == Reconciling {
			c.Message = ""
		}
	}
	return s
}

func (p *pass) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.set.Status, p.status) || p.reworded() {
		return nil
	}
	return p.do.WriteStatus(ctx, p.status)
}

// rewordAfter is for how long an error keeps the words in which it was written.
const rewordAfter = time.Minute

// reworded reports whether the status differs from the stored one only in the words of an error, which may name
// another request or connection at each attempt, and has been written a short while ago. Its own status wakes a
// set at once: written at each attempt, it would defeat the back-off between the attempts.
func (p *pass) reworded() bool {
	return (p.retried || p.set.Fault != nil) && p.world.Now.Before(p.world.Wrote.Add(rewordAfter)) &&
		equality.Semantic.DeepEqual(withoutWords(p.set.Status), withoutWords(p.status))
}

// withoutWords returns a status without the messages that quote errors, and without the two conditions that
// follow from the kind of the error: it may change from attempt to attempt, too.
func withoutWords(s Status) Status {
	s.Told = slices.DeleteFunc(slices.Clone(s.Told), func(c metav1.Condition) bool { return c.Type == Reconciling || c.Type == Stalled })
	for k := range s.Told {
		if slices.Contains([]string{Progressing, ClaimsNotKept, ClaimsOutdated, EvictionRefused}, s.Told[k].Type) {
			s.Told[k].Message = ""
		}
	}
	return s
}
