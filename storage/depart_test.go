package storage

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

func departing(p *plans.Plan, on map[plans.Side]client.Client, _ plans.Op) plans.Look {
	return Departing(p, on)
}

func readopted(m *plans.StepContext) { m.Readopt = true }

// An ordinal stays up while one of its claims or volumes is not as the later steps need it.
func TestNoOrdinalLeavesWithAVolumeThatCannotFollow(t *testing.T) {
	leaves := func(name string, want plans.Standing, reason string, world ...client.Object) row {
		return row{name: name, moment: at(plans.Shrink), world: world, want: want, reason: reason}
	}
	ofBackup := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Backup", Name: "b", UID: "o"}}
	}
	noPolicy := func(pv *corev1.PersistentVolume) { delete(pv.Annotations, plans.PolicyAnnotation) }
	noManifest := func(pv *corev1.PersistentVolume) { delete(pv.Annotations, plans.ClaimAnnotation) }
	ofAnother := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }
	named := func(name string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Name = name }
	}
	claim, pv, former := claimIn("shop", "old"), volume("shop", "old", isBound), volume("shop", "older", named("pv-0"))
	checkLook(t, []row{
		leaves("all is well", plans.After, "", claim, pv),
		leaves("the claim is kept by a program that reads it", plans.During, "is kept by finalizer example.com/backup", claimIn("shop", "old", keptBackUp), pv),
		leaves("the claim has an owner", plans.Conflict, "owned by Backup b", claimIn("shop", "old", ofBackup), pv),
		leaves("the claim is being deleted", plans.Conflict, "is being deleted by another writer", claimIn("shop", "old", deleting), pv),
		leaves("the volume is not Retain", plans.Conflict, "expected Retain", claim, volume("shop", "old", isBound, unprotected)),
		leaves("the volume is another plan's", plans.Conflict, "belongs to plan other", claim, volume("shop", "old", isBound, stampedOn("other/1/2"))),
		leaves("a later process has stamped the volume", plans.Conflict, "another process", claim, volume("shop", "old", isBound, stampedOn("web-abc/2/1"))),
		leaves("the volume has lost our mark", plans.Conflict, "no longer carries the mark", claim, volume("shop", "old", isBound, unmarked)),
		leaves("the user's policy is not on the volume", plans.Conflict, "no longer carries the mark", claim, volume("shop", "old", isBound, noPolicy)),
		leaves("the source's claim is not on the volume", plans.Conflict, "no longer carries the mark", claim, volume("shop", "old", isBound, noManifest)),
		leaves("the name of the new claim is taken", plans.Conflict, "was not created by this plan", claim, pv, claimIn("mall", "x")),
		leaves("the name of the new claim is taken, for another volume", plans.Conflict, "delete it if its data is not needed", claim, pv, claimIn("mall", "x", marked("web-abc/1/2"), ofAnother)),
		leaves("the name of the new claim is about to be free", plans.During, "is being deleted", claim, pv, claimIn("mall", "x", deleting)),
		{
			name: "the user lets a volume be protected again", moment: at(plans.Shrink, readopted), world: []client.Object{claim, volume("shop", "old", isBound, unmarked)}, want: plans.Before, reason: "Retain -> Retain",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				if !(plans.Stamp{Plan: "web-abc"}).Mine(theVolume(t, c)) {
					t.Errorf("annotations %v", theVolume(t, c).Annotations)
				}
			},
		},
		{name: "not one in the place of the volume that is protected", moment: at(plans.Shrink, readopted), world: []client.Object{claim, volume("shop", "old", isBound, unmarked), former}, want: plans.Conflict, reason: "the data is on volume pv-0, which this plan protects for it"},
		{name: "nor one that a takeover has stamped", moment: at(plans.Shrink, readopted), world: []client.Object{claim, volume("shop", "old", isBound, noPolicy, noManifest), former}, want: plans.Conflict, reason: "the data is on volume pv-0"},
		leaves("nor is it said to have lost its marks", plans.Conflict, "was recreated and is bound to volume pv-1", claim, volume("shop", "old", isBound, unmarked, unprotected), former),
		{name: "the user has given the protected one up", moment: at(plans.Shrink, readopted), world: []client.Object{claim, volume("shop", "old", isBound, unmarked), volume("shop", "older", unmarked, named("pv-0"))}, want: plans.Before, reason: "Retain -> Retain"},
		{name: "but not one that is being deleted", moment: at(plans.Shrink, readopted), world: []client.Object{claim, volume("shop", "old", isBound, unmarked, deleting)}, want: plans.Conflict, reason: "is being deleted by another writer"},
	}, departing)
}

