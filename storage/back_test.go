package storage

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func sized(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// savedOn saves the manifest of the source's claim on the volume, as it was when the ordinal left.
func savedOn(pv *corev1.PersistentVolume) {
	class := "silver"
	m, err := Manifest(claimIn("shop", "old", func(c *corev1.PersistentVolumeClaim) {
		c.Labels, c.Spec.Resources.Requests = map[string]string{"team": "a"}, sized("10Gi")
		c.Spec.VolumeAttributesClassName = &class
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "first"}
	}))
	if err != nil {
		panic(err)
	}
	pv.Annotations[plans.ClaimAnnotation] = m
}

// grown changes the claim of the destination as a user would: expanded, with another class and other
// metadata.
func grown(c *corev1.PersistentVolumeClaim) {
	class := "gold"
	c.Annotations = map[string]string{plans.StampAnnotation: "web-abc/1/9", "note": "n"}
	c.Labels, c.Spec.Resources.Requests, c.Spec.VolumeAttributesClassName = map[string]string{"team": "b"}, sized("40Gi"), &class
}

func back(m *plans.StepContext) { m.From = plans.Destination }

// carry executes the writes of a look until there is nothing left to write.
func carry(t *testing.T, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext, most int) plans.Observation {
	t.Helper()
	for n := 0; ; n++ {
		s, err := Looks(p, on, nil)[m.Op](t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		planstest.Unread(t, on, func(on map[plans.Side]client.Client) (plans.Observation, error) {
			return Looks(p, on, nil)[m.Op](t.Context(), m)
		})
		if s.Standing != plans.Before || n == most {
			return s
		}
		if err := s.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func comesBack(t *testing.T, on map[plans.Side]client.Client) {
	t.Helper()
	var pv corev1.PersistentVolume
	if err := on[plans.Source].Get(t.Context(), client.ObjectKey{Name: "pv-1"}, &pv); err != nil {
		t.Fatal(err)
	}
	c, err := ClaimFrom(&pv, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if size := c.Spec.Resources.Requests.Storage().String(); size != "40Gi" || *c.Spec.VolumeAttributesClassName != "gold" || c.Labels["team"] != "b" || c.Annotations["note"] != "n" {
		t.Errorf("the source's claim asks for %s of class %s, with labels %v and annotations %v", size, *c.Spec.VolumeAttributesClassName, c.Labels, c.Annotations)
	}
	if c.Spec.DataSource == nil || c.Annotations[plans.StampAnnotation] != "" {
		t.Errorf("the source's claim is not the one that was there: data source %v, annotations %v", c.Spec.DataSource, c.Annotations)
	}
	if size := pv.Spec.Capacity.Storage().String(); size != "40Gi" {
		t.Errorf("the source's volume object says %s", size)
	}
}

func TestChangesOnTheDestinationComeBackWithTheOrdinal(t *testing.T) {
	bound := func(size string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			savedOn(pv)
			pv.Status.Phase, pv.Spec.Capacity = corev1.VolumeBound, sized(size)
		}
	}
	moment := func(op plans.Op) plans.StepContext {
		m := at(op, back)
		m.Flight.Volumes[0].Claim = "new"
		return m
	}
	t.Run("one cluster", func(t *testing.T) {
		c := fake.NewClientBuilder().WithObjects(claimIn("mall", "new", grown), volume("mall", "new", bound("40Gi"))).Build()
		on := map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}
		if s := carry(t, rebind(), on, moment(plans.Release), 2); s.Standing != plans.After {
			t.Errorf("two writes, the claim's manifest and its deletion, and then %s: %s", s.Standing, s.Reason)
		}
		comesBack(t, on)
	})
	t.Run("two clusters", func(t *testing.T) {
		p := apart()
		left := func(pv *corev1.PersistentVolume) { bound("10Gi")(pv); pv.Status.Phase = corev1.VolumeReleased }
		on := map[plans.Side]client.Client{
			plans.Source:      fake.NewClientBuilder().WithObjects(volume("shop", "old", left)).Build(),
			plans.Destination: fake.NewClientBuilder().WithObjects(claimIn("mall", "new", grown), volume("mall", "new", bound("40Gi"))).Build(),
		}
		carry(t, p, on, moment(plans.Release), 2)
		if s := carry(t, p, on, moment(plans.Reserve), 2); s.Standing != plans.After {
			t.Errorf("two writes, what is new and the claimRef, and then %s: %s", s.Standing, s.Reason)
		}
		comesBack(t, on)
	})
}

// A plan that is reversed before the ordinal arrived has nothing to learn: the data of the other side may be
// from an earlier stay.
func TestNothingIsLearntFromASideOnWhichNothingRan(t *testing.T) {
	fresh := func(pv *corev1.PersistentVolume) { savedOn(pv); pv.Spec.Capacity = sized("40Gi") }
	stale := func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = sized("10Gi") }
	on := map[plans.Side]client.Client{
		plans.Source:      fake.NewClientBuilder().WithObjects(volume("shop", "", fresh)).Build(),
		plans.Destination: fake.NewClientBuilder().WithObjects(volume("mall", "", stale)).Build(),
	}
	s := carry(t, apart(), on, at(plans.Reserve, back, func(m *plans.StepContext) { m.Reversed = true }), 2)
	if s.Standing != plans.After || theVolume(t, on[plans.Source]).Spec.Capacity.Storage().String() != "40Gi" {
		t.Errorf("%s (%s), size %s", s.Standing, s.Reason, theVolume(t, on[plans.Source]).Spec.Capacity.Storage())
	}
}

// What a volume object says that the plan has not marked, such as one that another writer has created, is not learnt:
// neither its size nor its claim.
func TestNothingIsLearntFromAVolumeObjectOfAnother(t *testing.T) {
	fresh := func(pv *corev1.PersistentVolume) { savedOn(pv); pv.Spec.Capacity = sized("40Gi") }
	for name, change := range map[string]func(*corev1.PersistentVolume){"unmarked": unmarked, "of another plan": stampedOn("another-plan/1/2")} {
		foreign := func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = sized("10Gi"); change(pv) }
		on := map[plans.Side]client.Client{
			plans.Source:      fake.NewClientBuilder().WithObjects(volume("shop", "", fresh)).Build(),
			plans.Destination: fake.NewClientBuilder().WithObjects(volume("mall", "", foreign)).Build(),
		}
		before := theVolume(t, on[plans.Source])
		s := carry(t, apart(), on, at(plans.Reserve, back), 2)
		if after := theVolume(t, on[plans.Source]); after.Spec.Capacity.Storage().String() != "40Gi" || after.Annotations[plans.ClaimAnnotation] != before.Annotations[plans.ClaimAnnotation] {
			t.Errorf("%s: %s (%s), size %s", name, s.Standing, s.Reason, after.Spec.Capacity.Storage())
		}
	}
}

