package clients

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
)

// selector parses what kubectl shows of one, such as app=web,role=primary.
func selector(of string) map[string]string {
	out := map[string]string{}
	for _, one := range strings.Fields(strings.ReplaceAll(of, ",", " ")) {
		key, value, _ := strings.Cut(one, "=")
		out[key] = value
	}
	return out
}

func service(name, of string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	s.Spec.Selector, s.Spec.ClusterIP = selector(of), "10.96.0.7"
	return s
}

func web() *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	set.Spec.ServiceName, set.Spec.Template.Labels = "web", selector("app=web,tier=db")
	return set
}

func ordinals() plans.Slice { return plans.Slice{Start: 0, Replicas: 3} }

// A label that the template has decides. One that it does not have may come with the pod, as roles do.
func TestAServiceMaySelectWhatItsSelectorDoesNotContradict(t *testing.T) {
	for of, want := range map[string]bool{
		"app=web":              true,
		"app=web,role=primary": true,
		"role=primary":         false, // of any application
		"app=cache":            false,
		"app=web,tier=cache":   false,
		"":                     false,
		"statefulset.kubernetes.io/pod-name=web-2":         true,
		"statefulset.kubernetes.io/pod-name=web-3":         false,
		"statefulset.kubernetes.io/pod-name=cache-0":       false,
		"app=web,apps.kubernetes.io/pod-index=2":           true,
		"app=web,apps.kubernetes.io/pod-index=3":           false,
		"app=cache,apps.kubernetes.io/pod-index=0":         false,
		"app=web,statefulset.kubernetes.io/pod-name=web-0": true,
	} {
		if got := May(service("s", of), web(), ordinals()); got != want {
			t.Errorf("%s: %t, expected %t", of, got, want)
		}
	}
	alias := service("s", "app=web")
	if alias.Spec.Type = corev1.ServiceTypeExternalName; May(alias, web(), ordinals()) || Selects(alias, selector("app=web")) {
		t.Error("an ExternalName has no pods")
	}
}

// A Service is found by what pods have now as well, and the pods of others that it selects are told apart.
func TestServicesAreFoundByThePodsThatRun(t *testing.T) {
	pod := func(name, owner, of string, phase corev1.PodPhase) *corev1.Pod {
		yes := true
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: selector(of)}, Status: corev1.PodStatus{Phase: phase}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: owner, Controller: &yes}}
		return p
	}
	governing, reached := service("web", "app=web"), service("reached", "app=web")
	governing.Spec.ClusterIP, reached.Spec.ClusterIP = corev1.ClusterIPNone, corev1.ClusterIPNone
	api := fake.NewClientBuilder().WithObjects(
		governing, reached, service("primary", "role=primary"), service("standby", "role=standby"), service("tier", "tier=db"), service("cache", "app=cache"), service("none", ""),
		pod("web-0", "web", "app=web,tier=db,role=primary", corev1.PodRunning), pod("web-1", "web", "app=web,tier=db", corev1.PodRunning),
		pod("cache-0", "cache", "app=cache,tier=db", corev1.PodRunning), pod("dump-1", "dump", "tier=db", corev1.PodSucceeded),
	).Build()
	found, err := Side{On: api, Namespace: "shop", Set: web(), Ordinals: ordinals()}.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range found {
		line := s.Name
		for _, pods := range [][]*corev1.Pod{s.Pods, s.Others} {
			line += " |"
			for _, p := range pods {
				line += " " + p.Name
			}
		}
		got = append(got, line)
	}
	want := []string{"primary | web-0 |", "reached | web-0 web-1 |", "tier | web-0 web-1 | cache-0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	clusterIP := service("web", "app=web") // it gives no names, and has clients
	if err := api.Delete(t.Context(), governing); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), clusterIP); err != nil {
		t.Fatal(err)
	}
	found, err = Side{On: client.Client(api), Namespace: "shop", Set: web(), Ordinals: ordinals()}.Services(t.Context())
	if err != nil || !slices.ContainsFunc(found, func(s Service) bool { return s.Name == "web" }) {
		t.Errorf("a governing Service with an address of its own is not found: %v", err)
	}
}
