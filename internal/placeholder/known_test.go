package placeholder

import (
	"cmp"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// An ordinal that could leave stays up for a moment until the scheduler can know where its images are, and not longer.
func TestAnOrdinalStaysUntilItsNodeTellsOfTheImages(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	runs := func(ago time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Image: "db:1", ImageID: "db@sha256:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(ago)}}}
	}
	failed := func(ago time.Duration) corev1.ContainerStatus {
		c := runs(0)
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: at(ago)}
		return c
	}
	again := func(restarts int32, ago time.Duration) corev1.ContainerStatus {
		c := failed(ago)
		c.RestartCount = restarts
		return c
	}
	some := []corev1.ContainerImage{{Names: []string{"other:1"}}}
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		images []corev1.ContainerImage
		clock  func() time.Time
		took   time.Duration // a minute without one
		want   time.Duration // for which it waits
	}{
		"just pulled":                 {status: runs(2 * time.Second), images: some, want: 40 * time.Second},
		"it cannot run":               {status: failed(time.Second), images: some, want: 41 * time.Second},
		"it cannot run, once more":    {status: again(2, time.Second), images: some, want: 11 * time.Second},
		"it cannot run, for long":     {status: again(3, time.Second), images: some},
		"there at once":               {status: runs(2 * time.Second), images: some, took: 4 * time.Second},
		"told of by name":             {status: runs(time.Second), images: []corev1.ContainerImage{{Names: []string{"db:1"}}}},
		"told of by digest":           {status: runs(time.Second), images: []corev1.ContainerImage{{Names: []string{"db@sha256:1"}}}},
		"pulled a while ago":          {status: runs(45 * time.Second), images: some},
		"by a clock that is ahead":    {status: runs(-time.Minute), images: some},
		"a kubelet that tells none":   {status: runs(time.Second)},
		"a kubelet that leaves some":  {status: runs(time.Second), images: make([]corev1.ContainerImage, 50)},
		"a container that is not yet": {images: some},
		"without a clock":             {status: runs(time.Second), images: some, clock: func() time.Time { return time.Time{} }},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{
			Images: c.images, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}
		p := &plans.Plan{
			Name: "web", Count: 3, Source: plans.Ref{Namespace: "shop", Name: "web"}, Destination: plans.Ref{Namespace: "mall", Name: "web"},
			Placeholder: plans.Placeholder{Proof: plans.Warm},
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}}
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}
		m := plans.StepContext{Step: plans.Step{From: plans.Source, Ordinals: plans.Slice{Start: 2, Replicas: 1}}, Stamp: plans.Stamp{Plan: "id", Epoch: 1}}
		pod := waits(t, p, set, m, node, c.status)
		pod.CreationTimestamp = at(cmp.Or(c.took, time.Minute) + 2*time.Second)
		on := fake.NewClientBuilder().WithObjects(node, pod).Build()
		steps := Steps{Pair: clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: on, plans.Destination: on}}, Now: func() time.Time { return now }}
		if c.clock != nil {
			steps.Now = c.clock
		}
		got, err := steps.take(t.Context(), m, set, 2)
		if err != nil || got.Standing != map[bool]plans.Standing{true: plans.During, false: plans.After}[c.want > 0] || got.Again != c.want {
			t.Errorf("%s: %+v, %v, expected a wait of %s", name, got, err, c.want)
		}
	}
}

// waits returns the placeholder of an ordinal, on its node, with everything that it needs.
func waits(t *testing.T, p *plans.Plan, set *appsv1.StatefulSet, m plans.StepContext, node *corev1.Node, status corev1.ContainerStatus) *corev1.Pod {
	t.Helper()
	place := of(p, plans.Destination, set, 2)
	var err error
	if place.Tag, err = plans.Fingerprinted(build.Pod(set, 2).Spec); err != nil {
		t.Fatal(err)
	}
	pod := made(t, place)
	m.Stamp.Put(pod)
	pod.Spec.NodeName, pod.Status.Phase = node.Name, corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	return pod
}

// A place on a node that takes no pods any more is no place, whatever its placeholder has proven.
func TestAPlaceOnALostNodeDoesNotCount(t *testing.T) {
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		node  corev1.NodeStatus
		spec  corev1.NodeSpec
		there bool
		want  plans.Standing
	}{
		"it is ready":     {node: corev1.NodeStatus{Conditions: ready}, there: true, want: plans.After},
		"it is cordoned":  {node: corev1.NodeStatus{Conditions: ready}, spec: corev1.NodeSpec{Unschedulable: true}, there: true, want: plans.Before},
		"it is not ready": {there: true, want: plans.Before},
		"it is gone":      {want: plans.Before},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: c.spec, Status: c.node}
		p := &plans.Plan{
			Name: "web", Count: 3, Source: plans.Ref{Namespace: "shop", Name: "web"}, Destination: plans.Ref{Namespace: "mall", Name: "web"},
			Placeholder: plans.Placeholder{Proof: plans.Warm},
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web"}}
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}
		m := plans.StepContext{Step: plans.Step{From: plans.Source, Ordinals: plans.Slice{Start: 2, Replicas: 1}}, Stamp: plans.Stamp{Plan: "id", Epoch: 1}}
		pod := waits(t, p, set, m, node, corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
		objects := []client.Object{pod}
		if c.there {
			objects = append(objects, node)
		}
		on := fake.NewClientBuilder().WithObjects(objects...).Build()
		got, err := Steps{Pair: clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: on, plans.Destination: on}}}.take(t.Context(), m, set, 2)
		if err != nil || got.Standing != c.want {
			t.Errorf("%s: %v, %v; expected %v", name, got.Standing, err, c.want)
		}
	}
}

// A plan at rest takes away its own placeholders, and no others.
func TestAPlanAtRestTakesItsPlaceholdersAway(t *testing.T) {
	yes := true
	mine := plans.Stamp{Plan: "id", Epoch: 2}
	for name, c := range map[string]struct {
		stamp  plans.Stamp
		change func(*corev1.Pod)
		want   plans.Standing
	}{
		"its own":                      {stamp: mine, want: plans.Before},
		"of an earlier process":        {stamp: plans.Stamp{Plan: "id", Epoch: 1}, want: plans.Before},
		"of a later process":           {stamp: plans.Stamp{Plan: "id", Epoch: 3}, want: plans.After},
		"of another plan of that name": {stamp: plans.Stamp{Plan: "other", Epoch: 2}, want: plans.After},
		"of nobody":                    {want: plans.After},
		"one that another controller has adopted": {stamp: mine, want: plans.Conflict, change: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "u", Controller: &yes}}
		}},
	} {
		p := &plans.Plan{
			Name: "web", Count: 3, Source: plans.Ref{Namespace: "shop", Name: "web"}, Destination: plans.Ref{Namespace: "mall", Name: "web"},
			Placeholder: plans.Placeholder{Proof: plans.Warm},
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "web-2-place", Labels: map[string]string{Label: "web"}}}
		if c.stamp.Plan != "" {
			c.stamp.Put(pod)
		}
		if c.change != nil {
			c.change(pod)
		}
		there, none := fake.NewClientBuilder().WithObjects(pod).Build(), fake.NewClientBuilder().Build()
		got, err := Steps{Pair: clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: none, plans.Destination: there}}}.Clear(t.Context(), plans.StepContext{Stamp: mine})
		if err != nil || got.Standing != c.want {
			t.Errorf("%s: %v (%s), %v; expected %v", name, got.Standing, got.Reason, err, c.want)
		}
	}
}
