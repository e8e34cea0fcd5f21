package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

// replaced returns the claim and the volume that ordinal 4 has on the destination since a user replaced its disk.
func replaced() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := claimIn("mall", "replaced", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" })
	return claim, volume("mall", "replaced", isBound, unmarked, unprotected, func(pv *corev1.PersistentVolume) { pv.Name = "pv-2" })
}

func madeByPlan(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{plans.PlanLabel: "web"} }

// A user may replace the disk of an ordinal before the end of the plan. No claim leads to the old volume then, and its
// marks must go all the same (S15). It stays at Retain, on both sides: only the user knows whether its data is needed.
func TestAVolumeThatWasReplacedKeepsItsDataAndNoMark(t *testing.T) {
	for name, p := range map[string]*plans.Plan{"two clusters": apart(), "one cluster": rebind()} {
		t.Run(name, func(t *testing.T) {
			claim, pv := replaced()
			there := fake.NewClientBuilder().WithObjects(claim, pv, volume("mall", "new", madeByPlan)).Build()
			on, most := map[plans.Side]client.Client{plans.Source: there, plans.Destination: there}, 2
			if !p.OneCluster() {
				on[plans.Source], most = fake.NewClientBuilder().WithObjects(volume("shop", "old")).Build(), 4
			}
			if s := carry(t, p, on, at(plans.Settle), most); s.Standing != plans.After {
				t.Errorf("after %d writes: %s (%s)", most, s.Standing, s.Reason)
			}
			for _, side := range plans.Sides() {
				pv := theVolume(t, on[side])
				if len(pv.Annotations) > 0 || len(pv.Labels) > 0 || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Spec.ClaimRef == nil {
					t.Errorf("%s: annotations %v, labels %v, %+v", side, pv.Annotations, pv.Labels, pv.Spec)
				}
			}
		})
	}
}

func TestOnlyWhatIsLeftLosesItsMarks(t *testing.T) {
	claim, pv := replaced()
	next := func(m *plans.StepContext) { m.Ordinals.Start = 3 }
	withShared := func() *plans.Plan {
		p := rebind()
		p.Shared = []plans.SharedVolume{{Claim: media, Volume: "pv-1", Handle: disk}}
		return p
	}
	keptBefore := func(pv *corev1.PersistentVolume) { pv.Annotations[plans.PolicyAnnotation] = "Retain" }
	orphan := volume("mall", "new", func(pv *corev1.PersistentVolume) { pv.Name = "pv-0" })
	check(t, []row{
		{name: "reported with the policy", moment: at(plans.Settle), world: []client.Object{claim, pv, volume("mall", "new")}, want: plans.Before, reason: "its reclaim policy stays Retain and does not become Delete again"},
		{name: "with the policy that it keeps already", moment: at(plans.Settle), world: []client.Object{claim, pv, volume("mall", "new", keptBefore)}, want: plans.Before, reason: "volume pv-1: marks off"},
		{name: "the volumes of the last ordinal come first", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "new"), orphan}, want: plans.Before, reason: "volume pv-1: reclaim policy Retain -> Delete"},
		{name: "other ordinals are not settled yet", moment: at(plans.Settle, next), world: []client.Object{claim, pv, volume("mall", "new")}, want: plans.After},
		{name: "nor are shared volumes", plan: withShared, moment: at(plans.Settle), world: []client.Object{claim, pv, volume("mall", "new")}, want: plans.After},
		{name: "until they are", plan: sharing, moment: at(plans.Unshare), there: []client.Object{mediaIn("mall", "new"), mediaVolume("mall", "new", unmarked), orphan}, want: plans.Before, reason: "destination: volume pv-0 is bound to no claim"},
		{name: "not those of another plan", moment: at(plans.Settle), world: []client.Object{claim, pv, volume("mall", "new", stampedOn("other/1/2"))}, want: plans.After},
		{name: "not behind a later stamp", moment: at(plans.Settle), world: []client.Object{claim, pv, volume("mall", "new", stampedOn("web-abc/2/1"))}, want: plans.Conflict, reason: "another process"},
	})
}
