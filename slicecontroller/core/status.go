package core

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// complete ends an update when every pod is of the new revision and ready (RV-8, RV-9).
func (ac *account) complete() {
	s, n := &ac.status, ac.set.replicas()
	onDelete := ac.set.strategy() == appsv1.OnDeleteStatefulSetStrategyType
	if n == 0 && !ac.set.CompleteEmpty || onDelete && ac.set.CurrentStays || ac.failed() != "" { // RV-10, RV-9
		return
	}
	if s.UpdatedReplicas == n && s.ReadyReplicas == n && s.Replicas == n {
		s.CurrentRevision, s.CurrentReplicas = s.UpdateRevision, s.UpdatedReplicas
	}
}

// writeStatus writes the status if it differs from the stored one (ST-5), and if the next pass does not
// supersede it at once.
func (ac *account) writeStatus(ctx context.Context, failed error) error {
	ac.complete()
	ac.retried = ac.retried || failed != nil
	if failed == nil && ac.superseded() {
		return nil
	}
	return ac.write(ctx)
}

// superseded reports whether the status differs from the stored one only in what the next pass computes anew:
// this pass has created or deleted a pod in order, and the next pass comes as soon as the cache has that. It
// finds nothing to do but to wait for the pod, so it writes what it sees. Without an order each pass may
// create and delete pods, and the status would be late for as long as they do.
func (ac *account) superseded() bool {
	return ac.set.Conditioned && ac.set.ordered() && ac.moved.Load() && equality.Semantic.DeepEqual(withoutNumbers(ac.set.Status), withoutNumbers(ac.status))
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

func (ac *account) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(ac.set.Status, ac.status) || ac.reworded() {
		return nil
	}
	return ac.do.WriteStatus(ctx, ac.status)
}

// rewordAfter is for how long an error keeps the words in which it was written.
const rewordAfter = time.Minute

// reworded reports whether the status differs from the stored one only in the words of an error, which may name
// another request or connection at each attempt, and has been written a short while ago. Its own status wakes a
// set at once: written at each attempt, it would defeat the back-off between the attempts.
func (ac *account) reworded() bool {
	return (ac.retried || ac.set.Fault != nil) && ac.world.Now.Before(ac.world.Wrote.Add(rewordAfter)) &&
		equality.Semantic.DeepEqual(withoutWords(ac.set.Status), withoutWords(ac.status))
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
