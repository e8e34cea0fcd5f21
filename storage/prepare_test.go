package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// early is the moment at which ordinal 4 is still up.
func early(m *plans.StepContext) { m.Flight, m.Began = nil, false }

func unbound(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }

func mounting(o *corev1.Pod) *corev1.Pod {
	o.Namespace = "mall"
	return o
}

// The other cluster gets each volume object, with Retain, for the one claim, and sealed: no claim can have it while its
// ordinal is up (S4, S5, S20). The ordinal has not left: nothing that would keep it is written over.
func TestAWaveIsPreparedWhileItIsUp(t *testing.T) {
	up := []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound), attachment()}
	ours := marked("web-abc/1/20")
	phase := func(p corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Status.Phase = p }
	}
	prepares := func(name string, want plans.Standing, reason string, there ...client.Object) row {
		return row{name: name, plan: apart, moment: at(plans.Reserve, early), world: up, there: there, want: want, reason: reason}
	}
	checkLook(t, []row{
		prepares("the volume is made", plans.Before, "create volume pv-1"),
		prepares("then the binder sees it", plans.During, "waiting for the binder", volume("mall", "old", phase(""))),
		prepares("and that is all", plans.After, "", volume("mall", "old")),
		prepares("one from an earlier stay was released", plans.After, "", volume("mall", "former")),
		prepares("one that a claim could have is sealed", plans.Before, "no claim can have it", volume("mall", "")),
		prepares("a claim that came too early goes", plans.During, "delete claim data-web-4, which was made too early", volume("mall", "new", isBound), claimIn("mall", "new", ours)),
		prepares("another claim has the name", plans.Conflict, "was not created by this plan", claimIn("mall", "x")),
		prepares("a pod waits for the claim", plans.During, "pod batch (Pending) of mall/web names claim data-web-4", mounting(waiting(pod("batch", "b", "data-web-4")))),
		prepares("the volume object there is not Retain", plans.Conflict, "expected Retain", volume("mall", "", unprotected)),
		{name: "the volume that leaves is not Retain", plan: apart, moment: at(plans.Reserve, early), world: []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound, unprotected)}, want: plans.Conflict, reason: "expected Retain"},
		{name: "a program keeps the claim that leaves", plan: apart, moment: at(plans.Reserve, early), world: []client.Object{claimIn("shop", "old", keptBackUp), volume("shop", "old", isBound)}, want: plans.During, reason: "is kept by"},
	}, func(p *plans.Plan, on map[plans.Side]client.Client, _ plans.Op) plans.Look { return Prepare(p, on) })
}

func waiting(o *corev1.Pod) *corev1.Pod {
	o.Status.Phase = corev1.PodPending
	return o
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
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || !Marked(p, pv) || ref == nil || ref.Namespace != "mall" || ref.Name != "data-web-4" || ref.UID != "old" {
		t.Errorf("%+v, %v", pv.Spec, pv.Annotations)
	}
}

// A claim of the plan that is there before its ordinal has left is taken away, with its data protected, unless a pod
// mounts it. A later process has the word (S4, S9, S20).
func TestAClaimThatCameTooEarlyIsTakenAway(t *testing.T) {
	leaves := func(name string, m plans.StepContext, want plans.Standing, reason string, then func(*testing.T, client.Client), there ...client.Object) row {
		world := []client.Object{claimIn("shop", "old"), volume("shop", "old", isBound)}
		if m.From == plans.Destination {
			world, there = there, []client.Object{claimIn("mall", "old"), volume("mall", "old", isBound)}
		}
		return row{name: name, plan: apart, moment: m, world: world, there: there, want: want, reason: reason, then: then}
	}
	ended := func(o *corev1.Pod) *corev1.Pod {
		o.Status.Phase = corev1.PodSucceeded
		return o
	}
	ours, m, turned := marked("web-abc/1/2"), at(plans.Shrink, early), at(plans.Shrink, early, back)
	unkept := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil }
	checkLook(t, []row{
		leaves("it is taken away", m, plans.Before, "delete claim data-web-4", nil, claimIn("mall", "new", ours, unkept), volume("mall", "new", isBound)),
		leaves("on the way back too", turned, plans.Before, "delete claim data-web-4", nil, claimIn("shop", "new", ours, unkept), volume("shop", "new", isBound)),
		leaves("a pod mounts it", m, plans.During, "pod batch (Running) of mall/web", nil, claimIn("mall", "new", ours), volume("mall", "new", isBound), mounting(runs(pod("batch", "b", "data-web-4")))),
		leaves("a pod that has ended still holds it", m, plans.During, "is mounted by pod batch", nil, claimIn("mall", "new", ours), volume("mall", "new", isBound), mounting(ended(pod("batch", "b", "data-web-4")))),
		leaves("its volume is not Retain", m, plans.Conflict, "expected Retain", nil, claimIn("mall", "new", ours), volume("mall", "new", isBound, unprotected)),
		leaves("a later process has made it", m, plans.Conflict, "another process", nil, claimIn("mall", "new", marked("web-abc/2/1")), volume("mall", "new", isBound)),
		leaves("it goes already", m, plans.During, "is being deleted", nil, claimIn("mall", "new", ours, deleting), volume("mall", "new", isBound)),
		leaves("a pod that has ended is in nobody's way", m, plans.After, "", nil, volume("mall", "old"), mounting(ended(pod("batch", "b", "data-web-4")))),
	}, departing)
}

