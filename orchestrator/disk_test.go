package orchestrator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// The set is let grow over a volume of the driver's other name, and over no other disk.
func TestAnOrdinalFindsItsDiskUnderTheOtherNameOfItsDriver(t *testing.T) {
	const ours = "spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	for text, found := range map[string]bool{
		"spec: {csi: {driver: ebs.csi.eks.amazonaws.com, volumeHandle: vol-1}}": true,
		"spec: {csi: {driver: ebs.csi.eks.amazonaws.com, volumeHandle: vol-2}}": false,
	} {
		e := estate{volumes: []string{ours}}
		i := e.inspected(t)
		for _, o := range e.bound(t, "data-web-0", "pv-0", text) {
			if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
				c.Namespace = "mall"
			}
			if err := i.on[plans.Destination].Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		vols, why, err := storage.Volumes(t.Context(), i.plan, i.on, plans.Source, 0)
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		m := plans.Moment{Step: plans.Step{Ordinals: plans.Slice{Replicas: 1}, From: plans.Source}, Flight: &plans.Flight{Ordinals: plans.Slice{Replicas: 1}, From: plans.Source, Volumes: vols}}
		if why, err := i.empty(t.Context(), m); err != nil || (why == "") != found {
			t.Errorf("%s: %q, %v", text, why, err)
		}
	}
}

// A process that takes a plan over knows the volumes that it has to fence by their disk.
func TestTheVolumesToFenceAreKnownByTheirDisk(t *testing.T) {
	migrated := parsed[corev1.PersistentVolume](t, "metadata: {annotations: {pv.kubernetes.io/migrated-to: ebs.csi.aws.com}}\nspec: {awsElasticBlockStore: {volumeID: vol-1}}")
	for handle, known := range map[string]bool{
		"ebs.csi.aws.com^vol-1": true, `{"awsElasticBlockStore":{"volumeID":"vol-1"}}`: true, "ebs.csi.eks.amazonaws.com^vol-1": true, "ebs.csi.aws.com^vol-2": false,
	} {
		if holds(handle)(&migrated) != known {
			t.Errorf("%s: expected %t", handle, known)
		}
	}
}
