package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestADiskIsTheSameUnderTheOtherNameOfItsDriver(t *testing.T) {
	const ebs = "ebs.csi.aws.com^vol-1"
	for other, same := range map[string]bool{
		ebs:                               true,
		"ebs.csi.eks.amazonaws.com^vol-1": true,
		"ebs.csi.eks.amazonaws.com^vol-2": false,
		"fsx.csi.aws.com^vol-1":           false,
		"a.ebs.csi.aws.com^vol-1":         false,
		`{"awsElasticBlockStore":{"volumeID":"aws://us-east-1a/vol-1"}}`: true,
		`{"awsElasticBlockStore":{"volumeID":"vol-2"}}`:                  false,
		"nfs^files:/vol-1": false,
		"":                 false,
	} {
		if SameDisk(ebs, other) != same || SameDisk(other, ebs) != same {
			t.Errorf("%s: expected %t", other, same)
		}
	}
	if !SameDisk("rook-ceph.rbd.csi.ceph.com^a", "openshift-storage.rbd.csi.ceph.com^a") || SameDisk("rook.rbd.csi.ceph.com^a", "rook.cephfs.csi.ceph.com^a") {
		t.Error("Rook puts the namespace of its operator before the name of a driver, and nothing else")
	}
}

// renamed returns a plan between two clusters in which the driver has different names.
func renamed() *plans.Plan {
	p := apart()
	p.Storage = plans.Storage{Drivers: map[string]string{"ebs.csi.aws.com": "ebs.csi.eks.amazonaws.com"}}
	return p
}

func onEBS(pv *corev1.PersistentVolume) {
	savedOn(pv)
	pv.Spec.CSI.Driver = "ebs.csi.aws.com"
	pv.Annotations[provisionedBy] = "ebs.csi.aws.com"
}

func flying(handle string, change ...func(*plans.StepContext)) func(*plans.StepContext) {
	return func(m *plans.StepContext) {
		m.Flight.Volumes[0].Handle = handle
		for _, f := range change {
			f(m)
		}
	}
}

func TestAVolumeMovesUnderAnotherDriverName(t *testing.T) {
	p := renamed()
	on := map[plans.Side]client.Client{
		plans.Source:      fake.NewClientBuilder().WithObjects(volume("shop", "old", onEBS)).Build(),
		plans.Destination: fake.NewClientBuilder().Build(),
	}
	if s := carry(t, p, on, at(plans.Reserve, flying("ebs.csi.aws.com^vol-1")), 1); s.Standing != plans.After {
		t.Fatalf("%s: %s", s.Standing, s.Reason)
	}
	there := theVolume(t, on[plans.Destination])
	if there.Spec.CSI.Driver != "ebs.csi.eks.amazonaws.com" || there.Spec.CSI.VolumeHandle != "vol-1" || there.Annotations[provisionedBy] != "ebs.csi.eks.amazonaws.com" {
		t.Errorf("driver %s, handle %s, made by %s", there.Spec.CSI.Driver, there.Spec.CSI.VolumeHandle, there.Annotations[provisionedBy])
	}
	there.Status.Phase = corev1.VolumeAvailable
	if err := on[plans.Destination].Status().Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if s := carry(t, p, on, at(plans.Claim, flying("ebs.csi.aws.com^vol-1")), 0); s.Standing != plans.Before {
		t.Errorf("its claim: %s: %s", s.Standing, s.Reason)
	}
	if s := carry(t, p, on, at(plans.Reserve, flying("ebs.csi.eks.amazonaws.com^vol-1", back)), 1); s.Standing != plans.After {
		t.Errorf("during an abort: %s: %s", s.Standing, s.Reason)
	}
	other := theVolume(t, on[plans.Destination]).DeepCopy()
	other.Spec.CSI.VolumeHandle = "vol-2"
	if sameDisk(other, theVolume(t, on[plans.Source])) || !sameDisk(there, theVolume(t, on[plans.Source])) {
		t.Error("the two objects are told by their driver's name, and not by their disk")
	}
}

// The kubelet reports the volumes in use under the name that the driver has in its own cluster.
func TestAVolumeInUseIsSeenUnderTheOtherNameOfItsDriver(t *testing.T) {
	for handle, name := range map[string]string{
		"ebs.csi.aws.com^vol-1":                                          "ebs.csi.eks.amazonaws.com^vol-1",
		"ebs.csi.eks.amazonaws.com^vol-1":                                "ebs.csi.eks.amazonaws.com^vol-1",
		"a.rbd.csi.ceph.com^vol-1":                                       "a.rbd.csi.ceph.com^vol-1",
		`{"awsElasticBlockStore":{"volumeID":"aws://us-east-1a/vol-1"}}`: "ebs.csi.aws.com^vol-1",
	} {
		busy := node(corev1.ConditionTrue, corev1.UniqueVolumeName("kubernetes.io/csi/"+name))
		if s := unused(busy, []plans.Volume{{Name: "pv-1", Handle: handle}}); s.Standing != plans.During {
			t.Errorf("%s, used as %s: %s", handle, name, s.Standing)
		}
		if s := unused(busy, []plans.Volume{{Name: "pv-1", Handle: handle + "2"}}); s.Standing != plans.After {
			t.Errorf("%s2: %s (%s)", handle, s.Standing, s.Reason)
		}
	}
}