func runs(o *corev1.Pod) *corev1.Pod {
	o.Status.Phase = corev1.PodRunning
	return o
}

// A pod that names the claim keeps the ordinal up, in both modes and on both ways, and says what to do about whatever has
// made the pod. The set's own pod of the ordinal is for others to judge (S20).
func TestNoOrdinalLeavesWhileAnotherPodNamesItsClaim(t *testing.T) {
	of := func(o *corev1.Pod, kind, name string) *corev1.Pod {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: "u", Controller: new(true)}}
		return o
	}
	batch := func(namespace string) *corev1.Pod {
		o := waiting(pod("batch", "b", "data-web-4"))
		o.Namespace = namespace
		return o
	}
	leaves := func(name string, plan func() *plans.Plan, m plans.StepContext, want plans.Standing, reason string, there ...client.Object) row {
		ns := map[plans.Side]string{plans.Source: "shop", plans.Destination: "mall"}
		world := []client.Object{claimIn(ns[m.From], "old"), volume(ns[m.From], "old", isBound)}
		if m.From == plans.Destination && !plan().OneCluster() {
			return row{name: name, plan: plan, moment: m, world: append(there, volume("shop", "former")), there: world, want: want, reason: reason}
		}
		if plan().OneCluster() {
			world, there = append(world, there...), nil
		}
		return row{name: name, plan: plan, moment: m, world: world, there: there, want: want, reason: reason}
	}
	m, turned := at(plans.Shrink, early), at(plans.Shrink, early, back)
	checkLook(t, []row{
		leaves("two clusters", apart, m, plans.During, "pod batch (Pending) of mall/web names claim data-web-4", batch("mall")),
		leaves("two clusters, back", apart, turned, plans.During, "pod batch (Pending) of shop/web names claim data-web-4", batch("shop")),
		leaves("one cluster", rebind, m, plans.During, "pod batch (Pending) of mall/web names claim data-web-4", batch("mall")),
		leaves("one cluster, back", rebind, turned, plans.During, "pod batch (Pending) of shop/web names claim data-web-4", batch("shop")),
		leaves("of a Job", apart, m, plans.During, "(Pending, of Job nightly-1) of mall/web names claim data-web-4, and would get the disk of web-4 the moment that the claim is there; suspend the CronJob that makes Job nightly-1", of(batch("mall"), "Job", "nightly-1")),
		leaves("of a ReplicaSet", apart, m, plans.During, "scale ReplicaSet reader-1 to 0", of(batch("mall"), "ReplicaSet", "reader-1")),
		leaves("in another namespace", apart, m, plans.After, "", batch("shop")),
		leaves("the pod of the ordinal", apart, m, plans.After, "", mounting(waiting(pod("web-4", "w", "data-web-4")))),
	}, departing)
}

// With the ordinal in flight, no claim is made that a pod waits for, nor one whose volume the other side has attached
// again (S1, S20).
func TestNoClaimIsMadeForAnotherPod(t *testing.T) {
	makes := func(name string, plan func() *plans.Plan, want plans.Standing, reason string, world, there []client.Object) row {
		return row{name: name, plan: plan, moment: at(plans.Claim), world: world, there: there, want: want, reason: reason}
	}
	stranger := mounting(waiting(pod("batch", "b", "data-web-4")))
	check(t, []row{
		makes("nobody waits", apart, plans.Before, "create claim data-web-4", nil, []client.Object{volume("mall", "")}),
		makes("a pod waits", apart, plans.During, "pod batch (Pending)", nil, []client.Object{volume("mall", ""), stranger}),
		makes("a pod waits, in one cluster", rebind, plans.During, "pod batch (Pending)", []client.Object{volume("mall", ""), stranger}, nil),
		makes("it is attached again", apart, plans.During, "is still attached", []client.Object{attachment()}, []client.Object{volume("mall", "")}),
	})
}

// A volume that was handed over, or was about to be, is sealed when its ordinal goes back: a claim that a fenced process
// makes late gets nothing (S20).
func TestAVolumeIsSealedAgainWhenItsOrdinalGoesBack(t *testing.T) {
	turned := at(plans.Release, reversed, func(m *plans.StepContext) { m.From = plans.Destination })
	releases := func(name string, want plans.Standing, reason string, there ...client.Object) row {
		return row{name: name, plan: apart, moment: turned, there: there, want: want, reason: reason}
	}
	check(t, []row{
		releases("a claim could have it", plans.Before, "no claim can have it", volume("mall", "")),
		releases("none can", plans.After, "", volume("mall", "old")),
		releases("it was never made", plans.After, ""),
		releases("it is another's", plans.After, "", volume("mall", "", unmarked)),
		releases("a later process has stamped it", plans.Conflict, "another process", volume("mall", "", stampedOn("web-abc/2/1"))),
		{name: "in one cluster it is the same object", moment: turned, world: []client.Object{volume("mall", "")}, want: plans.After},
	})
}

