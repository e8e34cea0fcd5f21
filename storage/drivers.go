package storage

// PortableAnnotation on a CSIDriver object of the destination is an administrator's word
// that a volume handle of that driver means the same disk in every cluster that has the
// driver, as "true". It is needed only for drivers that Portable does not know.
const PortableAnnotation = "stsmigrate.dev/portable-handles"

// Portability says what is known of the volume handles of a CSI driver.
type Portability string

const (
	// PortableHandles mean the same disk in another cluster on the same backend.
	PortableHandles Portability = "portable"
	// ClusterHandles name objects or folders of one cluster.
	ClusterHandles Portability = "cluster"
	// UnknownHandles are those of any other driver.
	UnknownHandles Portability = "unknown"
)

// Portable says what is known of a driver, and what both clusters must share for it.
// It is what the drivers document of their handles; none of them is tested here.
func Portable(driver string) (p Portability, share string) {
	switch driver {
	case "ebs.csi.aws.com":
		return PortableHandles, "the AWS account and the zone"
	case "efs.csi.aws.com", "fsx.csi.aws.com":
		return PortableHandles, "the AWS account and the network of the file system"
	case "disk.csi.azure.com", "file.csi.azure.com", "blob.csi.azure.com":
		return PortableHandles, "the Azure subscription, and a permission on its resource group"
	case "pd.csi.storage.gke.io", "filestore.csi.storage.gke.io":
		return PortableHandles, "the Google Cloud project and the zone"
	case "cinder.csi.openstack.org", "manila.csi.openstack.org":
		return PortableHandles, "the OpenStack project"
	case "csi.vsphere.vmware.com":
		return PortableHandles, "the vCenter"
	case "rbd.csi.ceph.com", "cephfs.csi.ceph.com":
		return PortableHandles, "the Ceph cluster, under the same clusterID and pool ids"
	case "nfs.csi.k8s.io", "smb.csi.k8s.io":
		return PortableHandles, "the file server"
	case "driver.longhorn.io", "hostpath.csi.k8s.io", "topolvm.io", "local.csi.openebs.io", "zfs.csi.openebs.io", "io.openebs.csi-mayastor":
		return ClusterHandles, ""
	}
	return UnknownHandles, ""
}
