package storage

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/clusterstest"
	"github.com/stsmigrate/stsmigrate/plans"
)

const media = "media"

// sharing returns a plan between two clusters whose pods share one volume.
func sharing() *plans.Plan {
	p := apart()
	p.Claims = nil
	p.Shared = []plans.SharedVolume{{Claim: media, Volume: "pv-1", Handle: disk}}
	return p
}

// mediaIn returns the claim of the shared volume in a namespace.
func mediaIn(namespace string, uid types.UID, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := claimIn(namespace, uid, change...)
	c.Name = media
	return c
}

// mediaVolume returns the volume behind that claim, protected by the plan.
func mediaVolume(namespace string, uid types.UID, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	manifest, err := Manifest(mediaIn("shop", "old"))
	if err != nil {
		panic(err)
	}
	return volume(namespace, uid, append([]func(*corev1.PersistentVolume){func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef.Name = media
		if uid != "" {
			pv.Status.Phase = corev1.VolumeBound
		}
		pv.Annotations[plans.ClaimAnnotation] = manifest
	}}, change...)...)
}

func TestShare(t *testing.T) {
	held := []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}
	sees := func(name string, world, there []client.Object, want plans.Standing, reason string) row {
		return row{name: name, plan: sharing, moment: at(plans.Share), world: world, there: there, want: want, reason: reason}
	}
	check(t, []row{
		sees("protects the source's volume first", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old", unprotected)}, nil, plans.Before, "Delete -> Retain"),
		sees("then makes the second volume object", held, nil, plans.Before, "create volume pv-1 for shared disk"),
		sees("then its claim", held, []client.Object{mediaVolume("mall", "")}, plans.Before, "create claim media for volume pv-1"),
		sees("is done when both name each other", held, []client.Object{mediaVolume("mall", "new"), mediaIn("mall", "new", marked("web-abc/1/20"))}, plans.After, ""),
		sees("stops at a binding of one side only", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "another")}, nil, plans.Conflict, "do not name each other"),
		sees("stops at another disk", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old", otherDisk)}, nil, plans.Conflict, "has handle disk.example.com^vol-2"),
		sees("stops at a second object that is not ours", held, []client.Object{mediaVolume("mall", "", unmarked)}, plans.Conflict, "was not created by this plan"),
		sees("makes no claim for a second object that is not Retain", held, []client.Object{mediaVolume("mall", "", unprotected)}, plans.Conflict, "expected Retain"),
		sees("makes no claim for a second object that is another disk", held, []client.Object{mediaVolume("mall", "", otherDisk)}, plans.Conflict, "has handle disk.example.com^vol-2"),
		sees("stops at a claim of a stranger", held, []client.Object{mediaVolume("mall", ""), mediaIn("mall", "new")}, plans.Conflict, "was not created by this plan"),
	})
}

