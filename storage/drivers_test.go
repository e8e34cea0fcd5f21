package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Whether another cluster can attach the disk of a volume is known by the driver, and of one driver by the form of
// the handle as well: the handles of its guest clusters name objects of one cluster.
func TestWhatIsKnownOfAVolumeIsKnownByItsDriver(t *testing.T) {
	const guest = "0123abcd-0123-0123-0123-0123456789ab-89abcdef-0123-4567-89ab-0123456789ab"
	for _, c := range []struct {
		driver, handle string
		want           Portability
	}{
		{"csi.vsphere.vmware.com", "0123abcd-0123-0123-0123-0123456789ab", UnknownHandles},
		{"csi.vsphere.vmware.com", guest, ClusterHandles},
		{"ebs.csi.aws.com", guest, PortableHandles},
		{"ebs.csi.aws.com", "vol-1", PortableHandles},
		{"made.by.nobody", "vol-1", UnknownHandles},
	} {
		if got := Known(&corev1.CSIPersistentVolumeSource{Driver: c.driver, VolumeHandle: c.handle}).Handles; got != c.want {
			t.Errorf("%s with %s: %v, expected %v", c.driver, c.handle, got, c.want)
		}
	}
}
