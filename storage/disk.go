package storage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// migratedTo is the annotation that the PV controller sets on a volume with an in-tree source that a CSI
// driver manages. The volume's attachments, and the reports of its nodes, use the name of that driver.
const migratedTo = "pv.kubernetes.io/migrated-to"

// SameDisk reports whether two handles mean one disk. The driver may have a different name in each cluster,
// and one of the two volume objects may have an in-tree source.
func SameDisk(a, b string) bool { return a == b || Canonical(a) == Canonical(b) }

// Means reports whether a volume object means the disk of a handle, directly or in the form that the other
// cluster uses.
func Means(pv *corev1.PersistentVolume, handle string) bool {
	have, _ := Handle(pv)
	if SameDisk(have, handle) {
		return true
	}
	csi, err := AsCSI(pv)
	if err != nil {
		return false
	}
	have, _ = Handle(csi)
	return SameDisk(have, handle)
}

// HandleFor returns the handle under which a plan knows the disk of a volume of the source. Between two
// clusters it is the handle of the CSI driver, since only that has a meaning in the other cluster.
func HandleFor(p *plans.Plan, pv *corev1.PersistentVolume) string {
	if csi, err := AsCSI(pv); err == nil && !p.OneCluster() {
		pv = csi
	}
	handle, _ := Handle(pv)
	return handle
}

// Canonical returns a handle with the best-known name of the driver for its disk.
func Canonical(handle string) string {
	var s corev1.PersistentVolumeSource
	if strings.HasPrefix(handle, "{") && weight.Unmarshal([]byte(handle), &s) == nil {
		pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: s, ClaimRef: &corev1.ObjectReference{}}}
		if next, err := csitranslation.New().TranslateInTreePVToCSI(klog.Background(), pv); err == nil {
			handle, _ = Handle(next)
		}
	}
	driver, rest, ok := strings.Cut(handle, "^")
	if !ok {
		return handle
	}
	return kind(driver) + "^" + rest
}

// SameDriver reports whether two names belong to one driver.
func SameDriver(a, b string) bool { return kind(a) == kind(b) }

// Provisioner returns the CSI driver behind an in-tree provisioner, or the name itself.
func Provisioner(name string) string {
	if driver, err := csitranslation.New().GetCSINameFromInTreeName(name); err == nil {
		return driver
	}
	return name
}

// AsCSI returns a volume in the form that the other cluster needs. An in-tree volume that a CSI driver
// manages in its cluster becomes a volume of that driver. All others are returned unchanged.
func AsCSI(pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	driver := pv.Annotations[migratedTo]
	if driver == "" || pv.Spec.CSI != nil {
		return pv, nil
	}
	next, err := csitranslation.New().TranslateInTreePVToCSI(klog.Background(), pv)
	if err != nil {
		return nil, fmt.Errorf("converting volume %s to a volume of driver %s: %w", pv.Name, driver, err)
	}
	if next.Spec.CSI == nil || next.Spec.CSI.Driver != driver {
		return nil, fmt.Errorf("volume %s is annotated as migrated to driver %s, but its source belongs to another driver", pv.Name, driver)
	}
	delete(next.Annotations, migratedTo)
	if by := next.Annotations[provisionedBy]; by != "" {
		next.Annotations[provisionedBy] = Provisioner(by)
	}
	return next, nil
}

// provisionedBy names the driver that the policy Delete calls.
const provisionedBy = "pv.kubernetes.io/provisioned-by"
