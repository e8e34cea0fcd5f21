package sets

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
	"github.com/stsmigrate/stsmigrate/storage"
)

// scene is what a look reads: the sets of web[2..4], which moves from shop to mall, and what belongs to them.
type scene struct {
	plan                *plans.Plan
	source, destination *appsv1.StatefulSet
	pods                map[string]*corev1.Pod // by namespace/name
	claim               *corev1.PersistentVolumeClaim
	volume              *corev1.PersistentVolume
	node                *corev1.Node
	budgets             []*policyv1.PodDisruptionBudget
	others              []client.Object
	moment              plans.StepContext
	on                  client.Client
}

// at returns the scene of a step of ordinal 4. Every other pod of the two ranges is available.
func at(op plans.Op, source, destination plans.Slice) *scene {
	s := &scene{
		plan: planstest.Three(), pods: map[string]*corev1.Pod{},
		source: setIn("shop", "source", source), destination: setIn("mall", "destination", destination),
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
	}
	s.plan.ID, s.plan.Seen.SourceUID, s.plan.Budget = "web-abc", "source", plans.Budget{Source: "web", Destination: "web"}
	s.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, set := range []*appsv1.StatefulSet{s.source, s.destination} {
		if op == plans.Tighten || op == plans.Shrink {
			plans.Pin(set)
		}
		for o := range plans.SliceOf(set).All() {
			s.runs(set, o)
		}
		none := intstr.FromInt32(0)
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "web", Annotations: map[string]string{plans.StampAnnotation: "web-abc/1/9"}}}
		b.Spec.MaxUnavailable = &none
		s.budgets = append(s.budgets, b)
	}
	wave := plans.Slice{Start: 4, Replicas: 1}
	s.moment = plans.StepContext{Step: plans.Step{Seq: 20, Op: op, Ordinals: wave, From: plans.Source}, Stamp: plans.Stamp{Plan: "web-abc", Epoch: 1, Seq: 20}, Allowed: 1}
	s.bound("shop", "claim")
	return s
}

func setIn(namespace string, uid types.UID, slice plans.Slice) *appsv1.StatefulSet {
	set := planstest.Set(slice.Start, slice.Replicas)
	set.Namespace, set.UID, set.Generation, set.Status.ObservedGeneration = namespace, uid, 3, 3
	set.Annotations = map[string]string{plans.StampAnnotation: "web-abc/1/9"}
	set.Spec.PersistentVolumeClaimRetentionPolicy = retain()
	return set
}

// runs adds the pod of an ordinal, which is Ready.
func (s *scene) runs(set *appsv1.StatefulSet, ordinal int32) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: s.plan.Pod(plans.Source, ordinal), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
	p.Spec.NodeName = "n1"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.pods[p.Namespace+"/"+p.Name] = p
	set.Status.AvailableReplicas++
}

// fails makes a pod not Ready.
func (s *scene) fails(name string) { s.pods[name].Status.Conditions = nil }

// bound binds the claim of ordinal 4 in a namespace to its volume, which the plan protects.
func (s *scene) bound(namespace string, uid types.UID) {
	s.claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-web-4", UID: uid}}
	s.claim.Spec.VolumeName, s.claim.Status.Phase = "pv-4", corev1.ClaimBound
	manifest, err := storage.Manifest(s.claim)
	if err != nil {
		panic(err)
	}
	ref := storage.RefTo(namespace, s.claim.Name, uid)
	s.volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-4", Annotations: map[string]string{plans.StampAnnotation: "web-abc/1/2", plans.PolicyAnnotation: "Delete", plans.ClaimAnnotation: manifest}}}
	s.volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-4"}
	s.volume.Spec.PersistentVolumeReclaimPolicy, s.volume.Spec.ClaimRef = corev1.PersistentVolumeReclaimRetain, &ref
}

// left makes ordinal 4 one that has left the source, with its claim on the other side.
func left(s *scene) {
	s.moment.Began = true
	s.moment.Flight = &plans.Flight{Ordinals: s.moment.Ordinals, From: plans.Source, Volumes: []plans.Volume{{Ordinal: 4, Template: "data", Claim: "claim", Name: "pv-4", Handle: "disk.example.com^vol-4"}}}
	s.bound("mall", "new claim")
}

