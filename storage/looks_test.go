package storage

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

const disk = "disk.example.com^vol-1"

func rebind() *plans.Plan {
	return &plans.Plan{
		ID: "web-abc", Start: 0, Count: 5,
		Source:      plans.Ref{Cluster: "one", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "one", Namespace: "mall", Name: "web"},
		Claims:      []plans.ClaimMove{{Template: "data", Mode: plans.Rebind}},
	}
}

// claimIn returns the bound claim of ordinal 4 in a namespace.
func claimIn(namespace string, uid types.UID, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-4", UID: uid}}
	c.Spec.VolumeName = "pv-1"
	c.Status.Phase = corev1.ClaimBound
	for _, f := range change {
		f(c)
	}
	return c
}

// volume returns the volume behind that claim, protected by the plan.
func volume(namespace string, uid types.UID, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	manifest, err := Manifest(claimIn("shop", "old"))
	if err != nil {
		panic(err)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Annotations: map[string]string{
		plans.StampAnnotation: "web-abc/1/2", plans.PolicyAnnotation: "Delete", plans.ClaimAnnotation: manifest,
	}}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-1"}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	ref := RefTo(namespace, "data-web-4", uid)
	pv.Spec.ClaimRef = &ref
	pv.Status.Phase = corev1.VolumeReleased
	if uid == "" {
		pv.Status.Phase = corev1.VolumeAvailable
	}
	for _, f := range change {
		f(pv)
	}
	return pv
}

func marked(stamp string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{plans.StampAnnotation: stamp} }
}

func node(ready corev1.ConditionStatus, used ...corev1.UniqueVolumeName) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	n.Status.VolumesInUse = used
	return n
}

func pod(name string, uid types.UID, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

func attachment() *storagev1.VolumeAttachment {
	name := "pv-1"
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va-1"}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
	}}
}

// at returns the StepContext of a step that moves ordinal 4 from source to destination.
func at(op plans.Op, change ...func(*plans.StepContext)) plans.StepContext {
	m := plans.StepContext{
		Step: plans.Step{Seq: 20, Op: op, Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source}, Began: true,
		Stamp: plans.Stamp{Plan: "web-abc", Epoch: 1, Seq: 20},
		Flight: &plans.Flight{
			Ordinals: plans.Slice{Start: 4, Replicas: 1}, From: plans.Source, Pods: []plans.Pod{{Ordinal: 4, UID: "pod-uid", Node: "n1"}},
			Volumes: []plans.Volume{{Ordinal: 4, Template: "data", Claim: "old", Name: "pv-1", Handle: disk}},
		},
	}
	for _, f := range change {
		f(&m)
	}
	return m
}

func notBegun(m *plans.StepContext) { m.Began = false }

func reversed(m *plans.StepContext) { m.Reversed = true }

// unprotected gives a volume the reclaim policy that would delete its disk.
func unprotected(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
}

func isBound(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }

// unmarked removes the annotations of the plan from a volume.
func unmarked(pv *corev1.PersistentVolume) { pv.Annotations = nil }

// otherDisk lets a volume object mean another disk than the one that the plan knows.
func otherDisk(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "vol-2" }

// stampedOn sets the stamp of a volume.
func stampedOn(stamp string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Annotations[plans.StampAnnotation] = stamp }
}

// deleting gives an object a deletion that its finalizers still delay.
func deleting[T client.Object](o T) {
	o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1e9, 0)})
	o.SetFinalizers([]string{"example.com/late"})
}

type row struct {
	name   string
	plan   func() *plans.Plan // rebind, if it is nil
	moment plans.StepContext
	world  []client.Object
	there  []client.Object // the objects of the destination's cluster, for a plan between two clusters
	want   plans.Standing
	reason string
	// then inspects the objects of the source's cluster after the write, for Before.
	then func(*testing.T, client.Client)
}

