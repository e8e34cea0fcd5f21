package preflight

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Whatever is asked before an ordinal leaves the source is asked before one that serves leaves the destination, or says why
// not (S18). What would bar an ordinal that is down cannot be accepted: it would stop the abort anyway.
func TestEveryCheckStatesItsWayBack(t *testing.T) {
	for _, c := range catalogue() {
		switch {
		case c.worst == check.Warn && (c.back != notBack || c.oneWay != ""):
			t.Errorf("%s only warns, and says something of the way back", c.name)
		case c.worst != check.Warn && (c.back == notBack) != (len(c.oneWay) > 20):
			t.Errorf("%s: it has to run on the way back, or to say why not", c.name)
		case c.accepted && (c.back != healthy || c.ignorable):
			t.Errorf("%s: only what bars ordinals that serve can be accepted on the way back alone", c.name)
		}
	}
}

// returning is an estate whose ordinals are on the destination, after a move within one cluster or to another one.
func returning(one bool) checktest.Estate {
	set := func(namespace string, replicas, start int32) client.Object {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "u"}}
		s.Spec.Replicas, s.Spec.Ordinals = &replicas, &appsv1.StatefulSetOrdinals{Start: start}
		s.Spec.Template.Spec = corev1.PodSpec{PriorityClassName: "gold", Containers: []corev1.Container{{Name: "db", Image: "db:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		return s
	}
	node := func() client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}}}
	}
	class := func() client.Object { return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}} }
	e := checktest.Estate{One: one, Volumes: []string{"spec: {csi: {driver: d, volumeHandle: h}, capacity: {storage: 1Gi}}"}}
	e.Here = []client.Object{set("shop", 0, 0), node(), class()}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "data-web-0", UID: "c"}}
	claim.Spec.VolumeName, claim.Status.Phase = "pv-0", corev1.ClaimBound
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-0"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}
	pv.Spec.Capacity = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "mall", Name: "data-web-0", UID: "c"}
	there := []client.Object{set("mall", 1, 0), claim}
	if one {
		e.Here = append(e.Here, there...)
		return e
	}
	e.There = append(there, pv, node(), class())
	return e
}

// returned makes the claims and volumes of an estate what they are after the move.
func returned(t *testing.T, i check.Inspection) {
	t.Helper()
	on := i.On[plans.Source]
	manifest := `{"metadata":{"namespace":"shop","name":"data-web-0"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`
	if err := on.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-0"}}); err != nil {
		t.Fatal(err)
	}
	for _, side := range plans.Sides() {
		var pv corev1.PersistentVolume
		if err := i.On[side].Get(t.Context(), client.ObjectKey{Name: "pv-0"}, &pv); err != nil {
			t.Fatal(err)
		}
		plans.Stamp{Plan: i.Plan.ID, Epoch: 1, Seq: 1}.Put(&pv)
		pv.Annotations[plans.ClaimAnnotation] = manifest
		if i.Plan.OneCluster() {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "mall", Name: "data-web-0", UID: "c"}
		}
		if err := i.On[side].Update(t.Context(), &pv); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"shop", "mall"} {
		side := map[string]plans.Side{"shop": plans.Source, "mall": plans.Destination}[namespace]
		var s appsv1.StatefulSet
		if err := i.On[side].Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &s); err != nil {
			t.Fatal(err)
		}
		plans.Stamp{Plan: i.Plan.ID, Epoch: 1, Seq: 1}.Put(&s)
		if err := i.On[side].Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
	}
}

