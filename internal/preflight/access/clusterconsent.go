package access

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// VolumesMap is the ConfigMap in kube-system with which a cluster agrees to the volumes that an orchestrator
// may make in it: a key for each volume, and the facts that storage.Facts lists for it. Only the cluster's
// administrator writes in kube-system; an orchestrator may write ConfigMaps in its own namespace. The
// admission policy of new volumes checks against this ConfigMap.
const VolumesMap = "stsmigrate-volumes"

// NewVolumesPolicy is the name of that policy and of its binding.
const NewVolumesPolicy = "stsmigrate-new-volumes"

// ProtectedVolumesPolicy is the name of the admission policy that lets only who carries plans out change the volumes that
// a plan protects.
const ProtectedVolumesPolicy = "stsmigrate-protected-volumes"

// largestMap is how many bytes a ConfigMap holds.
const largestMap = 1 << 20

// NewVolumes returns what a side's cluster must agree to for a plan, by the names of its volumes: the volumes
// that the plan makes there, and those that exist there already, as they would be recreated. Within one
// cluster a volume keeps its object, so that only the second objects of shared volumes remain.
func NewVolumes(ctx context.Context, p *plans.Plan, on clusters.Clusters, side plans.Side, names []string) (map[string]string, error) {
	if p.OneCluster() {
		names = nil
		for _, s := range p.Shared {
			if side == plans.Destination {
				names = append(names, p.SecondVolume(s))
			}
		}
	}
	ours := claimSet(p, side)
	out := map[string]string{}
	for _, name := range names {
		pv, _, why, err := storage.Made(ctx, p, on, side, name)
		switch {
		case err != nil:
			return nil, err
		case why != "":
			return nil, fmt.Errorf("volume %s cannot be made on the %s: %s", name, side, why)
		case pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != p.On(side).Namespace || !ours[pv.Spec.ClaimRef.Name]:
			continue // the volume of that name is not of this plan, or it is gone
		}
		facts, err := storage.Facts(p.ID, pv)
		if err != nil {
			return nil, err
		}
		out[name] = strings.Join(facts, "\n") + "\n"
	}
	return out, nil
}

// AgreeVolumes returns the ConfigMap by which a cluster agrees to the volumes of one plan (NewVolumes), in
// addition to the volumes of other plans in have (nil for none). It replaces an earlier agreement to this
// plan. It fails if the ConfigMap would be too large.
func AgreeVolumes(p *plans.Plan, volumes map[string]string, have *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: VolumesMap}}
	if have != nil {
		next, _ = WithdrawVolumes(p, have)
	}
	next.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	size := 0
	for name, facts := range volumes {
		next.Data[name] = facts
	}
	for name, facts := range next.Data {
		size += len(name) + len(facts)
	}
	if size > largestMap {
		return nil, fmt.Errorf("the %d volumes that the cluster agrees to would take %d bytes, and a ConfigMap holds %d: take those of plans that have ended away (stsmigrate revoke), or move the set in parts", len(next.Data), size, largestMap)
	}
	return next, nil
}

// WithdrawVolumes returns the ConfigMap without the volumes of a plan, and whether it had any of them.
func WithdrawVolumes(p *plans.Plan, have *corev1.ConfigMap) (next *corev1.ConfigMap, less bool) {
	next = have.DeepCopy()
	for name, facts := range have.Data {
		if first, _, _ := strings.Cut(facts, "\n"); first == "plan "+p.ID {
			delete(next.Data, name)
			less = true
		}
	}
	return next, less
}

// AgreedVolumes reads the ConfigMap of a side's cluster; nil where there is none.
func AgreedVolumes(ctx context.Context, on client.Client, side plans.Side) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := on.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: VolumesMap}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s/%s on the %s: %w", metav1.NamespaceSystem, VolumesMap, side, err)
	}
	return &cm, nil
}

// withdrawVolumes removes the volumes of a plan from those that a side's cluster agrees to, and reports
// whether there were any.
func withdrawVolumes(ctx context.Context, p *plans.Plan, on client.Client, side plans.Side) (less bool, err error) {
	have, err := AgreedVolumes(ctx, on, side)
	if err != nil || have == nil {
		return false, err
	}
	next, less := WithdrawVolumes(p, have)
	if !less {
		return false, nil
	}
	return true, writes.Change(ctx, on, have, next)
}