func check(t *testing.T, rows []row) {
	t.Helper()
	checkLook(t, rows, func(p *plans.Plan, on map[plans.Side]client.Client, op plans.Op) plans.Look {
		return Looks(p, on, nil)[op]
	})
}

func checkLook(t *testing.T, rows []row, look func(*plans.Plan, map[plans.Side]client.Client, plans.Op) plans.Look) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := rebind()
			if r.plan != nil {
				p = r.plan()
			}
			c := fake.NewClientBuilder().WithObjects(r.world...).Build()
			on := map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}
			if !p.OneCluster() {
				on[plans.Destination] = fake.NewClientBuilder().WithObjects(r.there...).Build()
			}
			s, err := look(p, on, r.moment.Op)(t.Context(), r.moment)
			if err != nil {
				t.Fatal(err)
			}
			if s.Standing != r.want || !strings.Contains(s.Reason, r.reason) {
				t.Fatalf("got %s (%s), expected %s (%s)", s.Standing, s.Reason, r.want, r.reason)
			}
			planstest.Unread(t, on, func(on map[plans.Side]client.Client) (plans.Observation, error) {
				return look(p, on, r.moment.Op)(t.Context(), r.moment)
			})
			if strings.HasPrefix(s.Reason, ";") {
				t.Errorf("the reason is no sentence of its own: %q", s.Reason)
			}
			if r.then == nil {
				return
			}
			if err := s.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.then(t, c)
		})
	}
}

func theVolume(t *testing.T, c client.Client) *corev1.PersistentVolume {
	t.Helper()
	var pv corev1.PersistentVolume
	if err := c.Get(t.Context(), client.ObjectKey{Name: "pv-1"}, &pv); err != nil {
		t.Fatal(err)
	}
	return &pv
}

func labelled(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"team": "a"} }

// keptBackUp is a claim with the finalizer of a program that still reads it.
func keptBackUp(c *corev1.PersistentVolumeClaim) {
	c.Finalizers = []string{PVCProtection, "example.com/backup"}
}