func inTree(source corev1.PersistentVolumeSource, driver string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		savedOn(pv)
		pv.Spec.PersistentVolumeSource = source
		pv.Labels = map[string]string{corev1.LabelTopologyZone: "us-east-1a"}
		pv.Annotations[provisionedBy] = Provisioner(driver)
		pv.Annotations[migratedTo] = driver
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"us-east-1a"}},
		}}}}}
	}
}

// An in-tree volume that a CSI driver manages becomes a volume of that driver in the other cluster. In its
// own cluster it stays as it was.
func TestAMigratedVolumeBecomesACSIVolume(t *testing.T) {
	file := "default"
	for name, c := range map[string]struct {
		source         corev1.PersistentVolumeSource
		driver, handle string
	}{
		"EBS": {corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1", FSType: "ext4"}}, "ebs.csi.aws.com", "vol-1"},
		"PD":  {corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk-1"}}, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/us-east-1a/disks/disk-1"},
		"Azure": {
			corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d"}},
			"disk.csi.azure.com", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
		},
		"Azure file": {corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "azure-storage-account-a-secret", ShareName: "s", SecretNamespace: &file}}, "file.csi.azure.com", "#a#s#pv-1#default"},
		"Cinder":     {corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "v-1"}}, "cinder.csi.openstack.org", "v-1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := apart()
			held := volume("shop", "old", inTree(c.source, c.driver))
			handle := HandleFor(p, held)
			if want := c.driver + "^" + c.handle; handle != want {
				t.Fatalf("the plan knows the disk as %s, expected %s", handle, want)
			}
			on := map[plans.Side]client.Client{plans.Source: fake.NewClientBuilder().WithObjects(held).Build(), plans.Destination: fake.NewClientBuilder().Build()}
			if s := carry(t, p, on, at(plans.Reserve, flying(handle)), 1); s.Standing != plans.After {
				t.Fatalf("%s: %s", s.Standing, s.Reason)
			}
			there := theVolume(t, on[plans.Destination])
			if s := there.Spec.CSI; s == nil || s.Driver != c.driver || s.VolumeHandle != c.handle || there.Annotations[provisionedBy] != c.driver || there.Annotations[migratedTo] != "" {
				t.Errorf("source %v, annotations %v", there.Spec.PersistentVolumeSource, there.Annotations)
			}
			if !sameDisk(there, held) || !sameDisk(held, there) {
				t.Error("the two objects do not mean one disk")
			}
			if diff := cmp.Diff(c.source, theVolume(t, on[plans.Source]).Spec.PersistentVolumeSource); diff != "" {
				t.Errorf("the source's object: %s", diff)
			}
			if err := on[plans.Source].Delete(t.Context(), theVolume(t, on[plans.Source])); err != nil {
				t.Fatal(err)
			}
			if s := carry(t, p, on, at(plans.Reserve, flying(handle, back)), 1); s.Standing != plans.After {
				t.Fatalf("during an abort: %s: %s", s.Standing, s.Reason)
			}
			if diff := cmp.Diff(c.source, theVolume(t, on[plans.Source]).Spec.PersistentVolumeSource); diff != "" {
				t.Errorf("made again: %s", diff)
			}
		})
	}
}

func TestOnlyVolumesOfACSIDriverAreTranslated(t *testing.T) {
	ebs := corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	alone := volume("shop", "old", inTree(ebs, "ebs.csi.aws.com"), func(pv *corev1.PersistentVolume) { delete(pv.Annotations, migratedTo) })
	if got, err := AsCSI(alone); err != nil || got != alone {
		t.Errorf("%v, %v: its cluster attaches it by itself, and no VolumeAttachment would say so", got.Spec.CSI, err)
	}
	if _, err := AsCSI(volume("shop", "old", inTree(ebs, "disk.csi.azure.com"))); err == nil {
		t.Error("a volume of one driver passes for another's")
	}
	if one := rebind(); HandleFor(one, volume("shop", "old", inTree(ebs, "ebs.csi.aws.com"))) != `{"awsElasticBlockStore":{"volumeID":"vol-1"}}` {
		t.Error("in one cluster a volume is known as it ever was, by plans that are under way too")
	}
}