// The claims are tried before the ordinal leaves, and nothing of that is stored (S17).
func TestTheClaimsOfAWaveAreTriedBeforeItLeaves(t *testing.T) {
	for _, refused := range []bool{false, true} {
		tried := 0
		on := map[plans.Side]client.Client{
			plans.Source: fake.NewClientBuilder().WithObjects(claimIn("shop", "old"), volume("shop", "old", isBound)).Build(),
			plans.Destination: fake.NewClientBuilder().WithObjects(volume("mall", "old")).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					tried++
					var options client.CreateOptions
					if options.ApplyOptions(opts); len(options.DryRun) == 0 {
						t.Errorf("%s is created", o.GetName())
					}
					if refused {
						return errors.New("exceeded quota")
					}
					return c.Create(ctx, o, opts...)
				},
			}).Build(),
		}
		err := Admitted(t.Context(), apart(), on, at(plans.Reserve, early))
		if tried != 1 || (err != nil) != refused || refused && !strings.Contains(err.Error(), "mall/web refuses claim data-web-4, so no pod is scaled down: exceeded quota") {
			t.Errorf("refused %t: tried %d times: %v", refused, tried, err)
		}
		if claimOn(t, apart(), on[plans.Destination], plans.Destination) != nil {
			t.Error("the claim is there")
		}
	}
}

// playPreparation plays a preparation, and the handing over that follows it, to the end, and the binder between the looks.
// It returns the writes.
func playPreparation(t *testing.T, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext) (wrote []string) {
	t.Helper()
	flight := &plans.Flight{Ordinals: m.Ordinals, From: m.From, Volumes: []plans.Volume{{Ordinal: 4, Template: "data", Claim: "old", Name: "pv-1", Handle: disk}}}
	away := m
	away.Flight = flight
	looks := []struct {
		look plans.Look
		m    plans.StepContext
	}{{Prepare(p, on), m}, {Looks(p, on, nil)[plans.Reserve], away}, {Looks(p, on, nil)[plans.Claim], away}}
	for range 20 {
		if len(looks) == 0 {
			return wrote
		}
		s, err := looks[0].look(t.Context(), looks[0].m)
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
			looks = looks[1:]
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
	switch {
	case claim != nil:
		phase, claim.UID, pv.Spec.ClaimRef.UID, claim.CreationTimestamp = corev1.VolumeBound, "made", "made", metav1.Time{Time: time.Unix(1e9, 0)}
		replace(t, on, claim, func() { claim.Status.Phase = corev1.ClaimBound })
	case pv.Spec.ClaimRef.UID != "":
		phase = corev1.VolumeReleased
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
	c, err := objects{clusters.Pair{Plan: p, On: clusters.Clusters{side: on}}}.Claim(t.Context(), side, "data-web-4")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The claim of the other side is made of what is saved on the volume. A user may have changed the claim since it was
// saved: days may lie between, and the whole stay on the destination before an abort.
func TestAClaimIsMadeLikeTheOneThatLeaves(t *testing.T) {
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
		"an abort": {[]client.Object{volume("shop", "former", left)}, []client.Object{claimIn("mall", "old", grown), volume("mall", "old", gold)}, at(plans.Reserve, early, back)},
	} {
		t.Run(name, func(t *testing.T) {
			p, to := apart(), c.m.To()
			on := map[plans.Side]client.Client{
				plans.Source:      fake.NewClientBuilder().WithObjects(c.here...).Build(),
				plans.Destination: fake.NewClientBuilder().WithObjects(c.there...).Build(),
			}
			wrote := playPreparation(t, p, on, c.m)
			if !strings.HasPrefix(wrote[0], "volume pv-1 of claim data-web-4") {
				t.Errorf("it wrote %q", wrote)
			}
			made := claimOn(t, p, on[to], to)
			if size, class := made.Spec.Resources.Requests.Storage().String(), *made.Spec.VolumeAttributesClassName; size != "40Gi" || class != "gold" || made.Labels["team"] != "b" || made.Annotations["note"] != "n" {
				t.Errorf("size %s, class %s, labels %v, annotations %v", size, class, made.Labels, made.Annotations)
			}
			if policy := theVolume(t, on[c.m.From]).Annotations[plans.PolicyAnnotation]; policy != "Delete" {
				t.Errorf("the saved policy is %s", policy)
			}
		})
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
		if s, err := Looks(apart(), on, nil)[plans.Vacate](t.Context(), m); err != nil || s.Standing != c.vacates || !strings.Contains(s.Reason, c.seen) {
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
		s, err := Looks(apart(), on, nil)[plans.Vacate](t.Context(), m)
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