// The side that gives the volume up has lost its claim and its volume object before the user's policy is back on
// the other one: with Delete on both, the deletion of one would delete the disk of the other.
func TestUnshare(t *testing.T) {
	released := func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }
	user := pod("report", "r", media)
	nameless := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }
	elsewhere := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-9" }
	kept := []client.Object{mediaVolume("mall", "new"), mediaIn("mall", "new")}
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	sees := func(name string, world, there []client.Object, want plans.Standing, reason string) row {
		return row{name: name, plan: sharing, moment: at(plans.Unshare), world: world, there: there, want: want, reason: reason}
	}
	check(t, []row{
		sees("deletes the claim first", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, kept, plans.Before, "delete claim media"),
		sees("not while a pod mounts it", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old"), user}, kept, plans.Conflict, "is mounted by pod report"),
		sees("not while its disk would go with it", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old", unprotected)}, kept, plans.Conflict, "would destroy the disk"),
		sees("then the volume object", []client.Object{mediaVolume("shop", "old", released)}, kept, plans.Before, "delete the leftover volume object pv-1"),
		sees("not with the policy Delete", []client.Object{mediaVolume("shop", "old", released, unprotected)}, kept, plans.Conflict, "deleting it would destroy the disk"),
		sees("not if the other object is another disk", []client.Object{mediaVolume("shop", "old", released)}, []client.Object{mediaVolume("mall", "new", otherDisk), mediaIn("mall", "new")}, plans.Conflict, "means another disk on each side"),
		sees("not the claim that a stranger made in its place", []client.Object{mediaIn("shop", "x"), mediaVolume("shop", "old", released)}, kept, plans.Before, "delete the leftover volume object pv-1"),
		sees("then gives the user's policy back", nil, kept, plans.Before, "Retain -> Delete"),
		sees("leaves the volume at Retain if its claim is gone", nil, kept[:1], plans.Conflict, "stays at Retain"),
		sees("leaves the volume at Retain while its claim is being deleted", nil, []client.Object{kept[0], mediaIn("mall", "new", deleting)}, plans.Conflict, "stays at Retain"),
		sees("says what to do about its claim", nil, []client.Object{kept[0], mediaIn("mall", "new", deleting)}, plans.Conflict, "delete the pods that mount it, recreate it for volume pv-1"),
		sees("waits for a new claim that is not bound", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaVolume("mall", ""), mediaIn("mall", "again", unbound)}, plans.During, "waiting for it to be bound to volume pv-1"),
		sees("waits for a new claim that no volume has been chosen for", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaVolume("mall", "again"), mediaIn("mall", "again", unbound, nameless)}, plans.During, "waiting for it to be bound to volume pv-1"),
		sees("waits for a new claim while the volume is that of the old one", []client.Object{mediaVolume("shop", "old", released)}, []client.Object{kept[0], mediaIn("mall", "again", unbound)}, plans.During, "waiting for it to be bound to volume pv-1"),
		sees("goes on with a new claim that is bound", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaVolume("mall", "again"), mediaIn("mall", "again")}, plans.Before, "source: delete claim media"),
		sees("goes on with a claim that has another disk", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{kept[0], mediaIn("mall", "again", elsewhere)}, plans.Before, "source: delete claim media"),
		sees("not the claim if the other object is another disk", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaVolume("mall", "new", otherDisk), mediaIn("mall", "new")}, plans.Conflict, "means another disk on each side"),
		sees("not the claim while the other object is being deleted", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaVolume("mall", "new", deleting), mediaIn("mall", "new")}, plans.Conflict, "volume pv-1 on the source is the only other object for its disk"),
		sees("not the claim if the other object is gone", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaIn("mall", "new", lost)}, plans.Conflict, "recreate the volume for the same disk and claim"),
		sees("goes on if the former disk has no other object", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{mediaIn("mall", "again", elsewhere)}, plans.Before, "source: delete claim media"),
		sees("and keeps the last object of that disk", []client.Object{mediaVolume("shop", "old", released)}, []client.Object{mediaIn("mall", "again", elsewhere)}, plans.Before, "its reclaim policy stays Retain"),
		sees("does not give up the last claim", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, kept[:1], plans.Conflict, "is gone"),
		sees("does not give up a claim while the other one is being deleted", []client.Object{mediaIn("shop", "old"), mediaVolume("shop", "old")}, []client.Object{kept[0], mediaIn("mall", "new", deleting)}, plans.Conflict, "is being deleted by another writer"),
	})
}

