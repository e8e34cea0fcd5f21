package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// syncVolume keeps the sidecars' finalizers consistent with the reclaim policy and destroys
// released volumes whose policy is Delete.
func (p *Provisioner) syncVolume(ctx context.Context, name string, _ *loop) error {
	volume, err := p.volumes.Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if volume.Spec.CSI == nil || !ours(provisionedBy(volume)) {
		return nil
	}
	used := p.inUse(name)
	if volume, err = p.syncFinalizers(ctx, volume, used); err != nil {
		return ignoreNotFound(err)
	}
	if used || !reclaims(volume) {
		return nil
	}
	return p.destroyVolume(ctx, volume)
}

func (p *Provisioner) syncFinalizers(ctx context.Context, volume *corev1.PersistentVolume, used bool) (*corev1.PersistentVolume, error) {
	var err error
	if volume.DeletionTimestamp != nil && !used {
		if volume, err = p.finalizer(ctx, volume, attachFinalizer(volume.Spec.CSI.Driver), false); err != nil {
			return nil, err
		}
	}
	switch {
	case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return p.finalizer(ctx, volume, provisionFinalizer, false)
	case volume.DeletionTimestamp == nil && volume.Status.Phase == corev1.VolumeBound:
		return p.finalizer(ctx, volume, provisionFinalizer, true)
	}
	return volume, nil
}

// reclaims reports whether the data of a volume must be destroyed, by the rule of the
// external-provisioner. A volume that is being deleted without its finalizer is destroyed already,
// or was never the provisioner's to destroy.
func reclaims(volume *corev1.PersistentVolume) bool {
	over := volume.DeletionTimestamp != nil && !slices.Contains(volume.Finalizers, provisionFinalizer)
	return !over &&
		volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

func (p *Provisioner) destroyVolume(ctx context.Context, volume *corev1.PersistentVolume) error {
	if err := p.Backend.destroy(p.event(volume, "")); err != nil {
		return err
	}
	volumes := p.client.CoreV1().PersistentVolumes()
	if err := volumes.Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil {
		return ignoreNotFound(err)
	}
	volume, err := volumes.Get(ctx, volume.Name, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	_, err = p.finalizer(ctx, volume, provisionFinalizer, false)
	return ignoreNotFound(err)
}

// finalizer adds or removes one finalizer and returns the resulting volume.
func (p *Provisioner) finalizer(ctx context.Context, volume *corev1.PersistentVolume, name string, want bool) (*corev1.PersistentVolume, error) {
	if slices.Contains(volume.Finalizers, name) == want {
		return volume, nil
	}
	changed := volume.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == name })
	if want {
		changed.Finalizers = append(changed.Finalizers, name)
	}
	return p.client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{})
}
