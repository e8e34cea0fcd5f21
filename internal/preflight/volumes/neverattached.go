package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// NeverAttached warns, between clusters, of disks for one node whose driver has no VolumeAttachments. The end
// of the pod is then the only sign that Kubernetes has of the old node, which may still be writing back its
// cache when the other cluster mounts the disk (S1). Nothing would refuse that mount: the fence of an
// attachment is missing.
func NeverAttached(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if i.Plan.OneCluster() || !i.Plan.HasVolumes() {
		return nil, nil
	}
	volumes, err := departing(ctx, i)
	if err != nil {
		return nil, err
	}
	byDriver := map[string][]*corev1.PersistentVolume{}
	for _, pv := range volumes {
		if pv.Spec.CSI != nil && ofOneNode(pv) {
			byDriver[pv.Spec.CSI.Driver] = append(byDriver[pv.Spec.CSI.Driver], pv)
		}
	}
	var out []check.Finding
	for _, name := range slices.Sorted(maps.Keys(byDriver)) {
		attaches, err := storage.Attaches(ctx, i.On[plans.Source], name, plans.Source)
		if err != nil {
			return nil, err
		}
		if attaches {
			continue
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: several(byDriver[name]), Saw: fmt.Sprintf("they are for one node at a time, and driver %s never attaches them (attachRequired: false)", name),
			Want: "a VolumeAttachment whose deletion shows that the old node has released the disk", Remedy: "ask the driver's documentation whether a disk that is still being unmounted elsewhere can be written by two; if it can, make the driver attach, or put a gate before each mount",
		})
	}
	return out, nil
}

// ofOneNode reports whether a volume is not meant to be mounted on several nodes at once.
func ofOneNode(pv *corev1.PersistentVolume) bool {
	return !slices.ContainsFunc(pv.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	})
}
