package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// attachFinalizer returns the finalizer that the attacher puts on volumes and attachments.
func attachFinalizer(driver string) string {
	return "external-attacher/" + strings.ReplaceAll(driver, ".", "-")
}

func attachedVolume(obj any) (string, error) {
	if a, ok := obj.(*storagev1.VolumeAttachment); ok && a.Spec.Source.PersistentVolumeName != nil {
		return *a.Spec.Source.PersistentVolumeName, nil
	}
	return "", nil
}

// inUse reports whether the volume has an attachment to any node, or the attachments cannot be
// listed.
func (p *Provisioner) inUse(volume string) bool {
	all, err := p.attachments.List(labels.Everything())
	return err != nil || slices.ContainsFunc(all, func(a *storagev1.VolumeAttachment) bool {
		name, _ := attachedVolume(a) // never fails
		return name == volume
	})
}

// syncAttachment carries out the attachments and detachments that the controller-manager requests.
func (p *Provisioner) syncAttachment(ctx context.Context, name string, l *loop) error {
	a, err := p.attachments.Get(name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if a.Spec.Attacher != AttachDriver || a.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	if a.DeletionTimestamp == nil {
		return p.attach(ctx, a)
	}
	if !slices.Contains(a.Finalizers, attachFinalizer(AttachDriver)) {
		return nil
	}
	if left := time.Until(a.DeletionTimestamp.Add(p.DetachDelay)); p.DetachDelay > 0 && left > 0 {
		l.queue.AddAfter(name, left)
		return nil
	}
	return ignoreNotFound(p.detach(ctx, a))
}

func (p *Provisioner) attach(ctx context.Context, a *storagev1.VolumeAttachment) error {
	if a.Status.Attached {
		return nil
	}
	volume, err := p.volumes.Get(*a.Spec.Source.PersistentVolumeName)
	if err != nil {
		return err
	}
	// Add the finalizers BEFORE the volume is attached to the node, so that neither object can be
	// removed while it is attached.
	if a, err = p.attachmentFinalizer(ctx, a, true); err != nil {
		return err
	}
	if volume.DeletionTimestamp == nil {
		if volume, err = p.finalizer(ctx, volume, attachFinalizer(AttachDriver), true); err != nil {
			return err
		}
	}
	failure := p.Backend.attach(p.event(volume, a.Spec.NodeName))
	done := a.DeepCopy()
	done.Status.Attached, done.Status.AttachError = failure == nil, nil
	if failure != nil {
		done.Status.AttachError = &storagev1.VolumeError{Time: metav1.Now(), Message: failure.Error()}
		if old := a.Status.AttachError; old != nil && old.Message == failure.Error() {
			return failure // already reported: another status write would requeue the attachment
		}
	}
	if _, err = p.client.StorageV1().VolumeAttachments().UpdateStatus(ctx, done, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return failure
}

func (p *Provisioner) detach(ctx context.Context, a *storagev1.VolumeAttachment) error {
	volume, err := p.volumes.Get(*a.Spec.Source.PersistentVolumeName)
	if err == nil {
		err = p.Backend.detach(p.event(volume, a.Spec.NodeName))
	}
	if ignoreNotFound(err) != nil {
		return err
	}
	if a.Status.Attached {
		done := a.DeepCopy()
		done.Status.Attached = false
		if a, err = p.client.StorageV1().VolumeAttachments().UpdateStatus(ctx, done, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	_, err = p.attachmentFinalizer(ctx, a, false)
	return err
}

func (p *Provisioner) attachmentFinalizer(ctx context.Context, a *storagev1.VolumeAttachment, want bool) (*storagev1.VolumeAttachment, error) {
	name := attachFinalizer(AttachDriver)
	if slices.Contains(a.Finalizers, name) == want {
		return a, nil
	}
	changed := a.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == name })
	if want {
		changed.Finalizers = append(changed.Finalizers, name)
	}
	return p.client.StorageV1().VolumeAttachments().Update(ctx, changed, metav1.UpdateOptions{})
}
