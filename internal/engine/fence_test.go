package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A takeover identifies the volumes to fence by their disk.
func TestTheVolumesToFenceAreKnownByTheirDisk(t *testing.T) {
	migrated := planstest.Parsed[corev1.PersistentVolume](t, "metadata: {annotations: {pv.kubernetes.io/migrated-to: ebs.csi.aws.com}}\nspec: {awsElasticBlockStore: {volumeID: vol-1}}")
	for handle, known := range map[string]bool{
		"ebs.csi.aws.com^vol-1": true, `{"awsElasticBlockStore":{"volumeID":"vol-1"}}`: true, "ebs.csi.eks.amazonaws.com^vol-1": true, "ebs.csi.aws.com^vol-2": false,
	} {
		if holds(handle)(&migrated) != known {
			t.Errorf("%s: expected %t", handle, known)
		}
	}
}
