package reach

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Consents returns the ConfigMaps of the namespaces on one side, including their existing consents.
func (r *Sides) Consents(ctx context.Context, side plans.Side, until time.Time) ([]client.Object, error) {
	var out []client.Object
	for _, n := range access.Parties(r.Plan) {
		if n.Side != side {
			continue
		}
		have, err := n.Consent(ctx, r.On)
		if err != nil { // consents that cannot be read cannot be kept, and other plans may need them
			return nil, err
		}
		next := n.Agree(r.Plan, until, have)
		next.ObjectMeta = asRead(next)
		out = append(out, next)
	}
	return out, nil
}

// ClusterConsent returns the VolumeConsent of the cluster on one side, including its existing consents. It
// returns nothing if the plan creates no volume there.
func (r *Sides) ClusterConsent(ctx context.Context, side plans.Side) ([]client.Object, error) {
	if err := r.Lost[side.Other()]; err != nil && !r.Plan.OneCluster() {
		return nil, fmt.Errorf("which disks the %s is to agree to is known on both sides: %w", side, err)
	}
	disks, err := r.Disks(ctx, side)
	if err != nil {
		return nil, err
	}
	volumes, err := access.NewVolumes(ctx, r.Plan, r.On, side, access.Names(disks))
	if err != nil || len(volumes) == 0 {
		return nil, err
	}
	kind := access.VolumeConsent().GroupVersionKind()
	if _, err := r.On[side].RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster of the %s has no kind %s, which comes with the component policies: without them it has nothing to agree to, and nothing limits the disks for which an orchestrator creates volumes; to install them: stsmigrate install --context %s policies --apply", side, kind.Kind, r.Plan.On(side).Context)
	}
	have, err := access.AgreedVolumes(ctx, r.On[side], side)
	if err != nil { // consents that cannot be read cannot be kept, and other plans may need them
		return nil, err
	}
	next, err := access.AgreeVolumes(r.Plan, volumes, have)
	if err != nil {
		return nil, err
	}
	kept := asRead(next)
	next.Object["metadata"] = map[string]any{"name": kept.Name}
	if kept.ResourceVersion != "" {
		next.SetResourceVersion(kept.ResourceVersion)
	}
	return []client.Object{next}, nil
}

// asRead returns the metadata that `kubectl apply` needs for an object that also holds other plans' consents.
// The apply then leaves their labels unchanged, and is refused if the object has changed since it was read.
func asRead(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion()}
}