func TestHold(t *testing.T) {
	free := func(pv *corev1.PersistentVolume) {
		pv.Annotations, pv.Status.Phase = nil, corev1.VolumeBound
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}
	owner := func(kind, name string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "o"}}
		}
	}
	check(t, []row{
		{
			name: "saves policy and claim and sets Retain in one write", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", free)},
			want: plans.Before, reason: "Delete -> Retain", then: func(t *testing.T, c client.Client) {
				t.Helper()
				pv := theVolume(t, c)
				if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Annotations[plans.PolicyAnnotation] != "Delete" || !strings.Contains(pv.Annotations[plans.ClaimAnnotation], "data-web-4") {
					t.Errorf("policy %s, annotations %v", pv.Spec.PersistentVolumeReclaimPolicy, pv.Annotations)
				}
			},
		},
		{name: "is done when protected", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old"), volume("shop", "old")}, want: plans.After},
		{
			name: "keeps the user's policy when the claim has changed since", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old", labelled), volume("shop", "old")},
			want: plans.Before, reason: "Retain -> Retain", then: func(t *testing.T, c client.Client) {
				t.Helper()
				if saved := theVolume(t, c).Annotations[plans.PolicyAnnotation]; saved != "Delete" {
					t.Errorf("the saved policy is %s", saved)
				}
			},
		},
		{
			name: "sets Retain again on a volume with our mark", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", unprotected)},
			want: plans.Before, reason: "Delete -> Retain", then: func(t *testing.T, c client.Client) {
				t.Helper()
				if policy := theVolume(t, c).Spec.PersistentVolumeReclaimPolicy; policy != corev1.PersistentVolumeReclaimRetain {
					t.Errorf("the policy is %s", policy)
				}
			},
		},
		{name: "stops at a volume of another plan", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", stampedOn("other/1/2"))}, want: plans.Conflict, reason: "belongs to plan other"},
		{name: "stops at a claim that is being deleted", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old", deleting), volume("shop", "old")}, want: plans.Conflict, reason: "is being deleted by another writer"},
		{name: "waits for the owner reference of the set to go", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old", owner("StatefulSet", "web")), volume("shop", "old")}, want: plans.During, reason: "owner reference"},
		{name: "stops at an owner that is a stranger", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old", owner("Backup", "b")), volume("shop", "old")}, want: plans.Conflict, reason: "owned by Backup b"},
		{name: "stops at a claim that is missing", moment: at(plans.Protect), want: plans.Conflict, reason: "does not exist"},
		{name: "stops at a binding of one side only", moment: at(plans.Protect), world: []client.Object{claimIn("shop", "old"), volume("shop", "other")}, want: plans.Conflict, reason: "do not name each other"},
	})
}

func TestVacate(t *testing.T) {
	there, terminating := pod("web-4", "pod-uid"), pod("web-4", "pod-uid")
	terminating.DeletionTimestamp, terminating.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"a/b"}
	check(t, []row{
		{name: "waits for the pod to be deleted", moment: at(plans.Vacate), world: []client.Object{there}, want: plans.During, reason: "will be deleted by the controller"},
		{name: "waits for the pod", moment: at(plans.Vacate), world: []client.Object{terminating}, want: plans.During, reason: "terminating"},
		{name: "stops at another pod of that name", moment: at(plans.Vacate), world: []client.Object{pod("web-4", "another")}, want: plans.Conflict, reason: "was recreated after it left the set's range, and not by the set"},
		{name: "does not believe a node that is gone", moment: at(plans.Vacate), want: plans.Conflict, reason: "no longer exists"},
		{name: "does not believe a node that is not Ready", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionUnknown)}, want: plans.During, reason: "may still run"},
		{name: "waits while the node uses the volume", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue, "kubernetes.io/csi/"+disk)}, want: plans.During, reason: "in use"},
		{name: "waits for the attachment", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue), attachment()}, want: plans.During, reason: "VolumeAttachment va-1"},
		{name: "is done when all is proven", moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue)}, want: plans.After},
		{name: "waits for an attachment in the destination's cluster", plan: apart, moment: at(plans.Vacate), world: []client.Object{node(corev1.ConditionTrue)}, there: []client.Object{attachment()}, want: plans.During, reason: "VolumeAttachment va-1"},
		{name: "waits for a pod where none should have been", moment: at(plans.Vacate, reversed), world: []client.Object{there}, want: plans.During, reason: "will be deleted by the controller"},
		{name: "waits for an attachment where no pod should have been", plan: apart, moment: at(plans.Vacate, reversed), world: []client.Object{attachment()}, want: plans.During, reason: "VolumeAttachment va-1"},
		{name: "stops when the journal does not know the pod", moment: at(plans.Vacate, func(m *plans.StepContext) { m.Flight = nil }), want: plans.Conflict, reason: "does not know"},
	})
}

