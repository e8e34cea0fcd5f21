package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// closes reports whether a step is the last one of a plan that settles volumes.
func (v settlement) closes(m plans.StepContext) bool {
	if len(v.Plan.Shared) > 0 {
		return m.Op == plans.Unshare
	}
	return m.Op == plans.Settle && m.Ordinals.Start == v.Plan.End()-1 && len(v.Plan.Moved()) > 0
}

// abandoned takes the marks off the volumes that are left when every other volume is settled. No claim of the set is
// bound to them any more: a user has replaced the disk of an ordinal. Only a mark leads to them, so all volumes are
// listed. They keep the reclaim policy Retain, and the objects of both clusters stay: whether the data is still needed is
// for the user to know. The text of the write reports it (S15).
func (v settlement) abandoned(ctx context.Context, m plans.StepContext) (plans.Observation, error) {
	if !v.closes(m) {
		return plans.Done(), nil
	}
	for _, side := range v.clusters(m) {
		var left *corev1.PersistentVolume
		err := clusters.Each(ctx, v.On[side], func() client.ObjectList { return &corev1.PersistentVolumeList{} }, func(pv *corev1.PersistentVolume) {
			if left == nil && m.Stamp.Mine(pv) {
				left = pv.DeepCopy()
			}
		})
		switch {
		case apierrors.IsForbidden(err): // the plan could end before
			continue
		case err != nil:
			return plans.Observation{}, fmt.Errorf("listing the volumes on the %s: %w", side, err)
		case left != nil:
			return v.leave(m, side, left), nil
		}
	}
	return plans.Done(), nil
}

// clusters returns one side of each cluster, the side that releases first.
func (v settlement) clusters(m plans.StepContext) []plans.Side {
	if v.Plan.OneCluster() {
		return []plans.Side{m.From}
	}
	return []plans.Side{m.From, m.To()}
}

// leave returns the write that takes the marks off a volume and changes nothing else. BEFORE that, the policy that the
// volume keeps is saved in place of the user's: the admission policy lets go only of a volume with its saved policy.
func (v settlement) leave(m plans.StepContext, side plans.Side, pv *corev1.PersistentVolume) plans.Observation {
	if why := m.Stamp.Barred(pv); why != "" {
		return plans.Stop(reasons.BelongsElsewhere, fmt.Sprintf("volume %s on the %s %s", pv.Name, side, why))
	}
	next, policy := pv.DeepCopy(), string(pv.Spec.PersistentVolumeReclaimPolicy)
	what := fmt.Sprintf("%s: volume %s: marks off, reclaim policy %s stays", side, pv.Name, policy)
	if saved := pv.Annotations[plans.PolicyAnnotation]; saved != "" && saved != policy {
		m.Stamp.Put(next)
		next.Annotations[plans.PolicyAnnotation] = policy
		what = fmt.Sprintf("%s: volume %s is bound to no claim of the set any more: its reclaim policy stays %s and does not become %s again, so delete the volume and its disk if the data is not needed", side, pv.Name, policy, saved)
	} else {
		plans.Unmark(next)
	}
	return plans.Write(what, plans.Undo{Saved: plans.Saved{Left: []string{pv.Name}}}, func(ctx context.Context) error { return writes.Change(ctx, v.On[side], pv, next) })
}
