package models_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owned makes a claim that has sets of these UIDs as its owners.
func (s *stage) owned(name string, uids ...types.UID) {
	s.t.Helper()
	c := claimFor(s.namespace, name, s.name("none"))
	for _, uid := range uids {
		c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: uid})
	}
	s.add(c)
}

func set(s *stage) *appsv1.StatefulSet { return get(s, &appsv1.StatefulSet{}, "web") }

// The collector: what has owners goes with the last of them.
func TestCollector(t *testing.T) {
	const nobody = types.UID("11111111-1111-1111-1111-111111111111")
	t.Run("nobody", func(t *testing.T) {
		play(t, func(s *stage) {
			s.set(0)
			s.owned("data", nobody)
			s.then("an owner that never was")
			s.owned("both", nobody, set(s).UID)
			s.then("one owner that is, and one that never was")
			s.owned("free")
			s.then("no owner")
		})
	})
	for policy, how := range map[string]metav1.DeletionPropagation{"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan} {
		t.Run(policy, func(t *testing.T) {
			play(t, func(s *stage) {
				s.set(2)
				s.owned("data", set(s).UID)
				s.then("a set, its pods, and a claim that it owns")
				s.remove(set(s), client.PropagationPolicy(how))
				s.then("the set is deleted")
			})
		})
	}
	t.Run("pod", func(t *testing.T) {
		play(t, func(s *stage) {
			s.set(2)
			s.then("a set")
			c := claimFor(s.namespace, "scratch", s.name("none"))
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web-1", UID: pod(s, "web-1").UID}}
			s.add(c)
			s.then("a claim that a pod owns")
			s.remove(pod(s, "web-1"))
			s.then("the pod is replaced by one of its name")
		})
	})
}
