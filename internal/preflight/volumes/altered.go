package volumes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// altered says what admission has changed of a new volume object so that its claim would not bind to it, that it would mean
// another disk, or that the disk could be deleted with it. It returns "" where that is nothing.
func altered(sent, got *corev1.PersistentVolume) string {
	var saw []string
	changed := func(field string, from, to any) {
		if a, b := fmt.Sprint(from), fmt.Sprint(to); a != b {
			saw = append(saw, fmt.Sprintf("%s from %q to %q", field, a, b))
		}
	}
	changed("spec.storageClassName", sent.Spec.StorageClassName, got.Spec.StorageClassName)
	changed("spec.persistentVolumeReclaimPolicy", sent.Spec.PersistentVolumeReclaimPolicy, got.Spec.PersistentVolumeReclaimPolicy)
	changed("spec.accessModes", sent.Spec.AccessModes, got.Spec.AccessModes)
	changed("spec.volumeMode", modeOf(sent.Spec.VolumeMode), modeOf(got.Spec.VolumeMode))
	changed("spec.capacity.storage", sent.Spec.Capacity.Storage(), got.Spec.Capacity.Storage())
	changed("spec.claimRef", claimed(sent), claimed(got))
	changed("spec.csi", disk(sent), disk(got))
	return strings.Join(saw, ", ")
}

func claimed(pv *corev1.PersistentVolume) string {
	if ref := pv.Spec.ClaimRef; ref != nil {
		return ref.Namespace + "/" + ref.Name
	}
	return ""
}

func disk(pv *corev1.PersistentVolume) string {
	if csi := pv.Spec.CSI; csi != nil {
		return csi.Driver + " " + csi.VolumeHandle
	}
	return ""
}