// steps returns the steps over a client with the objects of the scene.
func (s *scene) steps() Steps {
	c := fake.NewClientBuilder().WithReturnManagedFields().WithScheme(clusters.Scheme()).WithObjects(s.node).WithObjects(s.others...)
	if s.claim != nil {
		c.WithObjects(s.claim, s.volume)
	}
	for _, set := range []*appsv1.StatefulSet{s.source, s.destination} {
		if set != nil {
			c.WithObjects(set)
		}
	}
	for _, p := range s.pods {
		c.WithObjects(p)
	}
	for _, b := range s.budgets {
		b.Status.CurrentHealthy = 0
		for _, p := range s.pods {
			if p.Namespace == b.Namespace && Ready(p) == "" {
				b.Status.CurrentHealthy++
			}
		}
		c.WithObjects(b)
	}
	s.on = c.Build()
	return Steps{Pair: clusters.Pair{Plan: s.plan, On: clusters.Clusters{plans.Source: s.on, plans.Destination: s.on}}}
}

// seen is a row of a table: what differs from the scene, and how the look sees it.
type seen struct {
	change func(*scene)
	want   plans.Standing
	reason string
}

func looks(t *testing.T, from func() *scene, look func(Steps) plans.Look, rows map[string]seen) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := from()
			row.change(s)
			w := s.steps()
			got, err := look(w)(t.Context(), s.moment)
			if err != nil || got.Standing != row.want || !strings.Contains(got.Reason, row.reason) {
				t.Errorf("%s %q (%v), expected %s %q", got.Standing, got.Reason, err, row.want, row.reason)
			}
			unread(t, w, func(w Steps) (plans.Observation, error) { return look(w)(t.Context(), s.moment) })
		})
	}
}

// unread lets each read of the steps fail in turn.
func unread(t *testing.T, w Steps, look func(Steps) (plans.Observation, error)) {
	t.Helper()
	planstest.Unread(t, w.On, func(on map[plans.Side]client.Client) (plans.Observation, error) {
		w.On = on
		return look(w)
	})
}

// stamped returns a change of the source's stamp.
func stamped(stamp string) func(*scene) {
	return func(s *scene) { s.source.Annotations[plans.StampAnnotation] = stamp }
}

// updating makes a set be in the middle of a rolling update.
func updating(set *appsv1.StatefulSet) {
	set.Status.CurrentRevision, set.Status.UpdateRevision = "old", "new"
}

// stranger returns a pod of nobody that mounts a claim of namespace shop.
func stranger(claim string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backup"}}
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

// Nothing is scaled down unless everything that a later step of the wave needs is in place (S17), and no other
// ordinal is down (S2).
func TestShrink(t *testing.T) {
	ready := func() *scene { return at(plans.Shrink, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5}) }
	looks(t, ready, func(w Steps) plans.Look { return w.Shrink }, map[string]seen{
		"the ordinal may go":                      {func(*scene) {}, plans.Before, "source: StatefulSet web: [2..4] -> [2..3]"},
		"the source was recreated":                {func(s *scene) { s.source.UID = "another" }, plans.Conflict, "was deleted and recreated"},
		"the source was recreated without a mark": {func(s *scene) { s.source.UID, s.source.Annotations = "another", nil }, plans.Conflict, "was deleted and recreated"},
		"the source has lost its mark":            {func(s *scene) { s.source.Annotations = nil }, plans.Conflict, "no longer carries the mark"},
		"a later process has written the source":  {stamped("web-abc/2/3"), plans.Conflict, "another process has taken the plan over"},
		"another plan has the source":             {stamped("web-xyz/1/3"), plans.Conflict, "belongs to plan web-xyz"},
		"the source is being deleted":             {func(s *scene) { dying(s.source) }, plans.Conflict, "is being deleted by another writer"},
		"the source has another range":            {func(s *scene) { *s.source.Spec.Replicas = 5 }, plans.Conflict, "expected"},
		"the destination has another range":       {func(s *scene) { s.destination.Spec.Ordinals.Start = 6 }, plans.Conflict, "expected"},
		"the destination is gone":                 {func(s *scene) { s.destination = nil }, plans.Conflict, "does not exist"},
		"claims are deleted with the source":      {func(s *scene) { s.source.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = "Delete" }, plans.Conflict, "no longer keeps its claims"},
		"claims are deleted with the destination": {func(s *scene) {
			s.destination.Spec.PersistentVolumeClaimRetentionPolicy = &Retention{WhenDeleted: "Delete"}
		}, plans.Conflict, "no longer keeps its claims"},
		"another ordinal is down":                      {func(s *scene) { s.fails("shop/web-2") }, plans.During, "pod web-2 of shop/web is"},
		"another ordinal is down, and two may be":      {func(s *scene) { s.fails("shop/web-2"); s.plan.MaxUnavailable, s.moment.Allowed = 2, 2 }, plans.During, "pod web-2 of shop/web is"},
		"another ordinal is Ready, and not available":  {func(s *scene) { s.source.Spec.MinReadySeconds, s.source.Status.AvailableReplicas = 10, 2 }, plans.During, "minReadySeconds 10"},
		"the source is in a rolling update":            {func(s *scene) { updating(s.source) }, plans.During, "rolling update"},
		"the controller has not seen the last change":  {func(s *scene) { s.source.Status.ObservedGeneration = 2 }, plans.During, "to see generation 3"},
		"the controller of the other side has not":     {func(s *scene) { s.destination.Status.ObservedGeneration = 2 }, plans.During, "to see generation 3"},
		"the budgets are open":                         {func(s *scene) { *s.budgets[0].Spec.MaxUnavailable = intstr.FromInt32(1) }, plans.During, "the budgets allow 1 evictions"},
		"the volume would be deleted":                  {func(s *scene) { s.volume.Spec.PersistentVolumeReclaimPolicy = "Delete" }, plans.Conflict, "expected Retain"},
		"a pod of nobody mounts the claim":             {func(s *scene) { s.others = append(s.others, stranger("data-web-4")) }, plans.During, "also mounted by pod backup"},
		"a pod is in the way on the other side":        {func(s *scene) { s.runs(s.destination, 4) }, plans.Conflict, "is in the way"},
		"its node could not report its end":            {func(s *scene) { s.node.Status.Conditions[0].Status = corev1.ConditionUnknown }, plans.During, "is gone or not Ready"},
		"it has left without us":                       {func(s *scene) { *s.source.Spec.Replicas = 2 }, plans.Conflict, "expected [2..4]"},
		"it has left":                                  {func(s *scene) { left(s); *s.source.Spec.Replicas = 2 }, plans.After, ""},
		"it leaves":                                    {func(s *scene) { left(s); *s.source.Spec.Replicas, s.source.Status.ObservedGeneration = 2, 2 }, plans.During, "to see generation 3"},
		"it has left, and another writer took it back": {stamped("web-abc/1/20"), plans.After, ""},
	})
}

