package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// entryPoint is a Service with an address of its own, from a spec in short YAML.
func entryPoint(t *testing.T, namespace, name, spec string) *corev1.Service {
	t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: planstest.Parsed[corev1.ServiceSpec](t, spec)}
	if s.Spec.ClusterIP == "" && s.Spec.Type != corev1.ServiceTypeExternalName {
		s.Spec.ClusterIP = "10.96.0.7"
	}
	return s
}

func memberOf(owner, name string, labels map[string]string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	for k, v := range labels {
		p.Labels[k] = v
	}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, Controller: &yes}}
	return p
}

// world is what a set of three has around it, on the source and on the destination, and what may not be listed.
type world struct {
	one         bool
	names       plans.Names
	spec        string // of the pods
	here, there []client.Object
	forbids     string
}

func (w world) inspected(t *testing.T) check.Inspection {
	t.Helper()
	here := append([]client.Object{
		memberOf("web", "web-0", nil), memberOf("web", "web-1", nil), memberOf("web", "web-2", map[string]string{"role": "primary", "apps.kubernetes.io/pod-index": "2"}),
	}, w.here...)
	volume := `{csi: {driver: disk.example, volumeHandle: a}, capacity: {storage: 1Gi}}`
	e := checktest.Estate{One: w.one, Here: here, There: w.there, Volumes: []string{"spec: " + volume, "spec: " + volume, "spec: " + volume}, Spec: w.spec, Forbids: w.forbids}
	if w.one {
		e.Here = append(e.Here, w.there...)
	}
	i := e.Inspected(t)
	i.Now.Set.Spec.ServiceName, i.Now.Set.Spec.Template.Labels = "web", map[string]string{"app": "web"}
	i.Plan.Names, i.Now.Names = w.names, w.names
	found, err := bridged(t.Context(), i.On, i.Now)
	if err != nil {
		t.Fatal(err)
	}
	i.Plan.Names.Clients = found
	return i
}

