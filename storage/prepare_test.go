package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/clusters"
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
	of := func(class string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &class }
	}
	savedAs := func(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolume {
		pv := volume("mall", "new", isBound)
		pv.Annotations[plans.ClaimAnnotation], _ = Manifest(claimIn("shop", "old", changes...))
		return pv
	}
	leaves := func(name string, claim *corev1.PersistentVolumeClaim, want plans.Standing, reason string, there ...client.Object) row {
		return row{name: name, plan: apart, moment: at(plans.Shrink, early), world: []client.Object{claim, volume("shop", "old", isBound)}, there: there, want: want, reason: reason}
	}
	prepared := []client.Object{claimIn("mall", "new", ours), volume("mall", "new", isBound)}
	checkLook(t, []row{
		leaves("it is prepared", claimIn("shop", "old"), plans.After, "", prepared...),
		leaves("a pod mounts it already", claimIn("shop", "old"), plans.During, "is mounted by pod batch", append(prepared, mounting(pod("batch", "b", "data-web-4")))...),
		leaves("the claim that leaves was expanded since", claimIn("shop", "old", larger), plans.Conflict, "requests 2Gi by now", prepared...),
		leaves("and saved since", claimIn("shop", "old", larger), plans.Conflict, "requests 2Gi by now", prepared[0], savedAs(larger)),
		leaves("the other cluster rounds sizes up", claimIn("shop", "old"), plans.After, "", claimIn("mall", "new", ours, larger), savedAs()),
		leaves("an expansion was taken back since", claimIn("shop", "old"), plans.Conflict, "requests 2Gi, and that of", claimIn("mall", "new", ours, larger), savedAs(larger)),
		leaves("it got another VolumeAttributesClass since", claimIn("shop", "old", of("gold")), plans.Conflict, `VolumeAttributesClass "gold" by now`, prepared...),
	}, departing)
}