// A range that another writer has changed is to be set back to the one that is right now. An ordinal that is still on one
// side must not be named in a range of the other one (S1).
func TestOnlyTheRangeThatIsRightNowIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		step   plans.Op
		change func(*scene)
		want   string
	}{
		"the other side, before the wave leaves":      {plans.Shrink, func(s *scene) { *s.destination.Spec.Replicas = 2 }, "expected []; "},
		"the other side, in an abort":                 {plans.Shrink, func(s *scene) { *s.destination.Spec.Replicas, s.moment.Reversed = 2, true }, "expected []; "},
		"the other side, where the wave is leaving":   {plans.Shrink, func(s *scene) { *s.destination.Spec.Replicas, s.moment.Began = 2, true }, "expected []; "},
		"the side of the wave, before it leaves":      {plans.Shrink, func(s *scene) { *s.source.Spec.Replicas = 5 }, "expected [2..4]; "},
		"the side of the wave, where it is leaving":   {plans.Shrink, func(s *scene) { *s.source.Spec.Replicas, s.moment.Began = 5, true }, "expected [2..4] or [2..3]; "},
		"the side that gets the wave, before it does": {plans.Grow, func(s *scene) { *s.source.Spec.Replicas, *s.destination.Spec.Replicas = 2, 3 }, "expected []; "},
	} {
		s := at(c.step, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		c.change(s)
		w := s.steps()
		look := map[plans.Op]plans.Look{plans.Shrink: w.Shrink, plans.Grow: w.Grow}[c.step]
		if got, err := look(t.Context(), s.moment); err != nil || !strings.Contains(got.Reason, c.want) {
			t.Errorf("%s: %q, %v, expected %q", name, got.Reason, err, c.want)
		}
	}
}

// The pods and volumes that leave are recorded before they do: only what is recorded must be proven gone (S1).
func TestWhatLeavesIsRecorded(t *testing.T) {
	s := at(plans.Shrink, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	s.pods["shop/web-4"].UID, s.node.UID = "pod", "node"
	got, err := s.steps().Shrink(t.Context(), s.moment)
	if err != nil || got.Undo.Flight == nil {
		t.Fatal(got.Reason, err)
	}
	f := got.Undo.Flight
	if len(f.Pods) != 1 || f.Pods[0] != (plans.Pod{Ordinal: 4, UID: "pod", Node: "n1", NodeUID: "node", Grace: 30}) || len(f.Volumes) != 1 || f.Volumes[0].Name != "pv-4" || f.Volumes[0].Claim != "claim" {
		t.Errorf("%+v", f)
	}
}

func dying(o client.Object) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{"test"})
}

