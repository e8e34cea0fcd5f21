package storage

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/stsmigrate/stsmigrate/plans"
)

// migratedTo is the note of the PV controller on a volume of one of Kubernetes' own sources that a
// CSI driver looks after: its attachments and what its nodes report are that driver's.
const migratedTo = "pv.kubernetes.io/migrated-to"

// SameDisk says whether two handles mean one disk: the driver may be called otherwise in each
// cluster, and one of the two volume objects may have a source of Kubernetes' own.
func SameDisk(a, b string) bool { return a == b || Canonical(a) == Canonical(b) }

// Means says whether a volume object means the disk of a handle, itself or as the other cluster
// has it.
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

// HandleFor is the handle under which a plan knows the disk of a volume of the source: between
// two clusters that of the CSI driver, which alone means something there.
func HandleFor(p *plans.Plan, pv *corev1.PersistentVolume) string {
	if csi, err := AsCSI(pv); err == nil && !p.OneCluster() {
		pv = csi
	}
	handle, _ := Handle(pv)
	return handle
}

// Canonical is a handle in the words of the driver that is best known for its disk.
func Canonical(handle string) string {
	var s corev1.PersistentVolumeSource
	if strings.HasPrefix(handle, "{") && json.Unmarshal([]byte(handle), &s) == nil {
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

// SameDriver says whether two names are those of one driver.
func SameDriver(a, b string) bool { return kind(a) == kind(b) }

// Provisioner is the CSI driver behind a provisioner of Kubernetes' own, or the name itself.
func Provisioner(name string) string {
	if driver, err := csitranslation.New().GetCSINameFromInTreeName(name); err == nil {
		return driver
	}
	return name
}

// AsCSI is a volume as the other cluster is to have it: one with a source of Kubernetes' own that
// a CSI driver looks after in its cluster becomes that driver's. All others stay.
func AsCSI(pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	driver := pv.Annotations[migratedTo]
	if driver == "" || pv.Spec.CSI != nil {
		return pv, nil
	}
	next, err := csitranslation.New().TranslateInTreePVToCSI(klog.Background(), pv)
	if err != nil {
		return nil, fmt.Errorf("volume %s in the words of driver %s: %w", pv.Name, driver, err)
	}
	if next.Spec.CSI == nil || next.Spec.CSI.Driver != driver {
		return nil, fmt.Errorf("volume %s is said to be driver %s's, and its source is another driver's", pv.Name, driver)
	}
	delete(next.Annotations, migratedTo)
	if by := next.Annotations[provisionedBy]; by != "" {
		next.Annotations[provisionedBy] = Provisioner(by)
	}
	return next, nil
}

// provisionedBy names the driver that the policy Delete will call.
const provisionedBy = "pv.kubernetes.io/provisioned-by"
