package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// proven puts all annotations on a volume that a plan may put there.
func proven(pv *corev1.PersistentVolume) {
	pv.Annotations[plans.ProofAnnotation], pv.Annotations[plans.VolumeAnnotation] = "pod web-4 is gone", "{}"
	pv.Annotations["example.com/note"] = "n"
}

func TestSettle(t *testing.T) {
	check(t, []row{
		{name: "takes the mark off the claim first", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new", marked("web-abc/1/9")), volume("mall", "new")}, want: plans.Before, reason: "remove the annotations of this plan from claim data-web-4"},
		{
			name: "gives the user's policy back and leaves no annotation of the plan", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "new", proven)}, want: plans.Before, reason: "Retain -> Delete",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				pv := theVolume(t, c)
				if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || pv.Annotations["example.com/note"] != "n" {
					t.Errorf("policy %s, annotations %v", pv.Spec.PersistentVolumeReclaimPolicy, pv.Annotations)
				}
				for name := range pv.Annotations {
					if strings.HasPrefix(name, "stsmigrate.dev/") {
						t.Errorf("annotation %s is left", name)
					}
				}
			},
		},
		{name: "leaves a volume at Retain that is not bound to the claim", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "another")}, want: plans.Conflict, reason: "do not name each other"},
		{name: "leaves a volume at Retain that is being deleted", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "new", isBound, deleting[*corev1.PersistentVolume])}, want: plans.Conflict, reason: "stays at Retain"},
		{name: "leaves a volume at Retain while its claim is being deleted", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new", deleting), volume("mall", "new")}, want: plans.Conflict, reason: "stays at Retain"},
		{name: "stops at a claim behind a later stamp", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new", marked("web-abc/2/1")), volume("mall", "new")}, want: plans.Conflict, reason: "another process"},
		{name: "stops at a volume behind a later stamp", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "new", stampedOn("web-abc/2/1"))}, want: plans.Conflict, reason: "another process"},
		{name: "leaves a volume alone that is not ours", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "new", unmarked)}, want: plans.After},
	})
}

// A creation that was in progress when the plan was reversed arrives late.
func TestAClaimThatCameLateIsDeleted(t *testing.T) {
	user := pod("report", "r", "data-web-4")
	user.Namespace = "mall"
	ours := func(more ...client.Object) []client.Object {
		return append([]client.Object{claimIn("shop", "old"), volume("shop", "old")}, more...)
	}
	check(t, []row{
		{
			name: "ours", moment: at(plans.Settle, back), world: ours(claimIn("mall", "new", marked("web-abc/1/9"))), want: plans.Before, reason: "destination: delete claim data-web-4",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				var left corev1.PersistentVolumeClaimList
				if err := c.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Namespace != "shop" {
					t.Errorf("claims %v (%v), expected that of the source alone", left.Items, err)
				}
			},
		},
		{name: "ours, of an abort that was turned", moment: at(plans.Settle), world: []client.Object{claimIn("mall", "new"), volume("mall", "new"), claimIn("shop", "late", marked("web-abc/1/9"))}, want: plans.Before, reason: "source: delete claim data-web-4"},
		{name: "not while a pod mounts it", moment: at(plans.Settle, back), world: ours(claimIn("mall", "new", marked("web-abc/1/9")), user), want: plans.Conflict, reason: "is mounted by pod report"},
		{name: "not while its volume would go with it", plan: apart, moment: at(plans.Settle, back), world: []client.Object{claimIn("shop", "old"), volume("shop", "old")}, there: []client.Object{claimIn("mall", "new", marked("web-abc/1/9")), volume("mall", "new", unprotected)}, want: plans.Conflict, reason: "would destroy the disk"},
		{name: "not behind a later stamp", moment: at(plans.Settle, back), world: ours(claimIn("mall", "new", marked("web-abc/2/1"))), want: plans.Conflict, reason: "another process"},
		{name: "not a stranger's", moment: at(plans.Settle, back), world: ours(claimIn("mall", "new")), want: plans.Before, reason: "Retain -> Delete"},
	})
}

// The disk is deleted with a volume object whose reclaim policy is Delete. So the leftover object of the other
// cluster goes only while it is Retain, while another object for the same disk stays, and before the user's
// policy is restored on that one.
func TestALeftoverVolumeObjectGoesOnlyWhileItsDiskStays(t *testing.T) {
	kept := []client.Object{claimIn("mall", "new"), volume("mall", "new")}
	noVolume := kept[:1]
	goes := func(name string, there []client.Object, want plans.Standing, reason string, world ...client.Object) row {
		return row{name: name, plan: apart, moment: at(plans.Settle), world: world, there: there, want: want, reason: reason}
	}
	first := goes("first of all", kept, plans.Before, "delete the leftover volume object pv-1", volume("shop", "old"))
	first.then = func(t *testing.T, c client.Client) {
		t.Helper()
		var left corev1.PersistentVolumeList
		if err := c.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
			t.Errorf("volumes %v (%v), expected none on the source", left.Items, err)
		}
	}
	check(t, []row{
		first,
		goes("not with the policy Delete", kept, plans.Conflict, "deleting it would destroy the disk", volume("shop", "old", unprotected)),
		goes("not if it is another disk", kept, plans.Conflict, "means another disk on each side", volume("shop", "old", otherDisk)),
		goes("not while the kept object is being deleted", []client.Object{claimIn("mall", "new"), volume("mall", "new", isBound, deleting[*corev1.PersistentVolume])}, plans.Conflict, "nothing is deleted", volume("shop", "old")),
		goes("not if it is the last object for the disk", noVolume, plans.Conflict, "nothing is deleted", volume("shop", "old")),
		goes("not while the binder has it bound", kept, plans.During, "waiting for the binder", volume("shop", "old", isBound)),
		goes("not if a claim has taken it", kept, plans.Conflict, "is Bound, expected Released", volume("shop", "x", isBound), claimIn("shop", "x")),
		goes("not behind a later stamp", kept, plans.Conflict, "another process", volume("shop", "old", stampedOn("web-abc/2/1"))),
		goes("not if it is another plan's", kept, plans.Before, "Retain -> Delete", volume("shop", "old", stampedOn("other/1/2"))),
	})
}