// The second ordinal leaves only while the first is available on the other side.
func TestTheNextOrdinalWaitsForTheOneThatHasMoved(t *testing.T) {
	second := func() *scene {
		s := at(plans.Shrink, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 4, Replicas: 1})
		s.plan.Claims, s.claim = nil, nil
		s.moment.Ordinals.Start = 3
		return s
	}
	looks(t, second, func(w Steps) plans.Look { return w.Shrink }, map[string]seen{
		"it is available": {func(*scene) {}, plans.Before, "[2..3] -> [2]"},
		"it is down":      {func(s *scene) { s.fails("mall/web-4") }, plans.During, "pod web-4 of mall/web"},
		"it is Ready, and not available": {func(s *scene) {
			s.destination.Spec.MinReadySeconds, s.destination.Status.AvailableReplicas = 10, 0
		}, plans.During, "minReadySeconds 10"},
		"it is being updated": {func(s *scene) { updating(s.destination) }, plans.During, "rolling update"},
	})
}

// On the way back an ordinal that serves leaves only while the number of those that are down allows it.
func TestAnAbortTakesNoMoreDownThanAllowed(t *testing.T) {
	back := func() *scene {
		s := at(plans.Shrink, plans.Slice{Start: 2, Replicas: 1}, plans.Slice{Start: 3, Replicas: 2})
		s.plan.Claims, s.claim = nil, nil
		s.moment.Ordinals.Start, s.moment.From = 3, plans.Destination
		return s
	}
	looks(t, back, func(w Steps) plans.Look { return w.Shrink }, map[string]seen{
		"nothing is down":                         {func(*scene) {}, plans.Before, "[3..4] -> [4]"},
		"another ordinal is down":                 {func(s *scene) { s.fails("mall/web-4") }, plans.During, "2 ordinals would be unavailable, and at most 1 may be"},
		"another ordinal is down, and two may be": {func(s *scene) { s.fails("mall/web-4"); s.moment.Allowed = 2 }, plans.Before, "[3..4] -> [4]"},
		"it is down itself":                       {func(s *scene) { s.fails("mall/web-4"); s.fails("mall/web-3") }, plans.Before, "[3..4] -> [4]"},
		"the destination is being updated":        {func(s *scene) { updating(s.destination) }, plans.During, "rolling update"},
		"the status is old, and it is down itself": {func(s *scene) {
			s.fails("mall/web-3")
			s.destination.Status.ObservedGeneration = 2
		}, plans.During, "to see generation 3"},
	})
}

// The budgets are tightened only for a wave that may go.
func TestBudgetsAreNotTightenedForAWaveThatMustWait(t *testing.T) {
	ready := func() *scene { return at(plans.Tighten, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5}) }
	look := func(w Steps) plans.Look {
		w.Tighten = func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil }
		return w.Steadily
	}
	looks(t, ready, look, map[string]seen{
		"it may go":                    {func(*scene) {}, plans.After, ""},
		"another ordinal is down":      {func(s *scene) { s.fails("shop/web-2") }, plans.During, "no ordinal is scaled down until it is available"},
		"its claim is kept":            {func(s *scene) { s.claim.Finalizers = append(s.claim.Finalizers, "example.com/backup") }, plans.During, "is kept by finalizer example.com/backup"},
		"a stranger mounts its claim":  {func(s *scene) { s.others = append(s.others, stranger("data-web-4")) }, plans.During, "also mounted by pod backup"},
		"its node cannot report":       {func(s *scene) { s.node.Status.Conditions[0].Status = corev1.ConditionUnknown }, plans.During, "is gone or not Ready"},
		"it will not be able to leave": {func(s *scene) { s.claim.Name = "another" }, plans.After, ""},
	})
}