func TestRelease(t *testing.T) {
	check(t, []row{
		{
			name: "deletes the claim", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound)}, want: plans.Before, reason: "delete claim data-web-4",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data-web-4"}, &corev1.PersistentVolumeClaim{}); client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("the claim is still there: %v", err)
				}
			},
		},
		{
			name: "saves a claim that has changed before it deletes it", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old", labelled), volume("shop", "old", isBound)}, want: plans.Before, reason: "reclaim policy",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				if pv := theVolume(t, c); !strings.Contains(pv.Annotations[plans.ClaimAnnotation], "team") {
					t.Errorf("saved claim: %s", pv.Annotations[plans.ClaimAnnotation])
				}
			},
		},
		{name: "stops when the volume is not Retain", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, unprotected)}, want: plans.Conflict, reason: "expected Retain"},
		{name: "waits for pods that mount the claim", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound), pod("backup", "b", "data-web-4")}, want: plans.During, reason: "mounted by pod backup"},
		{name: "stops at another claim of that name", moment: at(plans.Release), world: []client.Object{claimIn("shop", "new"), volume("shop", "old")}, want: plans.Conflict, reason: "is not the claim that this plan releases"},
		{name: "stops when somebody else deleted the claim", moment: at(plans.Release, notBegun), world: []client.Object{volume("shop", "old")}, want: plans.Conflict, reason: "was deleted by another writer"},
		{name: "does not wait for the binder", moment: at(plans.Release), world: []client.Object{volume("shop", "old", isBound)}, want: plans.After},
		{name: "is done when the volume is Released", moment: at(plans.Release), world: []client.Object{volume("shop", "old")}, want: plans.After},
		{name: "stops at a volume that is another disk", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, otherDisk)}, want: plans.Conflict, reason: "has handle disk.example.com^vol-2, expected " + disk},
		{name: "stops at a volume that is being deleted", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, deleting)}, want: plans.Conflict, reason: "is being deleted by another writer"},
		{name: "stops at a volume without our mark", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, unmarked)}, want: plans.Conflict, reason: "no longer carries the mark of this plan"},
		{name: "waits for who keeps the claim", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old", keptBackUp), volume("shop", "old", isBound)}, want: plans.During, reason: "is kept by finalizer example.com/backup"},
		{name: "stops at a stranger's claim on a side where nothing ran", moment: at(plans.Release, back, reversed), world: []client.Object{claimIn("mall", "new"), volume("shop", "old")}, want: plans.Conflict, reason: "was not created by this plan"},
		{name: "stops behind a later stamp", moment: at(plans.Release), world: []client.Object{claimIn("shop", "old", marked("web-abc/2/1")), volume("shop", "old")}, want: plans.Conflict, reason: "another process"},
	})
}

