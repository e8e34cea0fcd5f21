package core

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// count counts the pods as they were read (ST-1). Pods that this pass creates do not count. Terminating pods
// count as replicas, ready and available, but not as current or updated.
func (p *pass) count() appsv1.StatefulSetStatus {
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: max(p.set.Generation, p.set.Status.ObservedGeneration), // ST-4
		CurrentRevision:    p.current.Name,
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

// writeStatus writes the status if it differs from the stored one (ST-5).
func (p *pass) writeStatus(ctx context.Context) error {
	p.complete()
	return p.write(ctx)
}

func (p *pass) write(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.set.Status, p.status) {
		return nil
	}
	return p.do.WriteStatus(ctx, p.status)
}