// Budgets for fewer pods than a set has would allow too much (S7).
func TestBudgetsAreNotTightenedForMoreOrdinals(t *testing.T) {
	ready := func() *scene { return at(plans.Tighten, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5}) }
	look := func(w Steps) plans.Look {
		w.Tighten = func(context.Context, plans.StepContext) (plans.Observation, error) { return plans.Done(), nil }
		return w.Steadily
	}
	sized := func(set *appsv1.StatefulSet, of plans.Slice) {
		set.Spec.Replicas, set.Spec.Ordinals = &of.Replicas, &appsv1.StatefulSetOrdinals{Start: of.Start}
	}
	more := func(s *scene) { sized(s.source, plans.Slice{Start: 2, Replicas: 4}) }
	looks(t, ready, look, map[string]seen{
		"the source has one more":          {more, plans.Conflict, "has the ordinals [2..5] (start 2), expected [2..4]"},
		"the source has lost one":          {func(s *scene) { sized(s.source, plans.Slice{Start: 2, Replicas: 2}) }, plans.After, ""},
		"the destination has one already":  {func(s *scene) { sized(s.destination, plans.Slice{Start: 4, Replicas: 1}) }, plans.Conflict, "has the ordinals [4] (start 4), expected []"},
		"it has left, and is on its way":   {func(s *scene) { more(s); s.moment.Flight = &plans.Flight{Ordinals: s.moment.Ordinals} }, plans.After, ""},
		"it was reversed on its way":       {func(s *scene) { more(s); s.moment.Reversed = true }, plans.After, ""},
		"the set is not the plan's at all": {func(s *scene) { more(s); s.source.Annotations = nil }, plans.After, ""},
	})
}

// An ordinal gets into the range of the other side only when the first side has let go of it (S1) and its own
// volume is bound there (S5). It has arrived when its pod is available.
func TestGrow(t *testing.T) {
	gone := func() *scene {
		s := at(plans.Grow, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 5})
		left(s)
		return s
	}
	looks(t, gone, func(w Steps) plans.Look { return w.Grow }, map[string]seen{
		"the ordinal may come":                     {func(*scene) {}, plans.Before, "destination: StatefulSet web: "},
		"the other side has it again":              {func(s *scene) { *s.source.Spec.Replicas = 3 }, plans.Conflict, "has ordinal 4 in its range again"},
		"the other side has its pod again":         {func(s *scene) { s.runs(s.source, 4) }, plans.Conflict, "exists again"},
		"its claim is missing":                     {func(s *scene) { s.claim.Name = "another" }, plans.Conflict, "does not exist, expected it to be bound"},
		"its claim has another volume":             {func(s *scene) { s.moment.Flight.Volumes[0].Name = "pv-5" }, plans.Conflict, "is not bound to volume pv-5"},
		"its claim has another disk":               {func(s *scene) { s.moment.Flight.Volumes[0].Handle = "disk.example.com^vol-5" }, plans.Conflict, "is not bound to volume pv-4"},
		"its volume is attached where it was":      {attached, plans.During, "is still attached to node n1"},
		"a later process has written the set":      {func(s *scene) { s.destination.Annotations[plans.StampAnnotation] = "web-abc/2/3" }, plans.Conflict, "another process has taken the plan over"},
		"it came, and another writer took it away": {func(s *scene) { s.destination.Annotations[plans.StampAnnotation] = "web-abc/1/20" }, plans.Conflict, "expected"},
	})
	looks(t, came, func(w Steps) plans.Look { return w.Grow }, map[string]seen{
		"the ordinal is available":          {func(*scene) {}, plans.After, ""},
		"it came, and the other side too":   {func(s *scene) { *s.source.Spec.Replicas = 3 }, plans.Conflict, "has ordinal 4 in its range again"},
		"it is to come, and there as well":  {func(s *scene) { *s.source.Spec.Replicas = 3; s.fails("mall/web-4") }, plans.Conflict, "has ordinal 4 in its range again"},
		"it came without us":                {func(s *scene) { s.moment.Began = false }, plans.Conflict, "expected"},
		"its pod is not Ready":              {func(s *scene) { s.fails("mall/web-4") }, plans.During, "not Ready"},
		"its pod is another's":              {func(s *scene) { s.pods["mall/web-4"].OwnerReferences[0].UID = "another" }, plans.Conflict, "does not belong to the set"},
		"its pod is Ready, not available":   {func(s *scene) { s.destination.Spec.MinReadySeconds, s.destination.Status.AvailableReplicas = 10, 0 }, plans.During, "minReadySeconds 10"},
		"its status is of another range":    {func(s *scene) { s.destination.Spec.MinReadySeconds, s.destination.Status.ObservedGeneration = 10, 2 }, plans.During, "minReadySeconds 10"},
		"its pod is Ready, and is to leave": {func(s *scene) { dying(s.pods["mall/web-4"]) }, plans.During, "is terminating"},
	})
}

