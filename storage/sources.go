package storage

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Source is what a plan has to know of a volume source that means the same disk in two clusters. A volume
// whose source has no case in SourceOf stays in its cluster. A source that nodes attach without a VolumeAttachment
// must not have a case: nothing would show that the old node uses the disk no more (S1).
type Source struct {
	// Handle names the disk, independently of the object and of the cluster.
	Handle string
	// Facts are the lines about the disk to which the destination's cluster consents. The policy for new
	// volumes derives the same lines (deploy/chart/templates/policies.yaml).
	Facts []string
	// Server is the address of the file server, "" if nodes reach none by an address of their own.
	Server string
	// Driver and Share name what carries the volume, and what both clusters must share for it.
	Driver, Share string
}

// SourceOf returns the source of a volume, or nil if the volume means nothing in another cluster.
func SourceOf(pv *corev1.PersistentVolume) *Source {
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		out := &Source{Handle: s.CSI.Driver + "^" + s.CSI.VolumeHandle, Facts: []string{"csi " + s.CSI.Driver + " " + s.CSI.VolumeHandle}, Driver: s.CSI.Driver}
		for _, k := range slices.Sorted(maps.Keys(s.CSI.VolumeAttributes)) {
			out.Facts = append(out.Facts, "attribute "+k+"="+s.CSI.VolumeAttributes[k])
		}
		if out.Server = s.CSI.VolumeAttributes["server"]; out.Server == "" { // csi-driver-nfs, and csi-driver-smb
			out.Server = s.CSI.VolumeAttributes["source"]
		}
		if out.Share = Known(s.CSI).Share; out.Share == "" {
			out.Share = "what its documentation says: it is not known here"
		}
		return out
	case s.NFS != nil:
		at := s.NFS.Server + ":" + s.NFS.Path
		return &Source{Handle: "nfs^" + at, Facts: []string{"nfs " + at}, Server: s.NFS.Server, Driver: "nfs", Share: "the file server"}
	}
	return nil
}
