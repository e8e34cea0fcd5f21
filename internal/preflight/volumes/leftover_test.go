package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// A volume object that belongs to a claim is in use, and one that a plan protects is of another move. Only what no claim has is
// a leftover that may be deleted.
func TestAVolumeOfAClaimIsNoLeftover(t *testing.T) {
	const disk = "{csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}"
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   string
	}{
		"left over": {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }, "no claim has it: delete the object there if it is a leftover"},
		"bound":     {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }, "of claim shop/data-db-0...it is in use: you have probably named the wrong cluster"},
		"of a plan": {func(pv *corev1.PersistentVolume) { plans.Stamp{Plan: "db-xyz"}.Put(pv) }, "finish or abort plan db-xyz"},
	} {
		for _, named := range []string{"pv-0", "other"} {
			t.Run(name+" "+named, func(t *testing.T) {
				pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: named}, Spec: planstest.Parsed[corev1.PersistentVolumeSpec](t, disk)}
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data-db-0"}
				c.change(pv)
				checktest.Estate{Volumes: []string{"spec: " + disk}, There: []client.Object{checktest.InstalledDriver("ebs.csi.aws.com"), pv}}.Finds(t, VolumeUsable, "FAIL ..."+c.want)
			})
		}
	}
}