func TestReserve(t *testing.T) {
	empty := func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }
	check(t, []row{
		{
			name: "points the volume at the new claim in one write", moment: at(plans.Reserve), world: []client.Object{volume("shop", "old")}, want: plans.Before, reason: "claimRef shop/data-web-4 -> mall/data-web-4",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				if ref := theVolume(t, c).Spec.ClaimRef; ref == nil || ref.Namespace != "mall" || ref.Name != "data-web-4" || ref.UID != "" {
					t.Errorf("claimRef is %v", ref)
				}
			},
		},
		{name: "stops while the old claim exists", moment: at(plans.Reserve), world: []client.Object{volume("shop", "old"), claimIn("shop", "old")}, want: plans.Conflict, reason: "exists again"},
		{name: "stops at an empty claimRef", moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", empty)}, want: plans.Conflict, reason: "empty claimRef"},
		{name: "stops at a claimRef of a stranger", moment: at(plans.Reserve), world: []client.Object{volume("elsewhere", "x")}, want: plans.Conflict, reason: "is promised to claim elsewhere/data-web-4, expected mall/data-web-4"},
		{name: "takes the UID of a claim that is gone out", moment: at(plans.Reserve), world: []client.Object{volume("mall", "gone")}, want: plans.Before, reason: "claim mall/data-web-4 can have it"},
		{name: "is done without a UID", moment: at(plans.Reserve), world: []client.Object{volume("mall", "")}, want: plans.After},
		{name: "is done with the UID of the claim", moment: at(plans.Reserve), world: []client.Object{volume("mall", "new"), claimIn("mall", "new")}, want: plans.After},
		{name: "waits for a claim of this side that is still being deleted", moment: at(plans.Reserve), world: []client.Object{volume("mall", "new"), claimIn("mall", "new", deleting)}, want: plans.During, reason: "is being deleted"},
		{name: "stops behind a later stamp", moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", stampedOn("web-abc/2/1"))}, want: plans.Conflict, reason: "another process"},
		{name: "stops at a volume without our mark", moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", unmarked)}, want: plans.Conflict, reason: "is not protected by this plan"},
		{name: "stops at a volume that is not Retain", moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", unprotected)}, want: plans.Conflict, reason: "expected Retain"},
		{name: "waits while the source has the volume attached again", plan: apart, moment: at(plans.Reserve), world: []client.Object{volume("shop", "old"), attachment()}, want: plans.During, reason: "VolumeAttachment va-1"},
		{name: "makes no second object of a volume that is not Retain", plan: apart, moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", unprotected)}, want: plans.Conflict, reason: "expected Retain"},
		{name: "makes no second object of a volume without our mark", plan: apart, moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", unmarked)}, want: plans.Conflict, reason: "is not protected by this plan"},
		{name: "makes no second object of a volume that any claim may take", plan: apart, moment: at(plans.Reserve), world: []client.Object{volume("shop", "old", empty)}, want: plans.Conflict, reason: "has another claimRef than shop/data-web-4, or none"},
		{name: "stops when the volume is gone", moment: at(plans.Reserve), want: plans.Conflict, reason: "is gone"},
	})
}

// A claim that was read as absent may have come before its volume was read, from a process that was fenced. Its volume
// keeps its UID: without it Kubernetes calls the claim Lost.
func TestReserveKeepsTheUIDOfAClaimThatCameMeanwhile(t *testing.T) {
	absent := true
	api := fake.NewClientBuilder().WithObjects(volume("mall", "new"), claimIn("mall", "new")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.PersistentVolumeClaim); is && key.Namespace == "mall" && absent {
				absent = false
				return apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	p, reads := rebind(), &clusters.ReadCache{}
	reads.Clear()
	on := reads.Clients(p, clusters.Clusters{plans.Source: api, plans.Destination: api})
	m := at(plans.Reserve)
	if s, err := Looks(p, on, nil)[m.Op](t.Context(), m); err != nil || s.Standing != plans.After || absent {
		t.Errorf("%s (%s), %v, expected %s", s.Standing, s.Reason, err, plans.After)
	}
}

func TestClaim(t *testing.T) {
	pending := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }
	other := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" }
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	unseen := func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }
	ofAnother := func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "data-web-3" }
	check(t, []row{
		{
			name: "makes the claim for its volume", moment: at(plans.Claim), world: []client.Object{volume("mall", "")}, want: plans.Before, reason: "create claim data-web-4",
			then: func(t *testing.T, c client.Client) {
				t.Helper()
				var claim corev1.PersistentVolumeClaim
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: "mall", Name: "data-web-4"}, &claim); err != nil || claim.Spec.VolumeName != "pv-1" {
					t.Errorf("claim for %q, %v", claim.Spec.VolumeName, err)
				}
			},
		},
		{name: "waits until the binder has seen the volume as reserved", moment: at(plans.Claim), world: []client.Object{volume("mall", "", unseen)}, want: plans.During, reason: "waiting for the binder"},
		{name: "waits until it is bound", moment: at(plans.Claim), world: []client.Object{volume("mall", ""), claimIn("mall", "new", marked("web-abc/1/20"), pending)}, want: plans.During, reason: "Pending"},
		{name: "is done when both name each other", moment: at(plans.Claim), world: []client.Object{volume("mall", "new"), claimIn("mall", "new", marked("web-abc/1/20"))}, want: plans.After},
		{name: "stops at a claim of a stranger", moment: at(plans.Claim), world: []client.Object{volume("mall", ""), claimIn("mall", "new")}, want: plans.Conflict, reason: "was not created by this plan"},
		{name: "stops at a claim for another volume", moment: at(plans.Claim), world: []client.Object{volume("mall", ""), claimIn("mall", "new", marked("web-abc/1/20"), other)}, want: plans.Conflict, reason: `names volume "pv-2"`},
		{name: "does not make the claim for a volume that is promised to another", moment: at(plans.Claim), world: []client.Object{volume("elsewhere", "x")}, want: plans.Conflict, reason: "no longer promised"},
		{name: "nor for one that is promised to the claim of another ordinal", moment: at(plans.Claim), world: []client.Object{volume("mall", "", ofAnother)}, want: plans.Conflict, reason: "no longer promised"},
		{name: "nor for one that a claim has taken already", moment: at(plans.Claim), world: []client.Object{volume("mall", "gone")}, want: plans.Conflict, reason: "no longer promised to claim data-web-4 of mall/web, which does not exist: its claimRef names mall/data-web-4 with UID gone"},
		{name: "waits until the volume names it too", moment: at(plans.Claim), world: []client.Object{volume("mall", ""), claimIn("mall", "new", marked("web-abc/1/20"))}, want: plans.During, reason: "waiting for it to be bound"},
		{name: "stops when the volume of its claim is not Retain", moment: at(plans.Claim), world: []client.Object{volume("mall", "new", unprotected), claimIn("mall", "new", marked("web-abc/1/20"))}, want: plans.Conflict, reason: "expected Retain"},
		{name: "stops behind a later stamp", moment: at(plans.Claim), world: []client.Object{volume("mall", "new"), claimIn("mall", "new", marked("web-abc/2/1"))}, want: plans.Conflict, reason: "another process"},
		{name: "stops at its claim that is being deleted", moment: at(plans.Claim), world: []client.Object{volume("mall", "new"), claimIn("mall", "new", marked("web-abc/1/20"), deleting)}, want: plans.Conflict, reason: "is being deleted by another writer"},
		{name: "stops at its claim that is Lost", moment: at(plans.Claim), world: []client.Object{volume("mall", "new"), claimIn("mall", "new", marked("web-abc/1/20"), lost)}, want: plans.Conflict, reason: "is Lost"},
	})
}