// playPreparation plays a preparation to its end, and the binder between its looks. It returns the writes.
func playPreparation(t *testing.T, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext) (wrote []string) {
	t.Helper()
	for range 12 {
		s, err := Prepare(p, on)(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		switch s.Standing {
		case plans.Before:
			if err := s.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			wrote = append(wrote, s.Reason)
		case plans.During:
			binds(t, p, on[m.To()], m.To())
		case plans.Conflict:
			t.Fatal(s.Reason)
		case plans.After:
			return wrote
		}
	}
	t.Fatalf("it does not end: %v", wrote)
	return nil
}

// binds does what the binder does with the claim of ordinal 4 and its volume.
func binds(t *testing.T, p *plans.Plan, on client.Client, side plans.Side) {
	t.Helper()
	pv, phase := theVolume(t, on), corev1.VolumeAvailable
	claim := claimOn(t, p, on, side)
	if claim != nil {
		phase, claim.UID, pv.Spec.ClaimRef.UID, claim.CreationTimestamp = corev1.VolumeBound, "made", "made", metav1.Time{Time: time.Unix(1e9, 0)}
		replace(t, on, claim, func() { claim.Status.Phase = corev1.ClaimBound })
	}
	replace(t, on, pv, func() { pv.Status.Phase = phase })
}

func replace(t *testing.T, on client.Client, o client.Object, status func()) {
	t.Helper()
	if err := on.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	status()
	if err := on.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// claimOn returns the claim of ordinal 4 on a side, or nil.
func claimOn(t *testing.T, p *plans.Plan, on client.Client, side plans.Side) *corev1.PersistentVolumeClaim {
	t.Helper()
	c, err := mover{clusters.Pair{Plan: p, On: clusters.Clusters{side: on}}}.Claim(t.Context(), side, "data-web-4")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The claim of the other side is made of what is saved on the volume. A user may have changed the claim since it was
// saved: days may lie between, and the whole stay on the destination before an abort.
func TestAClaimIsPreparedLikeTheOneThatLeaves(t *testing.T) {
	gold := func(pv *corev1.PersistentVolume) {
		class := "gold"
		savedOn(pv)
		pv.Status.Phase, pv.Spec.Capacity, pv.Spec.VolumeAttributesClassName = corev1.VolumeBound, sized("40Gi"), &class
	}
	left := func(pv *corev1.PersistentVolume) { savedOn(pv); pv.Spec.Capacity = sized("10Gi") }
	noStamp := func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, plans.StampAnnotation) }
	for name, c := range map[string]struct {
		here, there []client.Object
		m           plans.StepContext
	}{
		"a move":   {[]client.Object{claimIn("shop", "old", grown, noStamp), volume("shop", "old", gold)}, nil, at(plans.Reserve, early)},
		"an abort": {[]client.Object{volume("shop", "old", left)}, []client.Object{claimIn("mall", "new", grown), volume("mall", "new", gold)}, at(plans.Reserve, early, back)},
	} {
		t.Run(name, func(t *testing.T) {
			p, to := apart(), c.m.To()
			on := map[plans.Side]client.Client{
				plans.Source:      fake.NewClientBuilder().WithObjects(c.here...).Build(),
				plans.Destination: fake.NewClientBuilder().WithObjects(c.there...).Build(),
			}
			if wrote := playPreparation(t, p, on, c.m); !strings.HasPrefix(wrote[0], "volume pv-1 of claim data-web-4") {
				t.Errorf("it wrote %q", wrote)
			}
			for _, again := range []bool{false, true} { // the user deletes it, as ClaimResized recommends
				made := claimOn(t, p, on[to], to)
				if size, class := made.Spec.Resources.Requests.Storage().String(), *made.Spec.VolumeAttributesClassName; size != "40Gi" || class != "gold" || made.Labels["team"] != "b" || made.Annotations["note"] != "n" {
					t.Errorf("made again %t: size %s, class %s, labels %v, annotations %v", again, size, class, made.Labels, made.Annotations)
				}
				if err := on[to].Delete(t.Context(), made); err != nil {
					t.Fatal(err)
				}
				playPreparation(t, p, on, c.m)
			}
			if wrote := playPreparation(t, p, on, c.m); len(wrote) > 0 {
				t.Errorf("nothing has changed, and it wrote %q", wrote)
			}
			if policy := theVolume(t, on[c.m.From]).Annotations[plans.PolicyAnnotation]; policy != "Delete" {
				t.Errorf("the saved policy is %s", policy)
			}
		})
	}
}

// Labels and annotations that the claim gets while another one is prepared follow it. What others write to the prepared
// one stays.
func TestAPreparedClaimGetsTheLabelsThatCameSince(t *testing.T) {
	p, m := apart(), at(plans.Reserve, early)
	on := map[plans.Side]client.Client{
		plans.Source:      fake.NewClientBuilder().WithObjects(claimIn("shop", "old", labelled), volume("shop", "old", isBound)).Build(),
		plans.Destination: fake.NewClientBuilder().Build(),
	}
	playPreparation(t, p, on, m)
	changes := func(side plans.Side, labels, notes map[string]string) {
		c := claimOn(t, p, on[side], side)
		if side == plans.Source {
			c.Labels = nil
		}
		for k, v := range labels {
			metav1.SetMetaDataLabel(&c.ObjectMeta, k, v)
		}
		for k, v := range notes {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, k, v)
		}
		if err := on[side].Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	changes(plans.Destination, map[string]string{"quota": "there"}, map[string]string{"mall": "m"})
	changes(plans.Source, map[string]string{"owner": "b"}, map[string]string{"note": "n", "volume.kubernetes.io/selected-node": "n1"})
	playPreparation(t, p, on, m)
	made := claimOn(t, p, on[plans.Destination], plans.Destination)
	delete(made.Annotations, plans.StampAnnotation)
	if diff := cmp.Diff(map[string]string{"owner": "b", "quota": "there"}, made.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "n", "mall": "m"}, made.Annotations); diff != "" {
		t.Error(diff)
	}
	if wrote := playPreparation(t, p, on, m); len(wrote) > 0 {
		t.Errorf("nothing has changed, and it wrote %q", wrote)
	}
	changes(plans.Source, map[string]string{"owner": "c"}, nil)
	changes(plans.Destination, nil, map[string]string{plans.StampAnnotation: "web-abc/2/1"})
	for {
		s, err := Prepare(p, on)(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if s.Standing == plans.Conflict {
			break
		}
		if s.Standing != plans.Before {
			t.Fatalf("a later process has stamped the claim: %s (%s)", s.Standing, s.Reason)
		}
		if err := s.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if made := claimOn(t, p, on[plans.Destination], plans.Destination); made.Labels["owner"] != "b" {
		t.Errorf("a later process has stamped the claim, and its labels became %v", made.Labels)
	}
}

// Admission of the other cluster may change what is created there, and change it back for ever: that is no reason to write
// it again, or to stop.
func TestWhatTheOtherClusterAdmitsIsNotArguedWith(t *testing.T) {
	admit := func(c client.Client, made *corev1.PersistentVolumeClaim) error {
		delete(made.Labels, "owner")
		made.Spec.Resources.Requests = sized("2Gi")
		return c.Update(t.Context(), made)
	}
	p, m, fails := apart(), at(plans.Reserve, early), false // the saved claim is not written
	on := map[plans.Side]client.Client{
		plans.Source: fake.NewClientBuilder().WithObjects(claimIn("shop", "old", func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = sized("1500Mi") }), volume("shop", "old", isBound)).Build(),
		plans.Destination: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if fails && o.GetName() == "pv-1" {
					return errors.New("the process died")
				}
				if err := c.Patch(ctx, o, patch, opts...); err != nil || o.GetName() == "pv-1" {
					return err
				}
				return admit(c, claimOn(t, p, c, plans.Destination))
			},
		}).Build(),
	}
	playPreparation(t, p, on, m)
	c := claimOn(t, p, on[plans.Source], plans.Source)
	c.Labels = map[string]string{"owner": "b", "team": "b"}
	if err := errors.Join(admit(on[plans.Destination], claimOn(t, p, on[plans.Destination], plans.Destination)), on[plans.Source].Update(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	for n, fault := range []bool{false, true, false} { // the claim that leaves is saved, and the other one is tried until that is saved too
		fails = fault
		s, err := Prepare(p, on)(t.Context(), m)
		if err != nil || s.Standing != plans.Before || strings.Contains(s.Reason, "gets the labels") != (n > 0) {
			t.Fatalf("%+v, %v", s, err)
		}
		if err := s.Write(t.Context()); (err != nil) != fault {
			t.Fatal(err)
		}
	}
	if wrote := playPreparation(t, p, on, m); len(wrote) > 0 {
		t.Errorf("nothing has changed, and it wrote %q", wrote)
	}
	if made := claimOn(t, p, on[plans.Destination], plans.Destination); made.Labels["team"] != "b" || made.Labels["owner"] != "" {
		t.Errorf("its labels are %v", made.Labels)
	}
}

// A volume that the other cluster has attached before its ordinal leaves would be waited for with the ordinal down.
func TestNoOrdinalLeavesWhileItsVolumeIsAttachedThere(t *testing.T) {
	other := attachment()
	other.Name, other.Spec.NodeName = "va-9", "n9"
	none, own, both := []client.Object(nil), []client.Object{attachment()}, []client.Object{attachment(), other}
	for name, c := range map[string]struct {
		plan        *plans.Plan
		here, there []client.Object
		wave        func(*plans.StepContext)
		word        []string
		side        plans.Side
		want        string
	}{
		"it is not":                         {apart(), own, none, early, nil, "", ""},
		"it is":                             {apart(), own, own, early, nil, plans.Destination, "on the destination, volume pv-1 is still attached to node n1 (VolumeAttachment va-1), which does not exist any more"},
		"it may have been there, and is":    {apart(), both, own, reversed, nil, "", ""},
		"there is one cluster":              {rebind(), own, own, early, nil, "", ""},
		"another node here has it":          {apart(), both, none, early, nil, plans.Source, "on the source, volume pv-1 is still attached to node n9 (VolumeAttachment va-9), which does not exist any more"},
		"another node of the one cluster":   {rebind(), both, none, early, nil, plans.Source, "--node-gone n9"},
		"which exists":                      {rebind(), append(slices.Clone(both), another("n9")), none, early, nil, plans.Source, "which exists, and where no pod of the wave runs"},
		"of which the user knows":           {rebind(), both, none, early, []string{"n9"}, "", ""},
		"the user knows of its own node":    {rebind(), both, none, early, []string{"n1"}, plans.Source, "--node-gone n9"},
		"the user knows, and there it is":   {apart(), both, []client.Object{other}, early, []string{"n9"}, plans.Destination, "on the destination"},
		"a node that uses it, not the user": {rebind(), append(slices.Clone(both), another("n9", "kubernetes.io/csi/"+disk)), none, early, []string{"n9"}, plans.Source, "--node-gone n9"},
	} {
		on := map[plans.Side]client.Client{
			plans.Source: fake.NewClientBuilder().WithObjects(c.here...).Build(), plans.Destination: fake.NewClientBuilder().WithObjects(c.there...).Build(),
		}
		flight := *at(plans.Shrink).Flight
		flight.NodesGone = c.word
		side, why, err := Attached(t.Context(), c.plan, on, at(plans.Shrink, c.wave), &flight)
		if err != nil || side != c.side || (why != "") != (c.want != "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: on the %q, %q, %v", name, side, why, err)
		}
	}
}