// The claim that is saved on the source's volume is the way back. Where the other side has none, or no claim at all
// in its annotation, it stays.
func TestASavedClaimIsNotOverwrittenWithNothing(t *testing.T) {
	for _, saved := range []string{"", "{", "null"} {
		there := func(pv *corev1.PersistentVolume) {
			if pv.Annotations[plans.ClaimAnnotation] = saved; saved == "" {
				delete(pv.Annotations, plans.ClaimAnnotation)
			}
			pv.Spec.Capacity = sized("40Gi")
		}
		on := map[plans.Side]client.Client{
			plans.Source:      fake.NewClientBuilder().WithObjects(volume("shop", "", savedOn)).Build(),
			plans.Destination: fake.NewClientBuilder().WithObjects(volume("mall", "", there)).Build(),
		}
		before := theVolume(t, on[plans.Source]).Annotations[plans.ClaimAnnotation]
		s := carry(t, apart(), on, at(plans.Reserve, back), 2)
		pv := theVolume(t, on[plans.Source])
		if s.Standing != plans.After || pv.Annotations[plans.ClaimAnnotation] != before || pv.Spec.Capacity.Storage().String() != "40Gi" {
			t.Errorf("%q: %s (%s), size %s, claim %q", saved, s.Standing, s.Reason, pv.Spec.Capacity.Storage(), pv.Annotations[plans.ClaimAnnotation])
		}
	}
}

