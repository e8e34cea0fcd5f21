package dns

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// serving is a plan with two Services of clients.
func serving() *plans.Plan {
	p := bridge()
	p.Names.Clients = []string{"web-0", "web-clients"}
	return p
}

// entry is the Service of clients of a namespace.
func entry(namespace string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-clients"}}
	s.Spec.Selector, s.Spec.ClusterIP, s.Spec.IPFamilies = map[string]string{"app": "web"}, "10.96.0.7", []corev1.IPFamily{corev1.IPv4Protocol}
	s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("client"), Protocol: corev1.ProtocolTCP}}
	return s
}

// labelled gives a pod labels and a node.
func labelled(of map[string]string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels, p.Spec.NodeName = of, "node-1" }
}

// oldSide is where the control plane lists the pods of the source for clients.
func oldSide(p *plans.Plan) plans.Directory {
	all := p.Directories()
	return all[slices.IndexFunc(all, func(d plans.Directory) bool { return d.Client == "web-clients" && d.Lists == plans.Source })]
}

// A Service of clients lists each pod of the other side that its selector matches now, with the conditions that the
// control plane would set.
func TestAServiceOfClientsListsThePodsOfTheOtherSide(t *testing.T) {
	app, deleted := map[string]string{"app": "web"}, metav1.Now()
	for name, c := range map[string]struct {
		change func(*plans.Plan, *corev1.Service, *corev1.Pod)
		want   string
	}{
		"ready":             {func(*plans.Plan, *corev1.Service, *corev1.Pod) {}, "10.0.1.1 true true false node-1"},
		"of other clusters": {func(p *plans.Plan, _ *corev1.Service, _ *corev1.Pod) { p.Destination.Cluster = "2" }, "10.0.1.1 true true false"},
		"not ready":         {func(_ *plans.Plan, _ *corev1.Service, pod *corev1.Pod) { pod.Status.Conditions = nil }, "10.0.1.1 false false false node-1"},
		"being deleted":     {func(_ *plans.Plan, _ *corev1.Service, pod *corev1.Pod) { pod.DeletionTimestamp = &deleted }, "10.0.1.1 false true true node-1"},
		"not ready, and published": {func(_ *plans.Plan, s *corev1.Service, pod *corev1.Pod) {
			s.Spec.PublishNotReadyAddresses, pod.Status.Conditions = true, nil
		}, "10.0.1.1 true false false node-1"},
		"ended":              {func(_ *plans.Plan, _ *corev1.Service, pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }, ""},
		"without an address": {func(_ *plans.Plan, _ *corev1.Service, pod *corev1.Pod) { pod.Status.PodIPs = nil }, ""},
		"without the role":   {func(_ *plans.Plan, s *corev1.Service, _ *corev1.Pod) { s.Spec.Selector["role"] = "primary" }, ""},
		"with the role": {func(_ *plans.Plan, s *corev1.Service, pod *corev1.Pod) {
			s.Spec.Selector["role"] = "primary"
			pod.Labels["role"] = "primary"
		}, "10.0.1.1 true true false node-1"},
		"of a Service of two stacks": {func(_ *plans.Plan, s *corev1.Service, _ *corev1.Pod) {
			s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPv6Protocol)
		}, "10.0.1.1 true true false node-1, fd00::1 true true false node-1"},
		"of no family":               {func(_ *plans.Plan, _ *corev1.Service, pod *corev1.Pod) { pod.Status.PodIPs = pod.Status.PodIPs[1:] }, ""},
		"of a Service of the user's": {func(_ *plans.Plan, s *corev1.Service, _ *corev1.Pod) { s.Spec.Selector = nil }, ""},
		"of another set's ordinals":  {func(_ *plans.Plan, _ *corev1.Service, pod *corev1.Pod) { pod.Name = "web-120" }, ""},
	} {
		p, s, moved := serving(), entry("shop"), pod("web-1", nil, "10.0.1.1", "fd00::1")
		labelled(map[string]string{"app": "web"})(moved)
		c.change(p, s, moved)
		stays := pod("web-0", labelled(app), "10.0.0.1")
		var got []string
		for _, slice := range ordered(Want(p, oldSide(p), s, map[plans.Side][]*corev1.Pod{plans.Source: {stays}, plans.Destination: {moved}}, nil)) {
			if _, headless := slice.Labels[corev1.IsHeadlessService]; headless || slice.Labels[discoveryv1.LabelServiceName] != "web-clients" || *slice.Ports[0].Port != 2379 {
				t.Errorf("%s: %v %v", name, slice.Labels, slice.Ports)
			}
			for _, e := range slice.Endpoints {
				if e.Hostname != nil {
					t.Errorf("%s: it has the hostname %s", name, *e.Hostname)
				}
				node := ""
				if e.NodeName != nil {
					node = " " + *e.NodeName
				}
				got = append(got, fmt.Sprintf("%s %t %t %t%s", e.Addresses[0], *e.Conditions.Ready, *e.Conditions.Serving, *e.Conditions.Terminating, node))
			}
		}
		if have := strings.Join(got, ", "); have != c.want {
			t.Errorf("%s: %q, expected %q", name, have, c.want)
		}
	}
}