// another returns a node of another name that is Ready.
func another(name string, used ...corev1.UniqueVolumeName) *corev1.Node {
	n := node(corev1.ConditionTrue, used...)
	n.Name = name
	return n
}

// The dead node of an earlier stay may have a volume attached for good. The user vouches for it before the wave leaves,
// and Vacate believes the same word. It says nothing of a node of that name in the cluster that the wave leaves, whether
// that cluster still has a Node object for it or not (S1).
func TestAnOrdinalLeavesPastANodeThatTheUserVouchesFor(t *testing.T) {
	using := node(corev1.ConditionTrue, "kubernetes.io/csi/"+disk)
	for name, c := range map[string]struct {
		here, there []client.Object
		word        []string
		waits       bool
		vacates     plans.Standing
		seen        string
	}{
		"no word":                      {nil, []client.Object{attachment()}, nil, true, 0, ""},
		"of another node":              {nil, []client.Object{attachment()}, []string{"n2"}, true, 0, ""},
		"its node is gone":             {nil, []client.Object{attachment()}, []string{"n1"}, false, plans.Conflict, "no longer exists"},
		"its node is not Ready":        {nil, []client.Object{attachment(), node(corev1.ConditionUnknown)}, []string{"n1"}, false, plans.Conflict, "no longer exists"},
		"its node uses the volume":     {nil, []client.Object{attachment(), using}, []string{"n1"}, true, 0, ""},
		"a node here has its name":     {[]client.Object{node(corev1.ConditionTrue)}, []client.Object{attachment()}, []string{"n1"}, false, plans.After, ""},
		"which is not Ready":           {[]client.Object{node(corev1.ConditionUnknown)}, []client.Object{attachment()}, []string{"n1"}, false, plans.During, "its containers may still run"},
		"which has the volume here":    {[]client.Object{node(corev1.ConditionTrue), attachment()}, []client.Object{attachment()}, []string{"n1"}, false, plans.During, "still attached"},
		"a node here that is gone has": {[]client.Object{attachment()}, []client.Object{attachment()}, []string{"n1"}, false, plans.Conflict, "no longer exists"},
	} {
		on := map[plans.Side]client.Client{
			plans.Source: fake.NewClientBuilder().WithObjects(c.here...).Build(), plans.Destination: fake.NewClientBuilder().WithObjects(c.there...).Build(),
		}
		m, flight := at(plans.Shrink, early), *at(plans.Shrink).Flight
		flight.NodesGoneThere = c.word
		_, why, err := Attached(t.Context(), apart(), on, m, &flight)
		if err != nil || (why != "") != c.waits {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		if c.waits {
			continue
		}
		m = at(plans.Vacate, func(m *plans.StepContext) { m.Flight = &flight })
		if s, err := Looks(apart(), on)[plans.Vacate](t.Context(), m); err != nil || s.Standing != c.vacates || !strings.Contains(s.Reason, c.seen) {
			t.Errorf("%s: %s (%s), %v, expected %s (%s)", name, s.Standing, s.Reason, err, c.vacates, c.seen)
		}
	}
}

// What the user vouches for with the ordinal down is believed of the cluster of which the plan has asked (S1).
func TestAWordIsBelievedOfTheClusterThatItWasAskedOf(t *testing.T) {
	seen := plans.Pod{Node: "n1", Stopped: "node n1 is Ready"}
	words := func(here, there []string) func(*plans.StepContext) {
		return func(m *plans.StepContext) {
			pods(seen, here...)(m)
			m.Flight.NodesGoneThere, m.Flight.WaitsThere = there, true // as an earlier look has seen
		}
	}
	turned := func(m *plans.StepContext) { m.Reversed, m.From = true, plans.Destination }
	n1, va := []string{"n1"}, []client.Object{attachment()}
	for name, c := range map[string]struct {
		wave        []func(*plans.StepContext)
		here, there []client.Object
		want        plans.Standing
		waitsThere  bool
	}{
		"of the one that is left":        {[]func(*plans.StepContext){words(n1, nil)}, va, nil, plans.After, false},
		"not of the other one":           {[]func(*plans.StepContext){words(n1, nil)}, va, va, plans.During, true},
		"of the one that receives":       {[]func(*plans.StepContext){words(nil, n1)}, nil, va, plans.After, false},
		"not of the one that is left":    {[]func(*plans.StepContext){words(nil, n1)}, va, va, plans.During, false},
		"in an abort, of its own":        {[]func(*plans.StepContext){words(nil, n1), turned}, nil, va, plans.After, false},
		"in an abort, not of the source": {[]func(*plans.StepContext){words(n1, nil), turned}, nil, va, plans.During, false},
	} {
		on := map[plans.Side]client.Client{
			plans.Source: fake.NewClientBuilder().WithObjects(c.here...).Build(), plans.Destination: fake.NewClientBuilder().WithObjects(c.there...).Build(),
		}
		m := at(plans.Vacate, c.wave...)
		s, err := Looks(apart(), on)[plans.Vacate](t.Context(), m)
		if err != nil || s.Standing != c.want {
			t.Errorf("%s: %s (%s), %v, expected %s", name, s.Standing, s.Reason, err, c.want)
		}
		if got := s.Undo.Flight; got != nil && got.WaitsThere != c.waitsThere {
			t.Errorf("%s: it waits for the other cluster: %t (%s)", name, got.WaitsThere, s.Reason)
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
