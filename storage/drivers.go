package storage

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PortableAnnotation with the value "true" on a CSIDriver object of the destination is the administrator's
// statement that a volume handle of that driver means the same disk in every cluster that has the driver. It
// is needed only for drivers that this package does not know.
const PortableAnnotation = "stsmigrate.dev/portable-handles"

// Portability describes what is known about the volume handles of a CSI driver.
type Portability string

const (
	// PortableHandles mean the same disk in another cluster on the same backend.
	PortableHandles Portability = "portable"
	// ClusterHandles name objects or folders of one cluster.
	ClusterHandles Portability = "cluster"
	// UnknownHandles are those of any other driver.
	UnknownHandles Portability = "unknown"
)

// Driver holds what a CSI driver documents about its volumes. None of it is tested here.
type Driver struct {
	Handles Portability
	// Share names what both clusters must share.
	Share string
	// Owner describes how tools that delete the old cluster would recognize a disk as one of its own. It is
	// empty if no such case is known.
	Owner string
	// Look is a command that shows the owner.
	Look string
	// Backend lists the parameters of a class that select the backend of its volumes. For an unknown driver,
	// every parameter may select it. All other parameters concern only volumes that do not exist yet.
	Backend []string
}

// Known returns what is known about the driver of a volume.
func Known(s *corev1.CSIPersistentVolumeSource) Driver {
	name := kind(s.Driver)
	d, ok := drivers()[name]
	switch {
	case !ok:
		return Driver{Handles: UnknownHandles}
	case name == "csi.vsphere.vmware.com" && guest(s.VolumeHandle):
		return Driver{Handles: ClusterHandles}
	}
	return d
}

func drivers() map[string]Driver {
	portable := func(share string) Driver { return Driver{Handles: PortableHandles, Share: share} }
	azure := Driver{
		Handles: PortableHandles, Share: "the Azure subscription, and a permission on its resource group",
		Owner: "the resource group in which it lies: who deletes the group deletes the disk",
		Look:  "az aks show --name CLUSTER --resource-group GROUP --query nodeResourceGroup   # deleted together with that cluster",
	}
	out := map[string]Driver{
		"ebs.csi.aws.com": {
			Handles: PortableHandles, Share: "the AWS account and the zone, and an IAM policy that lets the destination's driver have disks with the tags of the other cluster",
			Owner: "tags with the name of the old cluster (KubernetesCluster, kubernetes.io/cluster/NAME): kops and the OpenShift installer delete what has them together with the cluster, whatever the reclaim policy",
			Look:  "aws ec2 describe-tags --filters Name=resource-id,Values=DISK   # take such tags off: aws ec2 delete-tags --resources DISK --tags Key=KEY",
		},
		"pd.csi.storage.gke.io": {
			Handles: PortableHandles, Share: "the Google Cloud project and the zone",
			Owner: "labels with the name of the old cluster, by which what made the cluster may delete it",
			Look:  "gcloud compute disks describe DISK --zone ZONE --format='value(labels)'",
		},
		"cinder.csi.openstack.org": {
			Handles: PortableHandles, Share: "the OpenStack project and the zone",
			Owner: "properties with the name of the old cluster, by which what made the cluster may delete it",
			Look:  "openstack volume show DISK -c properties",
		},
		"csi.vsphere.vmware.com": {
			Handles: UnknownHandles, Share: "the vCenter",
			Owner: "its registration: the driver de-registers a disk when `finalize` deletes the source's volume object, and the destination's pod can neither attach nor detach it until the driver there has registered it again (full sync, 30 minutes by default)",
		},
		"disk.csi.azure.com": azure, "file.csi.azure.com": azure, "blob.csi.azure.com": azure,
		"efs.csi.aws.com": portable("the AWS account and the network of the file system"), "fsx.csi.aws.com": portable("the AWS account and the network of the file system"),
		"filestore.csi.storage.gke.io": portable("the Google Cloud project and the network of the file system"),
		"manila.csi.openstack.org":     portable("the OpenStack project"),
		"rbd.csi.ceph.com":             {Handles: PortableHandles, Share: "the Ceph cluster, under the same clusterID and pool ids", Backend: []string{"clusterID", "pool"}},
		"cephfs.csi.ceph.com":          {Handles: PortableHandles, Share: "the Ceph cluster, under the same clusterID and pool ids", Backend: []string{"clusterID", "fsName"}},
		"linstor.csi.linbit.com":       portable("the LINSTOR controller"),
		"nfs.csi.k8s.io":               portable("the file server"), "smb.csi.k8s.io": portable("the file server"),
	}
	for _, name := range []string{
		"driver.longhorn.io", "hostpath.csi.k8s.io", "topolvm.io", "topolvm.cybozu.com", "local.csi.openebs.io", "zfs.csi.openebs.io", "io.openebs.csi-mayastor",
		"cstor.csi.openebs.io", "jiva.csi.openebs.io", "directpv-min-io", "csi.trident.netapp.io",
	} {
		out[name] = Driver{Handles: ClusterHandles}
	}
	return out
}

// guest reports whether the handle of a vSphere disk is that of a guest cluster. Such a handle is the name of
// a claim in the Supervisor, composed of the UIDs of the cluster and of its own claim.
func guest(handle string) bool {
	const uid = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`
	return regexp.MustCompile(`^` + uid + `-` + uid + `$`).MatchString(handle)
}

// kind returns the name under which a driver is known here. EKS renames one of them in its Auto Mode, and
// Rook puts the namespace of its operator before the name.
func kind(driver string) string {
	for _, ceph := range []string{"rbd.csi.ceph.com", "cephfs.csi.ceph.com"} {
		if strings.HasSuffix(driver, "."+ceph) {
			return ceph
		}
	}
	if driver == "ebs.csi.eks.amazonaws.com" {
		return "ebs.csi.aws.com"
	}
	return driver
}