// What would leave an ordinal down on the source is found while it serves on the destination, and is asked of the source
// alone. The user may accept what makes a pod wait, and nothing that lets another writer revert the abort.
func TestTheSideThatReceivesIsAskedOnTheWayBack(t *testing.T) {
	foreign := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-0"}}
	for name, c := range map[string]struct {
		change func(*testing.T, check.Inspection)
		finds  string
		stays  bool // whatever the user ignores
		two    bool // only between two clusters
	}{
		"nothing":                               {change: func(*testing.T, check.Inspection) {}},
		"no claims in the old namespace":        {change: put(quota("shop", "persistentvolumeclaims"), plans.Source), finds: "quota"},
		"no pods in the old namespace":          {change: put(quota("shop", "pods"), plans.Source), finds: "quota"},
		"no storage in the old namespace":       {change: put(quota("shop", "requests.storage"), plans.Source), finds: "quota"},
		"no pods in the new namespace":          {change: put(quota("mall", "pods"), plans.Destination)},
		"the old nodes are cordoned":            {change: cordon(plans.Source), finds: "nodes-fit"},
		"the new nodes are cordoned":            {change: cordon(plans.Destination), two: true},
		"the old namespace is restricted":       {change: refuse(plans.Source, "create", &corev1.Pod{}), finds: "pod-accepted"},
		"the new namespace is restricted":       {change: refuse(plans.Destination, "create", &corev1.Pod{})},
		"a policy refuses claims":               {change: refuse(plans.Source, "create", &corev1.PersistentVolumeClaim{}), finds: "claims-accepted"},
		"a policy refuses that the set grows":   {change: refuse(plans.Source, "patch", &appsv1.StatefulSet{}), finds: "admission"},
		"a policy refuses that the other grows": {change: refuse(plans.Destination, "patch", &appsv1.StatefulSet{}), finds: "writes-accepted"},
		"a claim is in the way":                 {change: put(foreign, plans.Source), finds: "destination-free"},
		"a volume is being expanded":            {change: expands, finds: "volumes-settled"},
		"a class is gone":                       {change: gone(plans.Source), finds: "classes"},
		"a class is gone on the other side":     {change: gone(plans.Destination), two: true},
	} {
		for _, one := range []bool{true, false} {
			if one && c.two {
				continue
			}
			i := returning(one).Inspected(t)
			returned(t, i)
			allowAll(i.On)
			c.change(t, i)
			j := journal.New(i.Plan)
			j.Leg.Direction = plans.Abort
			found := foundFirst(t, i, j)
			if has := slices.ContainsFunc(found.Unready, func(f check.Finding) bool { return f.Check == c.finds }); has != (c.finds != "") || !has && len(found.Unready) > 0 || len(found.Bars) > 0 {
				t.Errorf("%s (one cluster: %t): it finds %v, and %v for every ordinal; expected %q", name, one, found.Unready, found.Bars, c.finds)
				continue
			}
			if c.finds == "" {
				continue
			}
			if why := found.Unfit().Why; !strings.HasPrefix(why, "no ordinal that serves leaves before this is fixed, or with --ignore "+strings.Join(accepted(found.Unready), ",")+",") {
				t.Errorf("%s: it does not say how to go on: %s", name, why)
			}
			if j.Assurances.Ignored = accepted(found.Unready); len(foundFirst(t, i, j).Unready) > 0 {
				t.Errorf("%s: it is found although the user accepts it", name)
			}
		}
	}
}

// quota is a quota of a namespace that has nothing left of one resource.
func quota(namespace string, limit corev1.ResourceName) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "closed"}}
	q.Spec.Hard = corev1.ResourceList{limit: resource.MustParse("0")}
	return q
}

// put creates an object on a side.
func put(o client.Object, side plans.Side) func(*testing.T, check.Inspection) {
	return func(t *testing.T, i check.Inspection) {
		t.Helper()
		if err := i.On[side].Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
}

// cordon makes the node of a side unschedulable.
func cordon(side plans.Side) func(*testing.T, check.Inspection) {
	return func(t *testing.T, i check.Inspection) {
		t.Helper()
		var n corev1.Node
		if err := i.On[side].Get(t.Context(), client.ObjectKey{Name: "n"}, &n); err != nil {
			t.Fatal(err)
		}
		n.Spec.Unschedulable = true
		if err := i.On[side].Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
	}
}

// refuse makes a side forbid one verb for the objects of one kind, in the namespace of the set.
func refuse(side plans.Side, verb string, kind client.Object) func(*testing.T, check.Inspection) {
	return func(_ *testing.T, i check.Inspection) {
		same := func(o client.Object) bool {
			return strings.TrimSuffix(typed(o), "List") == typed(kind) && o.GetNamespace() == i.Plan.On(side).Namespace
		}
		no := apierrors.NewForbidden(appsv1.Resource("any"), "web", nil)
		i.On[side] = interceptor.NewClient(i.On[side].(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if verb == "create" && same(o) {
					return no
				}
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if verb == "patch" && same(o) {
					return no
				}
				return c.Patch(ctx, o, patch, opts...)
			},
		})
	}
}

