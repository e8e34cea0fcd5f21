package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestTheSecretToDeleteAVolumeWithMustBeThereToo(t *testing.T) {
	const volume = "metadata: {annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: p, volume.kubernetes.io/provisioner-deletion-secret-namespace: rook}}\n" +
		"spec: {csi: {driver: rook.rbd.csi.ceph.com, volumeHandle: a}}"
	driver := checktest.InstalledDriver("rook.rbd.csi.ceph.com")
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ceph", Name: "p"}}
	e := checktest.Estate{Volumes: []string{volume}, There: []client.Object{driver, there}}
	e.Finds(t, VolumeUsable, "FAIL ...needs Secret rook/p, which the destination does not have...spec.storage.secrets: {rook/p: NAMESPACE/NAME}")
	e.Storage = plans.Storage{Secrets: map[string]string{"rook/p": "ceph/p"}}
	e.Finds(t, VolumeUsable)
}

func TestTheClusterIDInACephHandleIsCompared(t *testing.T) {
	volume := func(handle string) string {
		return "spec: {csi: {driver: rbd.csi.ceph.com, volumeHandle: " + handle + ", volumeAttributes: {clusterID: rook, pool: fast}}}"
	}
	renamed := plans.Storage{VolumeAttributes: map[string]map[string]string{"clusterID": {"rook": "ceph-prod"}}}
	there := []client.Object{checktest.InstalledDriver("rbd.csi.ceph.com")}
	for name, c := range map[string]struct {
		handle string
		names  plans.Storage
		want   []string
	}{
		"the same":          {"0001-0004-rook-0000000000000002-4711", plans.Storage{}, nil},
		"another":           {"0001-0004-rook-0000000000000002-4711", renamed, []string{"WARN ...handle has the clusterID rook, and its attributes are to have ceph-prod...clusterIDMapping {rook: ceph-prod}"}},
		"one with a dash":   {"0001-0009-rook-ceph-0000000000000002-4711", plans.Storage{}, []string{"WARN ...handle has the clusterID rook-ceph, and its attributes are to have rook there"}},
		"of another form":   {"image-1", renamed, nil},
		"cut off":           {"0001-0024-rook", renamed, nil},
		"with no length":    {"0001-zzzz-rook-1", renamed, nil},
		"of its own length": {"0001-0004-rook", renamed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.Estate{Volumes: []string{volume(c.handle)}, Storage: c.names, There: there}.Finds(t, VolumeUsable, c.want...)
		})
	}
}

func TestClassesOfAnotherBackendAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		driver      string
		here, there map[string]string
		want        []string
	}{
		"equal":                         {"ebs.csi.aws.com", map[string]string{"type": "gp3"}, map[string]string{"type": "gp3"}, nil},
		"another kind of disk":          {"ebs.csi.aws.com", map[string]string{"type": "gp3"}, map[string]string{"type": "io2"}, []string{"WARN ...StorageClass fast has other parameters on the destination (type)...those that are made there later"}},
		"another Ceph cluster":          {"rbd.csi.ceph.com", map[string]string{"clusterID": "a"}, map[string]string{"clusterID": "b"}, []string{"FAIL ...has other parameters on the destination (clusterID)"}},
		"another pool":                  {"rook.rbd.csi.ceph.com", map[string]string{"pool": "a"}, map[string]string{"pool": "b"}, []string{"FAIL ...(pool)"}},
		"another file system":           {"cephfs.csi.ceph.com", map[string]string{"fsName": "a"}, map[string]string{"fsName": "b"}, []string{"FAIL ...(fsName)"}},
		"another image feature":         {"rbd.csi.ceph.com", map[string]string{"imageFeatures": "a"}, nil, []string{"WARN ...(imageFeatures)"}},
		"anything of an unknown driver": {"disk.example.com", map[string]string{"type": "a"}, map[string]string{"type": "b"}, []string{"FAIL ...(type)"}},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(parameters map[string]string) client.Object {
				return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: c.driver, Parameters: parameters}
			}
			volume := "spec: {storageClassName: fast, csi: {driver: " + c.driver + ", volumeHandle: a}}"
			checktest.Estate{Volumes: []string{volume}, Here: []client.Object{of(c.here)}, There: []client.Object{of(c.there), checktest.InstalledDriver(c.driver)}}.Finds(t, VolumeUsable, c.want...)
		})
	}
}