// A pod that arrives waits for the claim of a shared volume, and one that is deleted does not come back by itself.
func TestNoOrdinalLeavesForASideWithoutItsSharedClaim(t *testing.T) {
	sees := func(name string, there []client.Object, want plans.Standing, reason string) row {
		return row{name: name, plan: sharing, moment: at(plans.Shrink), world: []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, there: there, want: want, reason: reason}
	}
	second := mediaVolume("mall", "new")
	checkLook(t, []row{
		sees("it is there", []client.Object{second, mediaIn("mall", "new")}, plans.After, ""),
		sees("it is being deleted", []client.Object{second, mediaIn("mall", "new", deleting)}, plans.Conflict, "claim media of mall/web is being deleted by another writer"),
		sees("it is gone", []client.Object{second}, plans.Conflict, "claim media of mall/web is gone; its volume pv-1 stays at Retain: recreate the claim for it"),
		sees("it is recreated and not bound yet", []client.Object{second, mediaIn("mall", "again", unbound)}, plans.During, "waiting for it to be bound to volume pv-1"),
		{name: "an abort looks at that of the source", plan: sharing, moment: at(plans.Shrink, func(m *plans.StepContext) { m.From = plans.Destination }), world: []client.Object{mediaVolume("shop", "old")}, there: []client.Object{second, mediaIn("mall", "new")}, want: plans.Conflict, reason: "claim media of shop/web is gone"},
	}, departing)
}

// This program sends no other policy than Retain while it protects a volume. If its own write has another one, admission
// has changed it, and the user must not look for another writer.
func TestWhoChangedAReclaimPolicyIsNamed(t *testing.T) {
	for manager, want := range map[string]string{
		"kubectl-patch": "it was changed back by kubectl-patch (Update)",
		"stsmigrate":    "it was changed back by the admission of its cluster, such as a mutating webhook or policy",
		"":              "it was changed back by an unknown client",
	} {
		pv := volume("shop", "old", isBound, unprotected)
		if manager != "" {
			pv.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:persistentVolumeReclaimPolicy":{}}}`),
			}}
		}
		if why := (keeper{}).unsafe(pv, plans.Volume{Name: pv.Name, Handle: disk}); !strings.Contains(why, want) {
			t.Errorf("%s: %s", manager, why)
		}
	}
}

// The volume object that the other cluster has already must be as this plan left it.
func TestNoOrdinalLeavesForAVolumeObjectThatCannotTakeIt(t *testing.T) {
	leaves := func(name string, want plans.Standing, reason string, there ...client.Object) row {
		return row{name: name, plan: apart, moment: at(plans.Shrink), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound)}, there: there, want: want, reason: reason}
	}
	empty := func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }
	translated := func() *plans.Plan {
		p := apart()
		p.Storage.Classes = map[string]string{"fast": "any"}
		return p
	}
	arrived := []client.Object{claimIn("mall", "new"), volume("mall", "new", isBound)}
	checkLook(t, []row{
		leaves("there is none yet", plans.After, ""),
		leaves("it is as this plan left it", plans.After, "", volume("mall", "")),
		leaves("it is not Retain", plans.Conflict, "on the destination, volume pv-1 has reclaim policy Delete", volume("mall", "", unprotected)),
		leaves("it is another disk", plans.Conflict, "has handle disk.example.com^vol-2", volume("mall", "", otherDisk)),
		leaves("it is another plan's", plans.Conflict, "belongs to plan other", volume("mall", "", stampedOn("other/1/2"))),
		leaves("it is promised to another claim", plans.Conflict, "is not promised to claim mall/data-web-4", volume("elsewhere", "")),
		leaves("any claim may take it", plans.Conflict, "is not promised to claim mall/data-web-4", volume("mall", "", empty)),
		leaves("it has lost our mark", plans.Conflict, "no longer carries the marks", volume("mall", "", unmarked)),
		{name: "the source's is gone, and no copy of it was saved", plan: translated, moment: at(plans.Shrink, back), there: arrived, want: plans.Conflict, reason: "recreate it"},
		{name: "the source's is gone, and can be derived", plan: apart, moment: at(plans.Shrink, back), there: arrived, want: plans.After},
	}, departing)
}

func TestTheVolumesOfAWaveAreNotedBeforeItLeaves(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(claimIn("shop", "old"), volume("shop", "old", isBound)).Build()
	s, err := Departing(rebind(), map[plans.Side]client.Client{plans.Source: c, plans.Destination: c})(t.Context(), at(plans.Shrink))
	want := []plans.Volume{{Ordinal: 4, Template: "data", Claim: "old", Name: "pv-1", Handle: disk}}
	if err != nil || s.Undo.Flight == nil || !slices.Equal(s.Undo.Flight.Volumes, want) || !s.Undo.Flight.Ordinals.Has(4) {
		t.Errorf("%v, %+v, expected %+v", err, s.Undo.Flight, want)
	}
}
