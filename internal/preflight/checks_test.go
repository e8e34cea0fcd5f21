package preflight

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func TestClaimsWithNamesOfEphemeralVolumesAreFound(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-1-scratch"}}
	far := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-7-scratch"}}
	checktest.Estate{Spec: "{containers: [{name: web}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, resources: {requests: {storage: 5Gi}}}}}}]}", Volumes: []string{nfs, nfs}, There: []client.Object{other, far}}.Finds(t, DestinationFree, "FAIL ...claim mall/web-1-scratch: it exists on the destination")
}

// podOf returns a pod of the source's set.
func podOf(name string, ready corev1.ConditionStatus, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "u", Controller: new(true)}}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}}})
	}
	return p
}

// A move starts from a set at rest: the first wave must be the only thing that is down (S2, S13).
func TestASetThatIsNotAtRestIsNotMoved(t *testing.T) {
	deleted := metav1.Now()
	for name, c := range map[string]struct {
		change func(*appsv1.StatefulSet)
		ready  corev1.ConditionStatus
		want   []string
	}{
		"at rest":                    {func(*appsv1.StatefulSet) {}, corev1.ConditionTrue, nil},
		"with a pod that is down":    {func(*appsv1.StatefulSet) {}, corev1.ConditionFalse, []string{"FAIL ...pod web-0 of...expected every ordinal available"}},
		"in a rolling update":        {func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "web-2" }, corev1.ConditionTrue, []string{"FAIL ...in the middle of a rolling update"}},
		"not seen by its controller": {func(s *appsv1.StatefulSet) { s.Generation = 1 }, corev1.ConditionTrue, []string{"FAIL ...waiting for its controller to see generation 1"}},
		"with a partition": {func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
		}, corev1.ConditionTrue, []string{"FAIL ...updateStrategy has partition 1"}},
		"paused by rollout pause": {func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, sets.PausedFrom, "none")
		}, corev1.ConditionTrue, []string{"FAIL ...resume it, and let it finish...stsmigrate rollout resume web -n shop"}},
		"about to go": {func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &deleted }, corev1.ConditionTrue, []string{"FAIL ...it is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Here: []client.Object{podOf("web-0", c.ready)}}.Inspected(t)
			c.change(i.Now.Set)
			found, err := SourceSettled(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// The set of the destination would use what has the name of its pods and claims (S1, S5).
func TestWhatIsInTheWayOnTheDestinationIsFound(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	there := func(o client.Object, name string) client.Object {
		o.SetNamespace("mall")
		o.SetName(name)
		return o
	}
	for name, c := range map[string]struct {
		there    []client.Object
		ordinals int32
		midway   bool
		want     []string
	}{
		"nothing":            {nil, 0, false, nil},
		"a pod":              {[]client.Object{there(&corev1.Pod{}, "web-1")}, 0, false, []string{"FAIL ...pod mall/web-1: it exists on the destination"}},
		"a claim":            {[]client.Object{there(&corev1.PersistentVolumeClaim{}, "data-web-0")}, 0, false, []string{"FAIL ...claim mall/data-web-0: it exists on the destination"}},
		"objects of others":  {[]client.Object{there(&corev1.Pod{}, "web-2"), there(&corev1.PersistentVolumeClaim{}, "data-web-2")}, 0, false, nil},
		"ordinals":           {nil, 1, false, []string{"FAIL ...it has the ordinals [0]...expected no ordinals"}},
		"those that arrived": {nil, 1, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{nfs, nfs}, There: c.there}.Inspected(t)
			i.Midway, i.Now.Existing = c.midway, i.Now.Set.DeepCopy()
			i.Now.Existing.Spec.Replicas = &c.ordinals
			found, err := DestinationFree(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// A pod that mounts the claim of another one keeps it while the ordinal is down, and may write to its volume (S6).
func TestAClaimThatAnotherPodMountsIsNotMoved(t *testing.T) {
	const nfs = "spec: {nfs: {server: files, path: /a}}"
	its := podOf("web-0", corev1.ConditionTrue, "data-web-0")
	for name, c := range map[string]struct {
		pods []client.Object
		want []string
	}{
		"its own pod":   {[]client.Object{its}, nil},
		"a backup":      {[]client.Object{its, podOf("backup", corev1.ConditionTrue, "logs", "data-web-0")}, []string{"FAIL ...claim data-web-0: pod backup mounts it too"}},
		"another claim": {[]client.Object{its, podOf("backup", corev1.ConditionTrue, "data-web-7")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.Estate{Volumes: []string{nfs}, Here: c.pods}.Finds(t, ClaimsUnshared, c.want...)
		})
	}
}

// Without its Service the side that an ordinal leaves never finds it again by its name (S17).
func TestAnOrdinalStaysWhereItsServiceIsGone(t *testing.T) {
	service := func(namespace string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-headless"}}
	}
	namespace := func(name string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	gone := func(name string) []string {
		return []string{"FAIL ...Service " + name + ": it does not exist any more"}
	}
	for name, c := range map[string]struct {
		here, there []client.Object
		from        plans.Side
		want        []string
	}{
		"a move where a stand-in has no room":  {[]client.Object{service("shop")}, []client.Object{}, plans.Source, []string{"FAIL ...namespace shop on the destination: it does not exist"}},
		"a move":                               {[]client.Object{service("shop")}, nil, plans.Source, nil},
		"a move without that of the source":    {nil, []client.Object{service("mall")}, plans.Source, gone("shop/web-headless on the source")},
		"an abort":                             {nil, []client.Object{service("mall")}, plans.Destination, nil},
		"an abort without that of destination": {[]client.Object{service("shop")}, nil, plans.Destination, gone("mall/web-headless on the destination")},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := append(c.here, namespace("mall")), c.there
			if c.there == nil || len(c.there) > 0 {
				there = append(there, namespace("shop"))
			}
			i := checktest.Estate{Here: here, There: there}.Inspected(t)
			i.Midway, i.From, i.Plan.Names = true, c.from, plans.Names{Mode: plans.Bridge, Service: "web-headless"}
			found, err := Names(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
		})
	}
}

// Only what would stop an abort anyway may bar it: it is the way out of what the other checks look for (S14). They bar
// ordinals that serve (S18).
func TestAnAbortIsCheckedForFewThings(t *testing.T) {
	estate := estateOfTwoSets()
	for _, o := range append(estate.Here, estate.There...) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "db.example.com/v1", Kind: "Cluster", Name: "web", UID: "o", Controller: new(true)}})
	}
	i := estate.Inspected(t)
	allowAll(i.On)
	for direction, barred := range map[plans.Direction][2]bool{plans.Move: {true, false}, plans.Abort: {false, true}, plans.Finalize: {}} {
		j := journal.New(i.Plan)
		j.Leg.Direction = direction
		found, err := (&Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}).Check(t.Context(), j, plans.Slice{Replicas: 1})
		if err != nil {
			t.Fatal(err)
		}
		of := func(found []check.Finding) bool {
			return slices.ContainsFunc(found, func(f check.Finding) bool { return f.Check == "owner" })
		}
		if has := [2]bool{of(found.Bars), of(found.Unready)}; has != barred {
			t.Errorf("%s: the operator bars every ordinal, and those that serve: %t, expected %t; %v", direction, has, barred, found)
		}
	}
}

// estateOfTwoSets has the set on both sides.
func estateOfTwoSets() checktest.Estate {
	set := func(namespace string) client.Object {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "u"}}
	}
	return checktest.Estate{Here: []client.Object{set("shop")}, There: []client.Object{set("mall")}}
}

// allowAll lets the user of the clients do everything.
func allowAll(on clusters.Clusters) {
	allow(on, authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
}

// allow lets the API servers answer that the user of the clients has these rights.
func allow(on clusters.Clusters, rules ...authorizationv1.ResourceRule) {
	for side, c := range on {
		on[side] = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				switch review := o.(type) {
				case *authorizationv1.SelfSubjectAccessReview:
					review.Status.Allowed = len(rules) > 0
					return nil
				case *authorizationv1.SelfSubjectRulesReview:
					review.Status.ResourceRules = rules
					return nil
				}
				return c.Create(ctx, o, opts...)
			},
		})
	}
}
