package storage

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

// early is the moment at which ordinal 4 is still up.
func early(m *plans.StepContext) { m.Flight, m.Began = nil, false }

func unbound(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }

func young(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.Now() }

func mounting(o *corev1.Pod) *corev1.Pod {
	o.Namespace = "mall"
	return o
}

// The other cluster gets each volume object first, with Retain and for the one claim, and then the claim (S4, S5). The
// ordinal has not left: nothing that would keep it is written over.
func TestAWaveIsPreparedWhileItIsUp(t *testing.T) {
	up := []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound), attachment()}
	ours := marked("web-abc/1/20")
	prepares := func(name string, want plans.Standing, reason string, there ...client.Object) row {
		return row{name: name, plan: apart, moment: at(plans.Reserve, early), world: up, there: there, want: want, reason: reason}
	}
	checkLook(t, []row{
		prepares("the volume comes first", plans.Before, "create volume pv-1"),
		prepares("then the binder has seen it", plans.During, "waiting for the binder", volume("mall", "", func(pv *corev1.PersistentVolume) { pv.Status.Phase = "" })),
		prepares("then the claim", plans.Before, "create claim data-web-4", volume("mall", "")),
		prepares("then the binder", plans.During, "is Pending", volume("mall", ""), claimIn("mall", "new", ours, unbound)),
		prepares("whatever else there is", plans.During, "is Pending", claimIn("mall", "new", ours, unbound, young)),
		prepares("a new claim is another's", plans.Conflict, "was not created by this plan", claimIn("mall", "x", unbound, young)),
		prepares("and that is all", plans.After, "", volume("mall", "new", isBound), claimIn("mall", "new", ours)),
		prepares("another claim has the name", plans.Conflict, "was not created by this plan", claimIn("mall", "x")),
		prepares("the volume object there is not Retain", plans.Conflict, "expected Retain", volume("mall", "", unprotected)),
		{name: "the volume that leaves is not Retain", plan: apart, moment: at(plans.Reserve, early), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, unprotected)}, want: plans.Conflict, reason: "expected Retain"},
		{name: "a program keeps the claim that leaves", plan: apart, moment: at(plans.Reserve, early), world: []client.Object{claimIn("shop", "old", keptBackUp), volume("shop", "old", isBound)}, want: plans.During, reason: "is kept by"},
	}, func(p *plans.Plan, on map[plans.Side]client.Client, _ plans.Op) plans.Look { return Prepare(p, on) })
}

func TestAPreparedVolumeIsProtected(t *testing.T) {
	p, m := apart(), at(plans.Reserve, early)
	on := map[plans.Side]client.Client{
		plans.Source: fake.NewClientBuilder().WithObjects(claimIn("shop", "old"), volume("shop", "old", isBound)).Build(), plans.Destination: fake.NewClientBuilder().Build(),
	}
	s, err := Prepare(p, on)(t.Context(), m)
	if err != nil || s.Standing != plans.Before {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := s.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	pv := theVolume(t, on[plans.Destination])
	ref := pv.Spec.ClaimRef
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || !Marked(p, pv) || ref == nil || ref.Namespace != "mall" || ref.Name != "data-web-4" || ref.UID != "" {
		t.Errorf("%+v, %v", pv.Spec, pv.Annotations)
	}
}

// An ordinal stays up while what was prepared for it is not as it will be needed (S17).
func TestNoOrdinalLeavesForAClaimThatIsNotReadyForIt(t *testing.T) {
	ours := marked("web-abc/1/20")
	larger := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	}
	leaves := func(name string, claim *corev1.PersistentVolumeClaim, want plans.Standing, reason string, there ...client.Object) row {
		return row{name: name, plan: apart, moment: at(plans.Shrink, early), world: []client.Object{claim, volume("shop", "old", isBound)}, there: there, want: want, reason: reason}
	}
	prepared := []client.Object{claimIn("mall", "new", ours), volume("mall", "new", isBound)}
	checkLook(t, []row{
		leaves("it is prepared", claimIn("shop", "old"), plans.After, "", prepared...),
		leaves("a pod mounts it already", claimIn("shop", "old"), plans.During, "is mounted by pod batch", append(prepared, mounting(pod("batch", "b", "data-web-4")))...),
		leaves("the claim that leaves was expanded since", claimIn("shop", "old", larger), plans.Conflict, "requests 2Gi by now", prepared...),
	}, departing)
}

// A volume that the other cluster has attached before its ordinal leaves would be waited for with the ordinal down.
func TestNoOrdinalLeavesWhileItsVolumeIsAttachedThere(t *testing.T) {
	flight := at(plans.Shrink).Flight
	for name, c := range map[string]struct {
		plan  *plans.Plan
		there []client.Object
		wave  func(*plans.StepContext)
		want  bool
	}{
		"it is not":                      {apart(), nil, early, false},
		"it is":                          {apart(), []client.Object{attachment()}, early, true},
		"it may have been there, and is": {apart(), []client.Object{attachment()}, reversed, false},
		"there is one cluster":           {rebind(), []client.Object{attachment()}, early, false},
	} {
		on := map[plans.Side]client.Client{
			plans.Source: fake.NewClientBuilder().WithObjects(attachment()).Build(), plans.Destination: fake.NewClientBuilder().WithObjects(c.there...).Build(),
		}
		why, err := AttachedThere(t.Context(), c.plan, on, at(plans.Shrink, c.wave), flight)
		if err != nil || (why != "") != c.want {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}

// The same ordinals may have other volumes after a journal was confirmed by hand: a list that is kept for the former
// ones is not theirs.
func TestAKeptListOfAttachmentsIsThatOfItsVolumes(t *testing.T) {
	one, other := at(plans.Shrink).Flight, *at(plans.Shrink).Flight
	other.Volumes = slices.Clone(one.Volumes)
	other.Volumes[0].Name = "another"
	if a, b := attachmentsOf(one), attachmentsOf(&other); a.For == b.For || a.Needs(attachment()) == b.Needs(attachment()) {
		t.Errorf("both need %s", a.For)
	}
}

// Between two clusters the end of a claim is not waited for, and that of the pods that mount it is (S1).
func TestAClaimThatGoesIsWaitedForAsLongAsAPodMountsIt(t *testing.T) {
	going := func(c *corev1.PersistentVolumeClaim) {
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{PVCProtection}
	}
	releases := func(name string, plan func() *plans.Plan, want plans.Standing, reason string, world ...client.Object) row {
		return row{name: name, plan: plan, moment: at(plans.Release), world: append(world, volume("shop", "old", isBound)), want: want, reason: reason}
	}
	check(t, []row{
		releases("no pod mounts it", apart, plans.After, "", claimIn("shop", "old", going)),
		releases("its own pod is still reported", apart, plans.During, "is being deleted", claimIn("shop", "old", going), pod("web-4", "pod-uid", "data-web-4")),
		releases("a stranger mounts it", apart, plans.During, "is being deleted", claimIn("shop", "old", going), pod("backup", "b", "data-web-4")),
		releases("it is gone", apart, plans.After, ""),
		releases("in one cluster its end is needed", rebind, plans.During, "is being deleted", claimIn("shop", "old", going)),
		releases("and not that of the binding", rebind, plans.After, ""),
	})
}