func TestADriverIsMappedOnlyToItselfUnderAnotherName(t *testing.T) {
	const ebs = "spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	to := func(driver string) plans.Storage {
		return plans.Storage{Drivers: map[string]string{"ebs.csi.aws.com": driver}}
	}
	auto := checktest.InstalledDriver("ebs.csi.eks.amazonaws.com")
	twin := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: planstest.Parsed[corev1.PersistentVolumeSpec](t, "{csi: {driver: ebs.csi.eks.amazonaws.com, volumeHandle: vol-1}}")}
	of := func(provisioner string) client.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: provisioner}
	}
	classed := "spec: {storageClassName: fast, csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	for name, c := range map[string]struct {
		checktest.Estate
		want []string
	}{
		"its other name":                   {checktest.Estate{Volumes: []string{ebs}, Storage: to("ebs.csi.eks.amazonaws.com"), There: []client.Object{auto}}, nil},
		"its other name, not there":        {checktest.Estate{Volumes: []string{ebs}, Storage: to("ebs.csi.eks.amazonaws.com")}, []string{"FAIL ...CSI driver ebs.csi.eks.amazonaws.com is not installed"}},
		"another driver":                   {checktest.Estate{Volumes: []string{ebs}, Storage: to("disk.example.com"), There: []client.Object{checktest.InstalledDriver("disk.example.com")}}, []string{"FAIL ...maps CSI driver ebs.csi.aws.com to disk.example.com, which is not known to be the same"}},
		"not mapped":                       {checktest.Estate{Volumes: []string{ebs}, There: []client.Object{auto}}, []string{"FAIL ...CSI driver ebs.csi.aws.com is not installed"}},
		"a second object for the disk":     {checktest.Estate{Volumes: []string{ebs}, Storage: to("ebs.csi.eks.amazonaws.com"), There: []client.Object{auto, twin}}, []string{"FAIL ...the destination has volume [other] for the same disk"}},
		"a class of its other name":        {checktest.Estate{Volumes: []string{classed}, Storage: to("ebs.csi.eks.amazonaws.com"), Here: []client.Object{of("ebs.csi.aws.com")}, There: []client.Object{auto, of("ebs.csi.eks.amazonaws.com")}}, nil},
		"a class that was Kubernetes' own": {checktest.Estate{Volumes: []string{classed}, Storage: to("ebs.csi.eks.amazonaws.com"), Here: []client.Object{of("kubernetes.io/aws-ebs")}, There: []client.Object{auto, of("ebs.csi.eks.amazonaws.com")}}, nil},
		"a class of another":               {checktest.Estate{Volumes: []string{classed}, Storage: to("ebs.csi.eks.amazonaws.com"), Here: []client.Object{of("ebs.csi.aws.com")}, There: []client.Object{auto, of("disk.example.com")}}, []string{"FAIL ...StorageClass fast has provisioner disk.example.com"}},
	} {
		t.Run(name, func(t *testing.T) { c.Finds(t, VolumeUsable, c.want...) })
	}
}

func TestAMigratedVolumeIsLookedAtAsItsDriversVolume(t *testing.T) {
	const source = "spec: {awsElasticBlockStore: {volumeID: aws://us-east-1a/vol-1}}"
	migrated := "metadata: {annotations: {pv.kubernetes.io/migrated-to: ebs.csi.aws.com}}\n" + source
	twin := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: planstest.Parsed[corev1.PersistentVolumeSpec](t, "{csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}")}
	there := []client.Object{checktest.InstalledDriver("ebs.csi.aws.com")}
	checktest.Estate{Volumes: []string{migrated}, There: there}.Finds(t, VolumeUsable)
	checktest.Estate{Volumes: []string{migrated}}.Finds(t, VolumeUsable, "FAIL ...CSI driver ebs.csi.aws.com is not installed")
	checktest.Estate{Volumes: []string{migrated}, There: append(there, twin)}.Finds(t, VolumeUsable, "FAIL ...the destination has volume [other] for the same disk")
	checktest.Estate{Volumes: []string{source}, There: there}.Finds(t, VolumeUsable, "FAIL ...one of Kubernetes' own that means something only inside its cluster")
	checktest.Estate{Volumes: []string{migrated}, There: there}.Finds(t, DiskOwner, "WARN ...driver ebs.csi.aws.com")
	checktest.Estate{One: true, Volumes: []string{source}}.Finds(t, VolumeUsable)
}