// A write that conflicts leaves the correction to the next look.
func TestAWritePreparedAgainstAnOlderVolumeIsTurnedAway(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(volume("shop", "old")).Build()
	on := map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}
	s, err := Looks(rebind(), on, nil)[plans.Reserve](t.Context(), at(plans.Reserve))
	if err != nil || s.Standing != plans.Before {
		t.Fatalf("%s, %v", s.Standing, err)
	}
	touch(t, c)
	if err := s.Write(t.Context()); err == nil {
		t.Fatal("the write went through")
	}
	if ref := theVolume(t, c).Spec.ClaimRef; ref.Namespace != "shop" {
		t.Errorf("claimRef names %s", ref.Namespace)
	}
}

func touch(t *testing.T, c client.Client) {
	t.Helper()
	pv := theVolume(t, c)
	pv.Labels = map[string]string{"touched": "yes"}
	if err := c.Update(context.WithoutCancel(t.Context()), pv); err != nil {
		t.Fatal(err)
	}
}

// A claim without the protection finalizer is deleted at once, even while a pod mounts it. The pods are then
// read live, not from a list that is kept.
func TestTheUsersOfAnUnprotectedClaimAreReadLive(t *testing.T) {
	for finalizer, want := range map[string]bool{PVCProtection: true, "example.com/other": false} {
		kept := false
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
				kept = slices.ContainsFunc(opts, func(o client.ListOption) bool { _, only := o.(clusters.Only); return only })
				return c.List(ctx, l, client.InNamespace("shop"))
			},
		}).WithObjects(pod("backup", "b", "data-web-4")).Build()
		claim := claimIn("shop", "old", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{finalizer} })
		v := objects{clusters.Pair{Plan: rebind(), On: clusters.Clusters{plans.Source: c}}}
		if users, err := v.users(t.Context(), plans.Source, claim); err != nil || users != "backup" {
			t.Errorf("with %s: users %q, %v", finalizer, users, err)
		}
		if kept != want {
			t.Errorf("with %s: a kept list will do: %t, expected %t", finalizer, kept, want)
		}
	}
}