func TestWhatClientsLoseIsFound(t *testing.T) {
	bridge := plans.Names{Mode: plans.Bridge, Service: "web"}
	clients := func(namespace string) client.Object {
		return entryPoint(t, namespace, "web-clients", `{selector: {app: web}}`)
	}
	primary := func(namespace string) client.Object {
		return entryPoint(t, namespace, "web-primary", `{selector: {app: web, role: primary}}`)
	}
	governing := entryPoint(t, "shop", "web", `{clusterIP: None, selector: {app: web}}`)
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}, Spec: planstest.Parsed[networkingv1.IngressSpec](t, `{rules: [{http: {paths: [{path: /, backend: {service: {name: web-clients}}}]}}]}`)}
	for name, c := range map[string]struct {
		world
		want []string
	}{
		"nothing but the governing one": {world{one: true, names: bridge, here: []client.Object{governing}}, nil},
		"no twin": {world{one: true, names: bridge, here: []client.Object{governing, clients("shop"), ingress}}, []string{
			"WARN Service shop/web-clients on the source (Ingress front points at it): the destination has no such Service",
		}},
		"a twin":                            {world{one: true, names: bridge, here: []client.Object{clients("shop")}, there: []client.Object{clients("mall")}}, nil},
		"a twin, of pods that have no name": {world{one: true, names: plans.Names{Mode: plans.NoNames}, here: []client.Object{clients("shop")}, there: []client.Object{clients("mall")}}, nil},
		"a twin that selects others": {world{one: true, names: bridge, here: []client.Object{clients("shop")}, there: []client.Object{entryPoint(t, "mall", "web-clients", `{selector: {app: front}}`)}}, []string{
			"WARN Service shop/web-clients on the source: that of the destination does not select the pods of the set",
		}},
		"two clusters without a bridge": {world{names: plans.Names{Mode: plans.NoNames}, here: []client.Object{clients("shop"), primary("shop")}, there: []client.Object{clients("mall"), primary("mall")}}, []string{
			"FAIL Service shop/web-primary on the source: it loses web-2 in wave 1, its last endpoint, and --names none bridges nothing",
			"FAIL Service shop/web-clients on the source: it loses web-2 in wave 1, web-1 in wave 2, web-0 in wave 3, its last endpoint, and --names none bridges nothing",
		}},
		"Multi-Cluster Services": {world{names: plans.Names{Mode: plans.MCS, Service: "web"}, here: []client.Object{clients("shop")}, there: []client.Object{clients("mall")}}, []string{"FAIL Service shop/web-clients on the source: it loses web-2 in wave 1"}},
		"addresses of nodes, by name": {world{one: true, names: bridge, spec: "hostNetwork: true", here: []client.Object{entryPoint(t, "shop", "web-all", `{clusterIP: None, selector: {app: web}}`)}, there: []client.Object{entryPoint(t, "mall", "web-all", `{clusterIP: None, selector: {app: web}}`)}}, []string{
			"FAIL Service shop/web-all on the source: it is headless, and the pods have the addresses of nodes",
		}},
		"traffic of one node, in two clusters": {world{names: bridge, here: []client.Object{entryPoint(t, "shop", "web-clients", `{selector: {app: web}, internalTrafficPolicy: Local}`)}, there: []client.Object{clients("mall")}}, []string{
			"FAIL Service shop/web-clients on the source: it loses web-2 in wave 1, web-1 in wave 2, web-0 in wave 3, its last endpoint, and sends traffic to its own nodes only",
		}},
		"another set's pods too": {world{one: true, names: bridge, here: []client.Object{clients("shop"), memberOf("cache", "cache-0", nil)}, there: []client.Object{clients("mall")}}, []string{
			"FAIL Service shop/web-clients on the source: it also selects pod cache-0 of StatefulSet cache, which stay when the set has moved",
		}},
		"another application's, on the destination": {world{names: bridge, there: []client.Object{clients("mall"), func() client.Object { p := memberOf("front", "front-0", nil); p.Namespace = "mall"; return p }()}}, []string{
			"FAIL Service mall/web-clients on the destination: it selects pod front-0 of StatefulSet front, and would select the pods of the set as well",
		}},
		"an alias": {world{one: true, names: bridge, here: []client.Object{governing, clients("shop")}, there: []client.Object{
			entryPoint(t, "mall", "web-clients", `{type: ExternalName, externalName: web-clients.shop.svc.cluster.local}`),
			entryPoint(t, "mall", "first", `{type: ExternalName, externalName: web-0.web.shop.svc.cluster.local.}`),
			entryPoint(t, "mall", "other", `{type: ExternalName, externalName: api.shop.svc.cluster.local}`),
		}}, []string{
			"FAIL Service mall/first on the destination: it is an alias of web-0.web.shop.svc.cluster.local. (ExternalName), which has no endpoint after finalize",
			"FAIL Service mall/web-clients on the destination: it is an alias of web-clients.shop.svc.cluster.local (ExternalName)",
			"WARN Service shop/web-clients on the source: that of the destination does not select",
		}},
		"it may not be looked":                   {world{one: true, names: bridge, here: []client.Object{clients("shop")}, forbids: "*v1.ServiceList"}, []string{"WARN the Services of shop/web in east: you may not look at the Services and pods there"}},
		"it may not be looked what points there": {world{one: true, names: bridge, here: []client.Object{clients("shop")}, forbids: "*v1.IngressList"}, []string{"WARN Service shop/web-clients on the source: the destination has no such Service"}},
	} {
		i := c.inspected(t)
		found, err := Clients(t.Context(), i)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, f := range found {
			got = append(got, seenAs(f))
			if f.Level != check.Warn && !strings.Contains(f.Remedy, "--ignore clients") {
				t.Errorf("%s: %s says not that it may be ignored: %s", name, f.Object, f.Remedy)
			}
		}
		slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:4], b[:4]) })
		fits := len(got) == len(c.want)
		for k := range c.want {
			fits = fits && k < len(got) && strings.HasPrefix(got[k], c.want[k])
		}
		if !fits {
			t.Errorf("%s:\n%s\nexpected\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A Service that begins to select the pods once the plan is made is said, before the first write.
func TestAServiceThatThePlanDoesNotKnowIsFound(t *testing.T) {
	w := world{one: true, names: plans.Names{Mode: plans.Bridge, Service: "web"}, here: []client.Object{entryPoint(t, "shop", "web-clients", `{selector: {app: web}}`)}}
	i := w.inspected(t)
	i.Plan.Names.Clients = nil
	found, err := Clients(t.Context(), i)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Saw, "the plan does not know it") || found[0].Level == check.Warn {
		t.Errorf("%v, %v", found, err)
	}
}

// Routes of the Gateway API and exports point at Services too, where the cluster knows them.
func TestWhatPointsAtAServiceIsNamed(t *testing.T) {
	route := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": map[string]any{"namespace": "shop", "name": "way"},
		"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": "web-clients"}, map[string]any{"name": "far", "namespace": "other"}}}}},
	}}
	w := world{one: true, names: plans.Names{Mode: plans.Bridge, Service: "web"}, here: []client.Object{entryPoint(t, "shop", "web-clients", `{selector: {app: web}}`), route}}
	found, err := Clients(t.Context(), w.inspected(t))
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Object, "(HTTPRoute way points at it)") {
		t.Errorf("%v, %v", found, err)
	}
}

// A plan shows what is left of each Service with each wave.
func TestAPlanShowsTheEndpointsOfEachWave(t *testing.T) {
	w := world{one: true, names: plans.Names{Mode: plans.Bridge, Service: "web"}, here: []client.Object{
		entryPoint(t, "shop", "web-clients", `{selector: {app: web}}`), entryPoint(t, "shop", "web-primary", `{selector: {app: web, role: primary}}`),
	}}
	i := w.inspected(t)
	served, err := clientServices(t.Context(), i)
	text := (&Report{Clients: served}).Served()
	if err != nil || !strings.Contains(text, "Service web-clients: 3, 2, 1, 0 endpoints of its own") || !strings.Contains(text, "Service web-primary: 1, 0, 0, 0 ") || strings.Count(text, "bridged until finalize") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
	served[0].Bridged = false
	if text := (&Report{Clients: served}).Served(); !strings.Contains(text, "not bridged: it loses them") {
		t.Error(text)
	}
}

// seenAs returns a finding as LEVEL OBJECT: SAW.
func seenAs(f check.Finding) string {
	return fmt.Sprintf("%s %s: %s", cmp.Or(f.Level, check.Fail), f.Object, f.Saw)
}