// expands makes the claim on the destination wait for the expansion of its file system.
func expands(t *testing.T, i check.Inspection) {
	t.Helper()
	var c corev1.PersistentVolumeClaim
	if err := i.On[plans.Destination].Get(t.Context(), client.ObjectKey{Namespace: "mall", Name: "data-web-0"}, &c); err != nil {
		t.Fatal(err)
	}
	c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
	if err := i.On[plans.Destination].Status().Update(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
}

// gone deletes the priority class of the pods on a side.
func gone(side plans.Side) func(*testing.T, check.Inspection) {
	return func(t *testing.T, i check.Inspection) {
		t.Helper()
		if err := i.On[side].Delete(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// foundFirst returns what the checks of a new process find before ordinal 0 leaves.
func foundFirst(t *testing.T, i check.Inspection, j *journal.Journal) Found {
	t.Helper()
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
	found, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
	if err != nil || found.Unasked != nil {
		t.Fatal(err, found.Unasked)
	}
	return found
}

func typed(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	}
	return ""
}

// An operator that would revert the abort is no matter of room: the user has to stop it.
func TestAnotherWriterIsNotAcceptedOnTheWayBack(t *testing.T) {
	estate := estateOfTwoSets()
	for _, o := range append(estate.Here, estate.There...) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "db.example.com/v1", Kind: "Cluster", Name: "web", UID: "o", Controller: new(true)}})
	}
	i := estate.Inspected(t)
	allowAll(i.On)
	j := journal.New(i.Plan)
	j.Leg.Direction, j.Assurances.Ignored = plans.Abort, []string{"owner"}
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
	found, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
	if err != nil || len(found.Unready) == 0 || strings.Contains(found.Unfit().Why, "or with --ignore") {
		t.Errorf("%v, %v", found, err)
	}
}

// Between two clusters the claim of the next wave is made before the wave leaves. The quota counts it then.
func TestAPreparedClaimIsCountedOnce(t *testing.T) {
	for name, ours := range map[string]bool{"prepared": true, "another one": false} {
		i := returning(false).Inspected(t)
		returned(t, i)
		allowAll(i.On)
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "full"}}
		q.Spec.Hard = corev1.ResourceList{"persistentvolumeclaims": resource.MustParse("1")}
		q.Status.Used = q.Spec.Hard
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-web-0"}}
		if ours {
			plans.Stamp{Plan: i.Plan.ID, Epoch: 1, Seq: 1}.Put(claim)
		}
		for _, o := range []client.Object{q, claim} {
			if err := i.On[plans.Source].Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		j := journal.New(i.Plan)
		j.Leg.Direction = plans.Abort
		w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
		found, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
		if err != nil || found.Unasked != nil {
			t.Fatal(err, found.Unasked)
		}
		if short := slices.ContainsFunc(found.Unready, func(f check.Finding) bool { return f.Check == "quota" }); short == ours {
			t.Errorf("%s: %v", name, found.Unready)
		}
	}
}

// A source that cannot be asked bars no ordinal that is down: the checks of what serves have an error of their own. On a
// move an error is one.
func TestWhatCannotBeAskedBarsOnlyWhatServes(t *testing.T) {
	for direction, fails := range map[plans.Direction]bool{plans.Move: true, plans.Abort: false} {
		estate := estateOfTwoSets()
		i := estate.Inspected(t)
		allowAll(i.On)
		for _, side := range plans.Sides() {
			i.On[side] = interceptor.NewClient(i.On[side].(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, quotas := list.(*corev1.ResourceQuotaList); quotas {
						return apierrors.NewServiceUnavailable("away")
					}
					return c.List(ctx, list, opts...)
				},
			})
		}
		j := journal.New(i.Plan)
		j.Leg.Direction = direction
		w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
		found, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
		if (err != nil) != fails || (found.Unasked != nil) == fails || !fails && found.Unfit().Err == nil {
			t.Errorf("%s: %v, %v", direction, found, err)
		}
	}
}

// What may be accepted on the way back breaks a move: there it stays what it is.
func TestAMoveAcceptsOnlyWhatThePlanMayIgnore(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "closed"}}
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("0")}
	estate := estateOfTwoSets()
	estate.There = append(estate.There, quota)
	i := estate.Inspected(t)
	allowAll(i.On)
	j := journal.New(i.Plan)
	j.Assurances.Ignored = []string{"nodes-fit", "quota"}
	w := Waves{Plan: i.Plan, On: i.On, Now: func() time.Time { return time.Unix(1000, 0) }}
	found, err := w.Check(t.Context(), j, plans.Slice{Replicas: 1})
	has := func(name string) bool {
		return slices.ContainsFunc(found.Bars, func(f check.Finding) bool { return f.Check == name })
	}
	if err != nil || !has("quota") || has("nodes-fit") {
		t.Errorf("%v, %v", found, err)
	}
}