func TestAnUnchangedManifestIsNotWrittenAgain(t *testing.T) {
	for _, saved := range []string{
		`{"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"resources":{"requests":{"storage":"1Gi"}},"future":{"z":1,"a":2}},"status":{}}`,
		`{"metadata":{"name":"a"},"spec":{"resources":{}}}`,
	} {
		got, err := Changed(saved, saved)
		if err != nil || got != saved {
			t.Errorf("%s became %s (%v)", saved, got, err)
		}
	}
	got, err := Changed(`{"metadata":{"name":"a","labels":{"x":"1"}},"spec":{"future":{"z":1},"resources":{}}}`, `{"metadata":{"name":"b"},"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	var parts map[string]any
	if err != nil || json.Unmarshal([]byte(got), &parts) != nil {
		t.Fatal(got, err)
	}
	want := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"future": map[string]any{"z": 1.0}, "resources": map[string]any{"requests": map[string]any{"storage": "2Gi"}}}}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Error(diff)
	}
}

func apart() *plans.Plan {
	p := rebind()
	p.Destination.Cluster, p.Claims[0].Mode = "two", plans.Reimport
	return p
}

// A translated name cannot always be translated back: two names may have become one.
func TestTheSourcesVolumeObjectIsMadeAgainAsItWas(t *testing.T) {
	p := apart()
	p.Storage = plans.Storage{Classes: map[string]string{"fast": "any", "slow": "any"}, Secrets: map[string]string{"rook/key": "ceph/key"}}
	held := volume("shop", "old", func(pv *corev1.PersistentVolume) {
		savedOn(pv)
		pv.Labels, pv.Spec.StorageClassName, pv.Spec.Capacity = map[string]string{"l": "1"}, "slow", sized("10Gi")
		pv.Annotations["pv.kubernetes.io/provisioned-by"] = "disk.example.com"
		pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "rook", Name: "key"}
	})
	on := map[plans.Side]client.Client{plans.Source: fake.NewClientBuilder().WithObjects(held).Build(), plans.Destination: fake.NewClientBuilder().Build()}
	if s := carry(t, p, on, at(plans.Reserve), 1); s.Standing != plans.After {
		t.Fatalf("%s: %s", s.Standing, s.Reason)
	}
	there := theVolume(t, on[plans.Destination])
	if there.Spec.StorageClassName != "any" || there.Spec.CSI.NodeStageSecretRef.Namespace != "ceph" {
		t.Errorf("the destination has class %s, Secret %v", there.Spec.StorageClassName, there.Spec.CSI.NodeStageSecretRef)
	}
	there.Spec.Capacity = sized("40Gi")
	if err := on[plans.Destination].Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if err := on[plans.Source].Delete(t.Context(), theVolume(t, on[plans.Source])); err != nil {
		t.Fatal(err)
	}
	if s := carry(t, p, on, at(plans.Reserve, back), 1); s.Standing != plans.After {
		t.Fatalf("during an abort: %s: %s", s.Standing, s.Reason)
	}
	want := held.Spec.DeepCopy()
	ref := RefTo("shop", "data-web-4", "")
	want.ClaimRef, want.Capacity = &ref, sized("40Gi")
	again := theVolume(t, on[plans.Source])
	if diff := cmp.Diff(*want, again.Spec); diff != "" {
		t.Error(diff)
	}
	if again.Labels["l"] != "1" || again.Annotations["pv.kubernetes.io/provisioned-by"] != "disk.example.com" || again.Annotations[plans.PolicyAnnotation] != "Delete" ||
		again.Annotations[plans.ClaimAnnotation] == "" || again.Annotations[plans.VolumeAnnotation] != "" {
		t.Errorf("labels %v, annotations %v", again.Labels, again.Annotations)
	}
}

func TestALostVolumeObjectIsNotGuessed(t *testing.T) {
	p := apart()
	p.Storage = plans.Storage{Classes: map[string]string{"fast": "any"}}
	bare := volume("mall", "new", func(pv *corev1.PersistentVolume) { savedOn(pv) })
	on := map[plans.Side]client.Client{plans.Source: fake.NewClientBuilder().Build(), plans.Destination: fake.NewClientBuilder().WithObjects(bare).Build()}
	if s := carry(t, p, on, at(plans.Reserve, back), 0); s.Standing != plans.Conflict || !strings.Contains(s.Reason, "volume pv-1 is gone") {
		t.Errorf("%s: %s", s.Standing, s.Reason)
	}
}

// The claim of the destination stays while the source's claim cannot be reconstructed.
func TestAClaimStaysUntilTheSourceCanHaveIt(t *testing.T) {
	held := volume("mall", "new", func(pv *corev1.PersistentVolume) {
		delete(pv.Annotations, plans.ClaimAnnotation)
		pv.Status.Phase = corev1.VolumeBound
	})
	c := fake.NewClientBuilder().WithObjects(claimIn("mall", "new"), held).Build()
	m := at(plans.Release, back)
	m.Flight.Volumes[0].Claim = "new"
	s := carry(t, rebind(), map[plans.Side]client.Client{plans.Source: c, plans.Destination: c}, m, 1)
	if s.Standing != plans.Conflict || !strings.Contains(s.Reason, "put it back") {
		t.Errorf("%s: %s", s.Standing, s.Reason)
	}
}
