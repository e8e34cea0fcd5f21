package clients

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A Service that is made, changed or deleted while a set is on two sides is said, with what to do.
func TestServicesThatThePlanDoesNotKnowAreSaid(t *testing.T) {
	at := func(namespace, name, of string) *corev1.Service {
		s := service(name, of)
		s.Namespace = namespace
		return s
	}
	headless := at("shop", "web", "app=web")
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	twin := at("mall", "old", "app=web")
	twin.Annotations = map[string]string{plans.StampAnnotation: "abc/1/1"}
	known := []client.Object{headless, at("shop", "old", "app=web"), twin}
	for name, c := range map[string]struct {
		objects []client.Object
		names   plans.Names
		want    []string
	}{
		"as planned": {known, plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"old"}}, nil},
		"one that is new on the source": {append(known[:3:3], at("shop", "new", "app=web")), plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"old"}}, []string{
			"Service shop/new on the source: it was made, or began to select the pods, after the plan, so that it has those of the source alone (web-0)", "use Service old until the end",
		}},
		"one that is new on the destination, with another selector": {append(known[:3:3], at("mall", "new", "app=web,tier=db")), plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"old"}}, []string{
			"Service mall/new on the destination: ", "(web-1)", "wait until the end of the plan",
		}},
		"one of another application":  {append(known[:3:3], at("shop", "new", "app=cache")), plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"old"}}, nil},
		"one that is gone":            {known, plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"gone", "old"}}, []string{"Service gone of clients is on neither side any more: make it again"}},
		"a twin that is gone":         {known[:2], plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"old"}, Twins: true}, []string{"Service mall/old on the destination: the plan makes it once", "make it again"}},
		"a twin that is another's":    {append(known[:2:2], at("mall", "old", "app=web")), plans.Names{Mode: plans.Bridge, Service: "web", Clients: []string{"old"}, Twins: true}, []string{"Service mall/old on the destination: it is not the twin that the plan makes, but another's"}},
		"clusters that do not bridge": {append(known[:3:3], at("shop", "new", "app=web")), plans.Names{Mode: plans.NoNames}, nil},
	} {
		p := &plans.Plan{ID: "abc", Start: 0, Count: 2, Names: c.names, Source: plans.Ref{Cluster: "1", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "1", Namespace: "mall", Name: "web"}}
		if c.names.Mode == plans.NoNames {
			p.Destination.Cluster = "2"
		}
		if c.names.Twins {
			p.Dependencies = []plans.Dependency{{Kind: "Service", Name: "old", Twin: &plans.Twin{}}}
		}
		set := web()
		build := fake.NewClientBuilder().WithObjects(set)
		yes := true
		for namespace, pod := range map[string]string{"shop": "web-0", "mall": "web-1"} {
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Labels: set.Spec.Template.Labels}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: &yes}}
			build.WithObjects(o)
		}
		for _, o := range c.objects {
			copied, _ := o.DeepCopyObject().(client.Object)
			build.WithObjects(copied)
		}
		api := build.Build()
		got := Strays(t.Context(), clusters.Pair{Plan: p, On: clusters.Clusters{plans.Source: api, plans.Destination: api}})
		if (len(got) > 0) != (len(c.want) > 0) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
		for _, w := range c.want {
			if len(got) != 1 || !strings.Contains(got[0], w) {
				t.Errorf("%s: %q, expected %q", name, got, w)
			}
		}
	}
}
