package models_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// set makes the StatefulSet "web", whose pods come and go side by side, and which mounts nothing.
func (s *stage) set(replicas int32) {
	s.t.Helper()
	app := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app}, PodManagementPolicy: appsv1.ParallelPodManagement,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}},
	}
	s.add(set)
}

// budget changes the spec of the budget of "web", or makes it.
func (s *stage) budget(spec string) {
	s.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(b), b); apierrors.IsNotFound(err) {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		s.add(b)
	}
	s.edit(b, `{"spec":`+spec+`}`)
	s.then("the budget is " + spec)
}

func (s *stage) breaks(name string, is bool) {
	s.t.Helper()
	s.on.breaks(pod(s, name), is)
	s.then(fmt.Sprintf("pod %s is broken: %t", name, is))
}

func (s *stage) evict(name string) {
	s.t.Helper()
	s.answers("pod "+name+" is evicted", s.on.evict(pod(s, name), nil))
}

// The disruption controller: what a budget allows while pods come, break and go.
func TestBudgets(t *testing.T) {
	for kind, spec := range map[string]string{
		"maxUnavailable": `{"maxUnavailable":1}`, "share": `{"maxUnavailable":"50%"}`, "minAvailable": `{"minAvailable":2}`, "least share": `{"minAvailable":"50%"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			play(t, func(s *stage) {
				s.set(3)
				s.then("a set")
				s.budget(spec)
				s.breaks("web-1", true)
				s.breaks("web-2", true)
				s.breaks("web-1", false)
				s.edit(pod(s, "web-0"), `{"metadata":{"finalizers":["example.com/held"]}}`)
				s.remove(pod(s, "web-0"))
				s.then("a pod is being deleted")
				s.edit(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}, `{"spec":{"replicas":4}}`)
				s.then("the set grows")
				s.edit(pod(s, "web-0"), `{"metadata":{"finalizers":null}}`)
				s.then("the pod goes, and another one comes")
				s.breaks("web-2", false)
				s.edit(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}, `{"spec":{"replicas":0}}`)
				s.then("the set shrinks to nothing")
			})
		})
	}
	t.Run("edited", func(t *testing.T) {
		play(t, func(s *stage) {
			s.set(3)
			s.then("a set")
			s.budget(`{"maxUnavailable":1}`)
			s.budget(`{"maxUnavailable":0}`)
			s.budget(`{"maxUnavailable":null,"minAvailable":1}`)
			s.budget(`{"minAvailable":5}`)
			s.budget(`{"minAvailable":null}`)
			s.budget(`{"maxUnavailable":5}`)
		})
	})
}

// The eviction API: by what the budget allows, and by whether the pod serves.
func TestEvictions(t *testing.T) {
	t.Run("allowed", func(t *testing.T) {
		play(t, func(s *stage) {
			s.set(3)
			s.then("a set")
			s.evict("web-0")
			s.budget(`{"maxUnavailable":1}`)
			s.evict("web-2")
			s.budget(`{"maxUnavailable":0}`)
			s.evict("web-2")
			s.edit(pod(s, "web-0"), `{"metadata":{"finalizers":["example.com/held"]}}`)
			s.remove(pod(s, "web-0"))
			s.then("a pod is being deleted")
			s.evict("web-0")
		})
	})
	t.Run("one at a time", func(t *testing.T) {
		play(t, func(s *stage) {
			s.set(3)
			s.then("a set")
			s.budget(`{"maxUnavailable":1}`)
			s.edit(pod(s, "web-2"), `{"metadata":{"finalizers":["example.com/held"]}}`)
			s.evict("web-2")
			s.evict("web-1")
			s.edit(pod(s, "web-2"), `{"metadata":{"finalizers":null}}`)
			s.then("the first one goes")
			s.evict("web-1")
		})
	})
	for policy, patch := range map[string]string{"healthy": `"IfHealthyBudget"`, "always": `"AlwaysAllow"`, "default": "null"} {
		t.Run(policy, func(t *testing.T) {
			play(t, func(s *stage) {
				s.set(3)
				s.then("a set")
				s.budget(`{"maxUnavailable":1,"unhealthyPodEvictionPolicy":` + patch + `}`)
				s.breaks("web-1", true)
				s.evict("web-1")
				s.breaks("web-0", true)
				s.breaks("web-1", true)
				s.evict("web-1")
			})
		})
	}
	t.Run("another pod", func(t *testing.T) {
		play(t, func(s *stage) {
			s.set(1)
			s.then("a set")
			old := pod(s, "web-0").UID
			s.remove(pod(s, "web-0"))
			s.then("its pod is replaced")
			s.answers("the pod of that time is evicted", s.on.evict(pod(s, "web-0"), &old))
		})
	})
}