// A disk that is expanded while both sides have it has that size everywhere. The volume object that is left must say so
// too, and the claim that is left is expanded by the user, before anything tells the old size alone.
func TestASharedDiskKeepsTheSizeThatItGot(t *testing.T) {
	asks := func(size, class string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests, c.Spec.StorageClassName = sized(size), &class
		}
	}
	has := func(size string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.Capacity, pv.Status.Phase = sized(size), corev1.VolumeReleased
		}
	}
	elsewhere := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-9" }
	grew := []client.Object{mediaIn("shop", "old", asks("40Gi", "disk")), mediaVolume("shop", "old", has("40Gi"))}
	there := mediaVolume("mall", "new", has("10Gi"))
	sees := func(name string, world, there []client.Object, want plans.Standing, reason string) row {
		return row{name: name, plan: sharing, moment: at(plans.Unshare), world: world, there: there, want: want, reason: reason}
	}
	check(t, []row{
		sees("the user expands the claim first", grew, []client.Object{there, mediaIn("mall", "new", asks("10Gi", "disk"))}, plans.Conflict, "was expanded to 40Gi, and that of mall/web, which is kept, requests 10Gi; expand the latter to 40Gi too"),
		sees("then the volume gets the size", grew, []client.Object{there, mediaIn("mall", "new", asks("40Gi", "disk"))}, plans.Before, "volume pv-1 on the destination: size 40Gi"),
		sees("a claim without a class cannot be expanded", grew, []client.Object{there, mediaIn("mall", "new", asks("10Gi", ""))}, plans.Before, "volume pv-1 on the destination: size 40Gi"),
		sees("the other claim may be gone", grew[1:], []client.Object{there, mediaIn("mall", "new", asks("10Gi", "disk"))}, plans.Before, "volume pv-1 on the destination: size 40Gi"),
		sees("not behind a later stamp", grew[1:], []client.Object{mediaVolume("mall", "new", has("10Gi"), stampedOn("web-abc/2/1")), mediaIn("mall", "new")}, plans.Conflict, "volume pv-1"),
		sees("then the claim goes", grew, []client.Object{mediaVolume("mall", "new", has("40Gi")), mediaIn("mall", "new", asks("40Gi", "disk"))}, plans.Before, "delete claim media"),
		sees("a volume that is larger stays so", []client.Object{mediaVolume("shop", "old", has("10Gi"))}, []client.Object{mediaVolume("mall", "new", has("40Gi")), mediaIn("mall", "new")}, plans.Before, "delete the leftover volume object"),
		sees("a claim that was rounded up is no obstacle", []client.Object{grew[0], mediaVolume("shop", "old", has("10Gi"))}, []client.Object{there, mediaIn("mall", "new", asks("10Gi", "disk"))}, plans.Before, "delete claim media"),
		sees("nor is a disk that the user has replaced", grew, []client.Object{there, mediaIn("mall", "again", asks("10Gi", "disk"), elsewhere)}, plans.Before, "delete claim media"),
	})
	for _, from := range plans.Sides() {
		p, m, on := sharing(), at(plans.Unshare), map[plans.Side]client.Client{}
		m.From = from
		for side, namespace := range map[plans.Side]string{plans.Source: "shop", plans.Destination: "mall"} {
			size := map[bool]string{true: "40Gi", false: "10Gi"}[side == from]
			claim, pv := mediaIn(namespace, "u", asks(size, "")), mediaVolume(namespace, "u", has(size))
			if side == plans.Destination {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, plans.StampAnnotation, "web-abc/1/20")
			}
			on[side] = fake.NewClientBuilder().WithObjects(claim, pv).Build()
		}
		if s := carry(t, p, on, m, 9); s.Standing != plans.After {
			t.Errorf("the %s keeps it: %s (%s)", m.To(), s.Standing, s.Reason)
		}
		pv := theVolume(t, on[m.To()])
		if got := pv.Spec.Capacity.Storage().String(); got != "40Gi" || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
			t.Errorf("the disk has 40Gi, and the volume that the %s keeps has %s and %s", m.To(), got, pv.Spec.PersistentVolumeReclaimPolicy)
		}
	}
}

// A migration that is carried out keeps a list of the pods that concern it. The pods of other workloads that mount a
// shared claim are among them: the deletion of the claim under one of them cannot be undone.
func TestAKeptListHasThePodsThatMountASharedClaim(t *testing.T) {
	protected := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{PVCProtection} }
	for _, c := range []struct {
		user   *corev1.Pod
		want   plans.Standing
		reason string
	}{
		{pod("report", "r", media), plans.Conflict, "is mounted by pod report"},
		{pod("report", "r", "another"), plans.Before, "delete claim media"},
	} {
		on := clusters.Clusters{
			plans.Source:      fake.NewClientBuilder().WithObjects(mediaIn("shop", "old", protected), mediaVolume("shop", "old"), c.user).Build(),
			plans.Destination: fake.NewClientBuilder().WithObjects(mediaVolume("mall", "new"), mediaIn("mall", "new")).Build(),
		}
		p, kept := sharing(), clusters.NewRecent()
		kept.Keep(func() time.Time { return time.Unix(1e9, 0) }, clusterstest.Covering{})
		s, err := Looks(p, kept.Clients(p, on), nil)[plans.Unshare](t.Context(), at(plans.Unshare))
		if err != nil || s.Standing != c.want || !strings.Contains(s.Reason, c.reason) {
			t.Errorf("%s (%s), %v, expected %s (%s)", s.Standing, s.Reason, err, c.want, c.reason)
		}
	}
}