// came returns the scene after ordinal 4 has come up on the destination.
func came() *scene {
	s := at(plans.Grow, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 4, Replicas: 1})
	left(s)
	return s
}

// attached moves the set to another cluster, and leaves its volume attached in the first.
func attached(s *scene) {
	s.plan.Destination.Cluster, s.plan.Claims[0].Mode = "two", plans.Reimport
	s.others = append(s.others, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va"},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &s.volume.Name}},
	})
}

// Start and replicas change in one write, and both ranges together are always those of the plan (S7).
func TestBothRangesAreThePlansRange(t *testing.T) {
	s := at(plans.Grow, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 5})
	left(s)
	w := s.steps()
	got, err := w.Grow(t.Context(), s.moment)
	if err != nil || got.Standing != plans.Before {
		t.Fatal(got.Reason, err)
	}
	if err := got.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, err := w.Set(t.Context(), plans.Destination)
	if err != nil || plans.SliceOf(set) != (plans.Slice{Start: 4, Replicas: 1}) || set.Annotations[plans.StampAnnotation] != "web-abc/1/20" {
		t.Errorf("%+v, %+v, %v", set.Spec, set.Annotations, err)
	}
}

// Pods and claims of an ordinal are touched only while it is outside the range of the side that released it
// (S6).
func TestNothingIsTouchedOfAnOrdinalThatIsInRangeAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    plans.Op
		sees  plans.Observation
		again bool
		want  plans.Standing
	}{
		{"a write", plans.Release, plans.Write("", plans.Undo{}, nil), false, plans.Before},
		{"a write, and it is in range again", plans.Release, plans.Write("", plans.Undo{}, nil), true, plans.Conflict},
		{"a wait that touches nothing", plans.Release, plans.Wait(reasons.PodNotReady, ""), true, plans.During},
		{"a proof that it has gone", plans.Vacate, plans.Done(), true, plans.Conflict},
		{"a wait for a pod that will not go", plans.Vacate, plans.Wait(reasons.PodNotReady, ""), true, plans.Conflict},
		{"a wait for a node", plans.Vacate, plans.Wait(reasons.PodNotReady, "").Idly(), true, plans.During},
	} {
		s := at(c.op, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 5})
		left(s)
		if c.again {
			*s.source.Spec.Replicas = 3
		}
		look := s.steps().Outside(func(context.Context, plans.StepContext) (plans.Observation, error) { return c.sees, nil })
		if got, err := look(t.Context(), s.moment); err != nil || got.Standing != c.want {
			t.Errorf("%s: %s %q (%v), expected %s", c.name, got.Standing, got.Reason, err, c.want)
		}
	}
}

// What a side needs is not concluded from pods, nodes or sets that cannot be read: pods that were not read are not down.
func TestNeedsAreReadWhole(t *testing.T) {
	s := at(plans.Shrink, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 4, Replicas: 1})
	s.node.Spec.Unschedulable = true
	s.plan.Destination.Cluster = "another" // both are the one of the test
	w := s.steps()
	needs, err := w.Needs(t.Context())
	if err != nil || needs[plans.Source].Down != "" || len(needs[plans.Source].Exposed) != 2 || len(needs[plans.Destination].Exposed) != 1 {
		t.Fatalf("%+v, %v", needs, err)
	}
	unread(t, w, func(w Steps) (plans.Observation, error) {
		needs, err := w.Needs(t.Context())
		return plans.Observation{Reason: needs.On(plans.Source)}, err
	})
}

// A set that a person has scaled to far more ordinals than the plan has, as a typo does, has no more needs than those of
// the plan: they are counted all the time, and two thousand million names end the process.
func TestARangeThatIsMistypedIsNotCounted(t *testing.T) {
	for _, replicas := range []int32{20, 2_000_000_000} {
		s := at(plans.Shrink, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		s.source.Spec.Replicas = &replicas
		w := s.steps()
		needs, err := w.Needs(t.Context())
		why, err2 := Unavailable(t.Context(), w.Pair, plans.Source, s.source)
		if err != nil || err2 != nil || needs[plans.Source].Down != "" || why != "" {
			t.Fatalf("%d replicas: %+v, %v, %q, %v", replicas, needs[plans.Source], err, why, err2)
		}
		s.pods["shop/web-3"].Status.Conditions = nil
		if needs, err = s.steps().Needs(t.Context()); err != nil || needs[plans.Source].Down != "web-3" {
			t.Errorf("%d replicas: %+v, %v", replicas, needs[plans.Source], err)
		}
	}
}
