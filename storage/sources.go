package storage

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Source is what a plan has to know of a volume source that means the same disk in two clusters. A volume
// whose source is not in sources stays in its cluster.
type Source struct {
	// Handle names the disk, independently of the object and of the cluster.
	Handle string
	// Server is the address of the file server, "" if nodes reach none by an address of their own.
	Server string
	// Driver and Share name what carries the volume, and what both clusters must share for it.
	Driver, Share string
}

// source is a kind of volume source.
type source struct {
	// name is that of its field in the spec of a volume, by which the policies know it, and the first word of its handle unless a driver has one.
	name string
	// attached reports whether nodes attach the volume, unless its CSIDriver says otherwise. If they do not, the end
	// of its pod is the only evidence that the disk is free.
	attached bool
	// of returns nil if a volume has another source.
	of func(corev1.PersistentVolumeSource) *Source
}

// sources are the volume sources that mean the same disk in two clusters. To add one, add its row and run `make
// generate`, which makes the admission policies of it; docs/storage.md says what both clusters must share.
//
// A source that nodes attach without a VolumeAttachment must not have a row: nothing would show that the old node
// uses the disk no more (S1).
func sources() []source {
	return []source{
		{
			name: "csi", attached: true,
			of: func(pv corev1.PersistentVolumeSource) *Source {
				s := pv.CSI
				if s == nil {
					return nil
				}
				out := &Source{Handle: s.Driver + "^" + s.VolumeHandle, Driver: s.Driver}
				if out.Server = s.VolumeAttributes["server"]; out.Server == "" { // csi-driver-nfs, and csi-driver-smb
					out.Server = s.VolumeAttributes["source"]
				}
				if out.Share = Known(s).Share; out.Share == "" {
					out.Share = "what its documentation says: it is not known here"
				}
				return out
			},
		},
		{
			name: "nfs",
			of: func(pv corev1.PersistentVolumeSource) *Source {
				s := pv.NFS
				if s == nil {
					return nil
				}
				at := s.Server + ":" + s.Path
				return &Source{Handle: "nfs^" + at, Server: s.Server, Driver: "nfs", Share: "the file server"}
			},
		},
	}
}

// SourceOf returns the source of a volume, or nil if the volume means nothing in another cluster.
func SourceOf(pv *corev1.PersistentVolume) *Source {
	for _, s := range sources() {
		if out := s.of(pv.Spec.PersistentVolumeSource); out != nil {
			return out
		}
	}
	return nil
}

// Sources names the volume sources of which a plan creates volumes in another cluster.
func Sources() string {
	names := make([]string, 0, len(sources()))
	for _, s := range sources() {
		names = append(names, s.name)
	}
	return strings.Join(names, " or ")
}

// neverAttached reports whether nodes attach no volume of the source that a handle begins with.
func neverAttached(driver string) bool {
	for _, s := range sources() {
		if s.name == driver {
			return !s.attached
		}
	}
	return false
}
