package preflight

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func TestTheSecretToDeleteAVolumeWithMustBeThereToo(t *testing.T) {
	const volume = "metadata: {annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: p, volume.kubernetes.io/provisioner-deletion-secret-namespace: rook}}\n" +
		"spec: {csi: {driver: rook.rbd.csi.ceph.com, volumeHandle: a}}"
	driver := installedDriver("rook.rbd.csi.ceph.com")
	there := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ceph", Name: "p"}}
	e := estate{volumes: []string{volume}, there: []client.Object{driver, there}}
	e.finds(t, volumesUsable, "FAIL ...needs Secret rook/p, which the destination does not have...spec.storage.secrets: {rook/p: NAMESPACE/NAME}")
	e.storage = plans.Storage{Secrets: map[string]string{"rook/p": "ceph/p"}}
	e.finds(t, volumesUsable)
}

func TestTheClusterIDInAHandleOfCephIsComparedWithTheDestinations(t *testing.T) {
	volume := func(handle string) string {
		return "spec: {csi: {driver: rbd.csi.ceph.com, volumeHandle: " + handle + ", volumeAttributes: {clusterID: rook, pool: fast}}}"
	}
	renamed := plans.Storage{VolumeAttributes: map[string]map[string]string{"clusterID": {"rook": "ceph-prod"}}}
	there := []client.Object{installedDriver("rbd.csi.ceph.com")}
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
			estate{volumes: []string{volume(c.handle)}, storage: c.names, there: there}.finds(t, volumesUsable, c.want...)
		})
	}
}

func TestOnlyParametersThatNameAnotherBackendRefuseAClass(t *testing.T) {
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
			estate{volumes: []string{volume}, here: []client.Object{of(c.here)}, there: []client.Object{of(c.there), installedDriver(c.driver)}}.finds(t, volumesUsable, c.want...)
		})
	}
}

func TestADriverIsMappedOnlyToItselfUnderAnotherName(t *testing.T) {
	const ebs = "spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	to := func(driver string) plans.Storage {
		return plans.Storage{Drivers: map[string]string{"ebs.csi.aws.com": driver}}
	}
	auto := installedDriver("ebs.csi.eks.amazonaws.com")
	twin := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: planstest.Parsed[corev1.PersistentVolumeSpec](t, "{csi: {driver: ebs.csi.eks.amazonaws.com, volumeHandle: vol-1}}")}
	of := func(provisioner string) client.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: provisioner}
	}
	classed := "spec: {storageClassName: fast, csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	for name, c := range map[string]struct {
		estate
		want []string
	}{
		"its other name":                   {estate{volumes: []string{ebs}, storage: to("ebs.csi.eks.amazonaws.com"), there: []client.Object{auto}}, nil},
		"its other name, not there":        {estate{volumes: []string{ebs}, storage: to("ebs.csi.eks.amazonaws.com")}, []string{"FAIL ...CSI driver ebs.csi.eks.amazonaws.com is not installed"}},
		"another driver":                   {estate{volumes: []string{ebs}, storage: to("disk.example.com"), there: []client.Object{installedDriver("disk.example.com")}}, []string{"FAIL ...maps CSI driver ebs.csi.aws.com to disk.example.com, which is not known to be the same"}},
		"not mapped":                       {estate{volumes: []string{ebs}, there: []client.Object{auto}}, []string{"FAIL ...CSI driver ebs.csi.aws.com is not installed"}},
		"a second object for the disk":     {estate{volumes: []string{ebs}, storage: to("ebs.csi.eks.amazonaws.com"), there: []client.Object{auto, twin}}, []string{"FAIL ...the destination has volume [other] for the same disk"}},
		"a class of its other name":        {estate{volumes: []string{classed}, storage: to("ebs.csi.eks.amazonaws.com"), here: []client.Object{of("ebs.csi.aws.com")}, there: []client.Object{auto, of("ebs.csi.eks.amazonaws.com")}}, nil},
		"a class that was Kubernetes' own": {estate{volumes: []string{classed}, storage: to("ebs.csi.eks.amazonaws.com"), here: []client.Object{of("kubernetes.io/aws-ebs")}, there: []client.Object{auto, of("ebs.csi.eks.amazonaws.com")}}, nil},
		"a class of another":               {estate{volumes: []string{classed}, storage: to("ebs.csi.eks.amazonaws.com"), here: []client.Object{of("ebs.csi.aws.com")}, there: []client.Object{auto, of("disk.example.com")}}, []string{"FAIL ...StorageClass fast has provisioner disk.example.com"}},
	} {
		t.Run(name, func(t *testing.T) { c.finds(t, volumesUsable, c.want...) })
	}
}

func TestAMigratedVolumeIsLookedAtAsItsDriversVolume(t *testing.T) {
	const source = "spec: {awsElasticBlockStore: {volumeID: aws://us-east-1a/vol-1}}"
	migrated := "metadata: {annotations: {pv.kubernetes.io/migrated-to: ebs.csi.aws.com}}\n" + source
	twin := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: planstest.Parsed[corev1.PersistentVolumeSpec](t, "{csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}")}
	there := []client.Object{installedDriver("ebs.csi.aws.com")}
	estate{volumes: []string{migrated}, there: there}.finds(t, volumesUsable)
	estate{volumes: []string{migrated}}.finds(t, volumesUsable, "FAIL ...CSI driver ebs.csi.aws.com is not installed")
	estate{volumes: []string{migrated}, there: append(there, twin)}.finds(t, volumesUsable, "FAIL ...the destination has volume [other] for the same disk")
	estate{volumes: []string{source}, there: there}.finds(t, volumesUsable, "FAIL ...one of Kubernetes' own that means something only inside its cluster")
	estate{volumes: []string{migrated}, there: there}.finds(t, disksOutlive, "WARN ...driver ebs.csi.aws.com")
	estate{one: true, volumes: []string{source}}.finds(t, volumesUsable)
}
