package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestTheNextOrdinalWaitsForPodsOnCordonedNodes(t *testing.T) {
	p := planNamed(t, "abc")
	p.Claims = []plans.ClaimMove{{Template: "data"}}
	j := plans.NewJournal(p)
	var relax plans.Step // of the highest ordinal, after which that below it leaves
	for seq := 1; relax.Op != plans.Relax; seq++ {
		relax, _ = p.Step(j.Leg, seq)
	}
	for _, c := range []struct {
		name     string
		cordoned string
		on       map[string]string // pod: node
		want     string
	}{
		{name: "none is cordoned", on: map[string]string{"shop/web-0": "a", "shop/web-1": "a"}},
		{name: "none of the set is on it", cordoned: "b", on: map[string]string{"shop/web-0": "a", "shop/other-0": "b"}},
		{name: "the pod that leaves next is", cordoned: "b", on: map[string]string{"shop/web-1": "b"}},
		{name: "one on the source is", cordoned: "b", on: map[string]string{"shop/web-0": "b"}, want: "web-0 (node b)"},
		{name: "one that has arrived is", cordoned: "b", on: map[string]string{"mall/web-2": "b", "shop/web-0": "a"}, want: "web-2 (node b)"},
	} {
		objects := []client.Object{}
		for _, name := range []string{"a", "b"} {
			objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: name == c.cordoned}})
		}
		for _, ns := range []string{"shop", "mall"} {
			objects = append(objects, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web", UID: "set-of-all"}})
		}
		for pod, node := range c.on {
			ns, name, _ := strings.Cut(pod, "/")
			yes := true
			owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set-of-all", Controller: &yes}
			if !strings.HasPrefix(name, "web") {
				owner.UID = "other"
			}
			objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, OwnerReferences: []metav1.OwnerReference{owner}}, Spec: corev1.PodSpec{NodeName: node}})
		}
		api := fake.NewClientBuilder().WithObjects(objects...).WithIndex(&corev1.Node{}, "spec.unschedulable", func(o client.Object) []string {
			n, _ := o.(*corev1.Node)
			return []string{fmt.Sprint(n.Spec.Unschedulable)}
		}).Build()
		e := New(p, NewStore(api, "mall", "web"), Clusters{plans.Source: api, plans.Destination: api})
		e.journal = j
		why, err := e.drained(t.Context(), relax)
		if err != nil || (why != "") != (c.want != "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, %v, expected %q", c.name, why, err, c.want)
		}
	}
}