func ordered(all map[string]*discoveryv1.EndpointSlice) (out []*discoveryv1.EndpointSlice) {
	for _, s := range all {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// kube-proxy ignores slices with the mark of a headless Service, and DNS servers want it.
func TestAHeadlessServiceOfClientsHasItsMark(t *testing.T) {
	s := entry("shop")
	s.Spec.ClusterIP = corev1.ClusterIPNone
	got := Want(serving(), oldSide(serving()), s, map[plans.Side][]*corev1.Pod{plans.Destination: {pod("web-1", labelled(map[string]string{"app": "web"}), "10.0.1.1")}}, nil)
	for _, slice := range got {
		if _, marked := slice.Labels[corev1.IsHeadlessService]; !marked {
			t.Errorf("labels %v", slice.Labels)
		}
	}
	if len(got) != 1 {
		t.Errorf("%d slices", len(got))
	}
}

// The name of a Service may look like the end of the name of a slice. Each slice still belongs to one directory.
func TestEverySliceHasOneDirectory(t *testing.T) {
	p := bridge()
	p.Names.Clients = []string{"ipv4-0", "web-ipv6-1", "x"}
	owners := map[string]string{}
	for _, d := range p.Directories() {
		for _, name := range SliceNames(p, d) {
			if o, known := owners[name]; known && o != d.Client {
				t.Errorf("slice %s is of %q and of %q", name, o, d.Client)
			}
			owners[name] = d.Client
			for _, other := range p.Directories() {
				if isOf(p, other, name) != (other.Client == d.Client) {
					t.Errorf("slice %s of %q is taken for one of %q", name, d.Client, other.Client)
				}
			}
		}
	}
	stray := plans.Directory{On: plans.Source, Namespace: "shop", Lists: plans.Source}
	if !isOf(p, stray, "stsmigrate-web-abc-gone-ipv4-0") || !isOf(p, stray, "stsmigrate-web-abc-stray") {
		t.Error("a slice of no Service of the plan is nobody's")
	}
}

// The Syncer follows the labels of pods, the selector of a Service, and a Service that is deleted and made again.
func TestAServiceOfClientsIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serving()
		stays := of("web", pod("web-0", labelled(map[string]string{"app": "web"}), "10.0.0.1"))
		s := newScene(t, append(street()[1:], stays, entry("mall"))...)
		s.keep(p)
		expect := func(when, want string) {
			t.Helper()
			synctest.Wait()
			all, err := s.DiscoveryV1().EndpointSlices("mall").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, slice := range all.Items {
				got = append(got, slice.Name+" "+slice.Endpoints[0].Addresses[0])
			}
			slices.Sort(got)
			if have := strings.Join(got, ", "); have != strings.TrimSuffix("stsmigrate-web-abc-ipv4-0 10.0.0.1, "+want, ", ") {
				t.Errorf("%s: %s", when, have)
			}
		}
		const served = "stsmigrate-web-abc-web-clients-ipv4-0 10.0.0.1"
		expect("at first", served)
		services := s.CoreV1().Services("mall")
		primary := entry("mall")
		primary.Spec.Selector["role"] = "primary"
		if _, err := services.Update(t.Context(), primary, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("once it selects a role", "")
		stays = stays.DeepCopy()
		stays.Labels["role"] = "primary"
		s.pods[len(s.pods)-1].Modify(stays)
		expect("once the pod has that role", served)
		if err := services.Delete(t.Context(), "web-clients", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("once it is deleted", "")
		if _, err := services.Create(t.Context(), entry("mall"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("once it is made again", served)
		alias := entry("mall")
		alias.Spec.Type = corev1.ServiceTypeExternalName
		if _, err := services.Update(t.Context(), alias, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("once it is an alias", "")
	})
}

// Until a Service of clients lists an ordinal that it selects, the next one must stay up: it may be its last endpoint.
func TestAPodIsMissingUntilItsClientsFindIt(t *testing.T) {
	yes, host := true, "web-1"
	named := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web-abc-ipv4-0"}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Hostname: &host, Addresses: []string{"10.0.1.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
	}
	listed := named.DeepCopy()
	listed.Name, listed.Endpoints[0].Hostname = "stsmigrate-web-abc-web-clients-ipv4-0", nil
	primary := entry("shop")
	primary.Spec.Selector["role"] = "primary"
	for name, c := range map[string]struct {
		world   []client.Object
		missing bool
	}{
		"it has no Service":                 {nil, false},
		"it is not listed":                  {[]client.Object{entry("shop")}, true},
		"it is listed":                      {[]client.Object{entry("shop"), listed}, false},
		"it is not selected":                {[]client.Object{primary}, false},
		"the control plane lists it itself": {[]client.Object{entry("mall")}, false},
	} {
		api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(append(c.world, named, peersIn("shop"), peersIn("mall"))...).Build()
		arrived := pod("web-1", labelled(map[string]string{"app": "web"}), "10.0.1.1")
		why, err := Missing(t.Context(), serving(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, plans.Destination, arrived, 1)
		const want = "pod web-1 is available, waiting until Service shop/web-clients on the source, by which clients find it, lists its address 10.0.1.1"
		if err != nil || (why != "") != c.missing || c.missing && why != want {
			t.Errorf("%s: %q, %v, expected that it is missing: %t", name, why, err, c.missing)
		}
	}
}

// A set whose pods have no names has clients all the same, within one cluster.
func TestClientsAreServedWithoutNames(t *testing.T) {
	p := serving()
	p.Names = plans.Names{Mode: plans.NoNames, Clients: []string{"web-clients"}}
	slice := Want(p, oldSide(p), entry("shop"), map[plans.Side][]*corev1.Pod{plans.Destination: {pod("web-1", labelled(map[string]string{"app": "web"}), "10.0.1.1")}}, nil)["stsmigrate-web-abc-web-clients-ipv4-0"]
	api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(slice).Build()
	on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
	back := plans.StepContext{Step: plans.Step{Op: plans.Thaw, From: plans.Destination}}
	seen, err := Remove(p, on, func() {})(t.Context(), back)
	if err != nil || seen.Standing != plans.Before || !strings.Contains(seen.Reason, "delete EndpointSlice shop/stsmigrate-web-abc-web-clients-ipv4-0") {
		t.Fatalf("%v, %v", seen, err)
	}
	if err := seen.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen, err = Remove(p, on, func() {})(t.Context(), back); err != nil || seen.Standing != plans.After {
		t.Errorf("%v, %v", seen, err)
	}
	kept := plans.StepContext{Step: plans.Step{Op: plans.Thaw, From: plans.Source}, KeepNames: true}
	if err := api.Create(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: slice.Name, Labels: slice.Labels}}); err != nil {
		t.Fatal(err)
	}
	if seen, err = Remove(p, on, func() {})(t.Context(), kept); err != nil || seen.Standing != plans.After {
		t.Errorf("kept: %v, %v", seen, err)
	}
}

// The Roles name every slice, of either side, and the Services may be read.
func TestTheSlicesOfClientsAreInTheRights(t *testing.T) {
	p := serving()
	p.Count = 3
	for _, side := range plans.Sides() {
		var services, all []part.Right
		for _, r := range Part().Rights(p, side) {
			switch {
			case r.In(p, side) != p.On(side).Namespace:
				t.Errorf("%s: a right in namespace %s", side, r.Namespace)
			case r.Resource == "services":
				services = append(services, r)
			default:
				all = append(all, r)
			}
		}
		if len(services) != 1 || len(services[0].Names) != 0 || !slices.Equal(services[0].Verbs, part.Watched()) {
			t.Errorf("%s: %+v", side, services)
		}
		want := []string{"stsmigrate-web-abc-ipv4-0", "stsmigrate-web-abc-ipv6-0", "stsmigrate-web-abc-web-0-ipv4-0", "stsmigrate-web-abc-web-0-ipv6-0", "stsmigrate-web-abc-web-clients-ipv4-0", "stsmigrate-web-abc-web-clients-ipv6-0"}
		if len(all) != 1 || !slices.Equal(all[0].Names, want) {
			t.Errorf("%s: %+v", side, all)
		}
	}
}

// Each slice is announced before it is written.
func TestTheSlicesOfClientsAreInTheWrites(t *testing.T) {
	p := serving()
	p.Count = 3
	for op, verb := range map[plans.Op]part.Verb{plans.Freeze: part.Create, plans.Thaw: part.Delete} {
		var n int
		for _, w := range Part().Writes(p, plans.Leg{Direction: plans.Move}, plans.Step{Op: op}) {
			if strings.Contains(w.Name, "web-clients") && w.Verb == verb && strings.Contains(w.What, "by Service web-clients") {
				n++
			}
		}
		if n != 4 {
			t.Errorf("%s: %d writes, expected 4", op, n)
		}
	}
}
