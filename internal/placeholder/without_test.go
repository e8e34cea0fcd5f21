package placeholder

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// stage has a plan of one ordinal, and a kubelet that is played by the test.
type stage struct {
	plan    *plans.Plan
	on      clusters.Clusters
	at      client.Client
	moment  plans.StepContext
	creates int
}

// staged returns a stage on which admission refuses some pods, for a leg in either direction.
func staged(t *testing.T, from plans.Side, refuses func(*corev1.Pod) error) *stage {
	t.Helper()
	s := &stage{plan: &plans.Plan{
		Name: "web", ID: "1", Count: 1, Source: plans.Ref{Cluster: "a", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "b", Namespace: "mall", Name: "web"},
		Placeholder: plans.Placeholder{Proof: plans.Warm, Image: "p:1"},
	}}
	s.moment = plans.StepContext{Step: plans.Step{Op: plans.Reserve, From: from, Ordinals: plans.Slice{Replicas: 1}}, Stamp: plans.Stamp{Plan: "1", Epoch: 1}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.plan.On(from.Other()).Namespace, Name: "web", UID: "u"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	s.at = fake.NewClientBuilder().WithObjects(set, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"web:1"}}}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if pod, is := o.(*corev1.Pod); is {
				s.creates++
				if err := refuses(pod); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	up := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.plan.On(from).Namespace, Name: "web-0"}}
	up.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.on = clusters.Clusters{from: fake.NewClientBuilder().WithObjects(up).Build(), from.Other(): s.at}
	return s
}

// process returns the looks of a new process.
func (s *stage) process() Steps {
	return Steps{Pair: clusters.Pair{Plan: s.plan, On: s.on}, Without: &Without{}}
}

// pass looks, and sends what is due.
func (s *stage) pass(t *testing.T, by Steps) plans.Observation {
	t.Helper()
	o, err := by.Prepare(t.Context(), s.moment)
	if err != nil {
		t.Fatal(err)
	}
	if o.Standing == plans.Before {
		if err := o.Write(t.Context()); err != nil {
			t.Fatalf("%s: %v", o.Reason, err)
		}
	}
	return o
}

// pod returns the placeholder, if there is one.
func (s *stage) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, err := Steps{Pair: clusters.Pair{Plan: s.plan, On: s.on}}.placeholder(t.Context(), s.moment.To(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// kubelet reports a pod whose containers have begun, or whose program could not be brought.
func (s *stage) kubelet(t *testing.T, why string) {
	t.Helper()
	pod := s.pod(t)
	pod.Spec.NodeName = "n"
	if err := s.at.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if why != "" && len(pod.Spec.InitContainers) > 0 {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: tools, Image: "p:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	} else {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError"}}}}
	}
	if err := s.at.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func agrees(*corev1.Pod) error { return nil }

// Where the image of the program cannot be had, the placeholder is made again without it, once, whatever process looks next,
// and on both ways.
func TestAPlaceholderDoesWithoutItsProgram(t *testing.T) {
	for _, from := range plans.Sides() {
		for _, why := range []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CrashLoopBackOff"} {
			s := staged(t, from, agrees)
			by := s.process()
			s.pass(t, by)
			if got := s.pod(t); len(got.Spec.InitContainers) != 1 || got.Annotations[WithoutAnnotation] != "" {
				t.Fatalf("%+v", got)
			}
			s.kubelet(t, why)
			if o := s.pass(t, by); !strings.Contains(o.Reason, "again without the program that waits, since on node n container "+tools+" (p:1) waits: "+why) || s.pod(t) != nil {
				t.Fatalf("%s: %+v", why, o)
			}
			if o := s.pass(t, by); !strings.Contains(o.Reason, "without the program that waits") {
				t.Errorf("%+v", o)
			}
			if got := s.pod(t); len(got.Spec.InitContainers) != 0 || !strings.Contains(got.Annotations[WithoutAnnotation], why) {
				t.Fatalf("%s: %+v", why, got)
			}
			s.kubelet(t, why)
			next := s.process()
			for _, p := range []Steps{by, next, s.process()} {
				if o := s.pass(t, p); o.Standing != plans.After {
					t.Errorf("%s: %+v", why, o)
				}
			}
			if s.creates != 2 {
				t.Errorf("%s: it was made %d times", why, s.creates)
			}
			// The placeholder of the next wave is made without it at once, also by a process that has seen only that one.
			if err := s.at.Delete(t.Context(), s.pod(t)); err != nil {
				t.Fatal(err)
			}
			s.pass(t, next)
			if got := s.pod(t); len(got.Spec.InitContainers) != 0 {
				t.Errorf("%s: the program is tried again: %+v", why, got.Spec.InitContainers)
			}
		}
	}
}

// A process that dies between the two writes leaves nothing, and the next one tries the image once more, and no more.
func TestAProcessThatTakesOverTriesTheImageOnce(t *testing.T) {
	s := staged(t, plans.Source, agrees)
	for range 3 {
		by := s.process()
		s.pass(t, by)
		s.kubelet(t, "ErrImagePull")
		s.pass(t, by) // deletes it, and dies
	}
	by := s.process()
	for range 6 {
		s.pass(t, by)
		if s.pod(t) != nil {
			s.kubelet(t, "ErrImagePull")
		}
	}
	if s.creates != 5 || s.pass(t, by).Standing != plans.After {
		t.Errorf("it was made %d times", s.creates)
	}
}

// A cluster that lets in no image of ours gets the placeholder without it. A refusal that is about something else is told as
// it is.
func TestAPlaceholderIsRefusedForItsProgram(t *testing.T) {
	no := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0-place", &apierrors.StatusError{ErrStatus: metav1.Status{Message: why}})
	}
	s := staged(t, plans.Source, func(p *corev1.Pod) error {
		if len(p.Spec.InitContainers) > 0 {
			return no("image p:1 is of no registry of ours")
		}
		return nil
	})
	by := s.process()
	s.pass(t, by)
	if got := s.pod(t); got == nil || len(got.Spec.InitContainers) != 0 || !strings.Contains(got.Annotations[WithoutAnnotation], "no registry of ours") {
		t.Fatalf("%+v", got)
	}
	if s.creates != 2 {
		t.Errorf("it was sent %d times", s.creates)
	}
	for what, sent := range map[string]int{"exceeded quota: pods": 1, "nothing is let in": 2} {
		s := staged(t, plans.Source, func(*corev1.Pod) error { return no(what) })
		o, err := s.process().Prepare(t.Context(), s.moment)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Write(t.Context()); err == nil || !strings.Contains(err.Error(), what) || s.creates != sent {
			t.Errorf("%s: %v, sent %d times", what, err, s.creates)
		}
	}
}
