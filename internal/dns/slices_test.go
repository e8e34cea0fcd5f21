package dns

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

func bridge() *plans.Plan {
	return &plans.Plan{
		ID: "web-abc", Start: 0, Count: 120,
		Source: plans.Ref{Cluster: "1", Namespace: "shop", Name: "web"}, Destination: plans.Ref{Cluster: "1", Namespace: "mall", Name: "web"},
		Names: plans.Names{Mode: plans.Bridge, Service: "peers"},
	}
}

func pod(name string, change func(*corev1.Pod), ips ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "client", ContainerPort: 2379, Protocol: corev1.ProtocolTCP}}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, ip := range ips {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestADirectoryGetsThePodsItDoesNotList(t *testing.T) {
	p := bridge()
	pods := map[plans.Side][]*corev1.Pod{
		plans.Source:      {pod("web-0", nil, "10.0.0.1"), pod("web-9x", nil, "10.0.0.9")},
		plans.Destination: {pod("web-1", nil, "10.0.1.1", "fd00::1"), pod("web-119", nil, "10.0.1.2"), pod("web-120", nil, "10.0.1.3")},
	}
	service := &corev1.Service{}
	service.Spec.Ports = []corev1.ServicePort{
		{Name: "a", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
		{Name: "b", Port: 81, TargetPort: intstr.FromString("client"), Protocol: corev1.ProtocolTCP},
		{Name: "c", Port: 82, TargetPort: intstr.FromString("nobody"), Protocol: corev1.ProtocolTCP},
	}
	for _, c := range []struct {
		name  string
		lists plans.Side
		want  map[string][]string // slice: hostnames
	}{
		{"the old names", plans.Source, map[string][]string{
			"stsmigrate-web-abc-ipv4-0": {"web-1"}, "stsmigrate-web-abc-ipv6-0": {"web-1"}, "stsmigrate-web-abc-ipv4-1": {"web-119"},
		}},
		{"the new names", plans.Destination, map[string][]string{"stsmigrate-web-abc-ipv4-0": {"web-0"}}},
		{"names of another cluster", "", map[string][]string{
			"stsmigrate-web-abc-ipv4-0": {"web-0", "web-1"}, "stsmigrate-web-abc-ipv6-0": {"web-1"}, "stsmigrate-web-abc-ipv4-1": {"web-119"},
		}},
	} {
		got := Want(p, plans.Directory{On: plans.Source, Namespace: "shop", Lists: c.lists}, service, pods, nil)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d slices, expected %d", c.name, len(got), len(c.want))
		}
		for name, hosts := range c.want {
			s := got[name]
			if s == nil || len(s.Endpoints) != len(hosts) {
				t.Errorf("%s: slice %s is %v, expected %v", c.name, name, s, hosts)
				continue
			}
			for i, h := range hosts {
				if *s.Endpoints[i].Hostname != h {
					t.Errorf("%s: %s has %s, expected %s", c.name, name, *s.Endpoints[i].Hostname, h)
				}
			}
			if s.Labels[discoveryv1.LabelServiceName] != "peers" || s.Labels[discoveryv1.LabelManagedBy] != ManagedBy {
				t.Errorf("%s: labels %v", c.name, s.Labels)
			}
			if len(s.Ports) != 2 || *s.Ports[0].Port != 8080 || *s.Ports[1].Port != 2379 {
				t.Errorf("%s: ports %v", c.name, s.Ports)
			}
		}
	}
}

// The control plane answers a Service of one family with addresses of that family only, whatever others its pods have.
// A pod that has moved is answered alike, and waited for alike. Without an address of these families it has those that
// it has.
func TestANameHasTheFamiliesOfItsService(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	there := plans.Directory{On: plans.Source, Namespace: "shop", Lists: plans.Source}
	for name, c := range map[string]struct {
		families []corev1.IPFamily
		ips      []string
		want     []string
	}{
		"one family, two addresses":  {[]corev1.IPFamily{v4}, []string{"10.0.1.1", "fd00::1"}, []string{"10.0.1.1"}},
		"the other family":           {[]corev1.IPFamily{v6}, []string{"10.0.1.1", "fd00::1"}, []string{"fd00::1"}},
		"both families":              {[]corev1.IPFamily{v6, v4}, []string{"10.0.1.1", "fd00::1"}, []string{"10.0.1.1", "fd00::1"}},
		"both families, one address": {[]corev1.IPFamily{v4, v6}, []string{"fd00::1"}, []string{"fd00::1"}},
		"only the other address":     {[]corev1.IPFamily{v4}, []string{"fd00::1"}, []string{"fd00::1"}},
		"an address that is barred":  {[]corev1.IPFamily{v6}, []string{"10.0.1.1", "fe80::1"}, []string{"10.0.1.1"}},
		"no family is known":         {nil, []string{"10.0.1.1", "fd00::1"}, []string{"10.0.1.1", "fd00::1"}},
	} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "peers"}}
		service.Spec.IPFamilies = c.families
		kept, _ := slim(service)
		small, _ := kept.(*corev1.Service)
		moved := pod("web-1", nil, c.ips...)
		want := Want(bridge(), there, small, map[plans.Side][]*corev1.Pod{plans.Destination: {moved}}, nil)
		var got []string
		for _, key := range slices.Sorted(maps.Keys(want)) {
			got = append(got, want[key].Endpoints[0].Addresses...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: it has the addresses %v, expected %v", name, got, c.want)
		}
		missing := func() string {
			b := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(service.DeepCopy(), peersIn("mall"))
			for _, s := range want {
				b.WithObjects(s)
			}
			api := b.Build()
			why, err := Missing(t.Context(), bridge(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, plans.Destination, moved, 1)
			if err != nil {
				t.Fatal(err)
			}
			return why
		}
		if why := missing(); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		for key := range maps.Clone(want) {
			one := want[key]
			if delete(want, key); missing() == "" {
				t.Errorf("%s: it is not waited for without %s", name, key)
			}
			want[key] = one
		}
	}
}

// The stand-in for a Service of one family is of that family, also where the cluster has two.
func TestAStandInHasTheFamiliesOfItsModel(t *testing.T) {
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	for _, c := range []struct {
		families []corev1.IPFamily
		single   bool
	}{{nil, false}, {[]corev1.IPFamily{v4}, true}, {[]corev1.IPFamily{v6}, true}, {[]corev1.IPFamily{v6, v4}, false}} {
		model := &corev1.Service{}
		model.Spec.IPFamilies = c.families
		got := standIn(bridge(), plans.Directory{}, model).Spec
		if single := got.IPFamilyPolicy != nil && *got.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack; single != c.single || !slices.Equal(got.IPFamilies, c.families) {
			t.Errorf("the model has %v: the stand-in has %v, single %t", c.families, got.IPFamilies, single)
		}
	}
}

// Watches and the control plane's own slices may be behind: then a pod that is gone still has its name. The name must
// not get a second address meanwhile.
func TestANameHasOneAddress(t *testing.T) {
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	at := func(hostname, address string) []*discoveryv1.EndpointSlice {
		return []*discoveryv1.EndpointSlice{{ObjectMeta: metav1.ObjectMeta{Name: "peers-x7k2p"}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Hostname: &hostname, Addresses: []string{address}}}}}
	}
	here, away := pod("web-3", nil, "10.0.0.1"), pod("web-3", nil, "10.0.1.1")
	for name, c := range map[string]struct {
		lists               plans.Side
		source, destination *corev1.Pod
		others              []*discoveryv1.EndpointSlice
		want                string
	}{
		"it has moved":                              {lists: plans.Source, destination: away, want: "10.0.1.1"},
		"the directory still has the former pod":    {lists: plans.Source, source: here, destination: away},
		"the former pod is being deleted there":     {lists: plans.Source, source: pod("web-3", deleted, "10.0.0.1"), destination: away},
		"the former pod is seen on the other side":  {lists: plans.Destination, source: here, destination: pod("web-3", nil)},
		"the control plane still lists the former":  {lists: plans.Source, destination: away, others: at("web-3", "10.0.0.1")},
		"another writer lists the very address":     {lists: plans.Source, destination: away, others: at("web-3", "10.0.1.1"), want: "10.0.1.1"},
		"the control plane lists other pods":        {lists: plans.Source, destination: away, others: at("web-2", "10.0.0.2"), want: "10.0.1.1"},
		"a third namespace, both are there":         {source: here, destination: away},
		"a third namespace, one is being deleted":   {source: pod("web-3", deleted, "10.0.0.1"), destination: away, want: "10.0.1.1"},
		"a third namespace, both are being deleted": {source: pod("web-3", deleted, "10.0.0.1"), destination: pod("web-3", deleted, "10.0.1.1")},
	} {
		pods := map[plans.Side][]*corev1.Pod{}
		for side, p := range map[plans.Side]*corev1.Pod{plans.Source: c.source, plans.Destination: c.destination} {
			if p != nil {
				pods[side] = []*corev1.Pod{p}
			}
		}
		service := &corev1.Service{}
		service.Spec.PublishNotReadyAddresses = true
		var got []string
		for _, s := range Want(bridge(), plans.Directory{Lists: c.lists}, service, pods, c.others) {
			for _, e := range s.Endpoints {
				got = append(got, e.Addresses...)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: it has the addresses %v, expected %q", name, got, c.want)
		}
	}
}

func TestAPodIsAnsweredForAsTheControlPlaneWould(t *testing.T) {
	for _, c := range []struct {
		name                 string
		change               func(*corev1.Pod)
		publish              bool
		serving, terminating bool
		absent               bool
	}{
		{name: "ready", serving: true},
		{name: "not ready", change: func(p *corev1.Pod) { p.Status.Conditions = nil }, absent: true},
		{name: "not ready, but published", change: func(p *corev1.Pod) { p.Status.Conditions = nil }, publish: true},
		{name: "terminating", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, absent: true},
		{name: "terminating, but published", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, publish: true, serving: true, terminating: true},
		{name: "ended", change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, publish: true, absent: true},
		{name: "without an address", change: func(p *corev1.Pod) { p.Status.PodIPs = nil }, publish: true, absent: true},
	} {
		service := &corev1.Service{}
		service.Spec.PublishNotReadyAddresses = c.publish
		got := Want(bridge(), plans.Directory{Lists: plans.Destination}, service, map[plans.Side][]*corev1.Pod{plans.Source: {pod("web-3", c.change, "10.0.0.1")}}, nil)
		if c.absent != (len(got) == 0) {
			t.Errorf("%s: %v", c.name, got)
		}
		for _, s := range got {
			e := s.Endpoints[0].Conditions
			if !*e.Ready || *e.Serving != c.serving || *e.Terminating != c.terminating {
				t.Errorf("%s: ready %v, serving %v, terminating %v", c.name, *e.Ready, *e.Serving, *e.Terminating)
			}
		}
	}
}

// The control plane looks for a named port in the containers of a pod and in its sidecars. Each pod of a slice is asked,
// since one that has no such port, or none that a slice may have, must not take the port from the others.
func TestANamedPortIsThatOfThePodsThatHaveIt(t *testing.T) {
	numbered := func(number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = number }
	}
	inInit := func(policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = p.Spec.Containers
			p.Spec.Containers, p.Spec.InitContainers[0].RestartPolicy = nil, policy
		}
	}
	always := corev1.ContainerRestartPolicyAlways
	other := func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP }
	for name, c := range map[string]struct {
		first, second func(*corev1.Pod)
		want          int32 // 0: none
	}{
		"both alike":                      {nil, nil, 2379},
		"another number in the second":    {nil, numbered(9999), 2379},
		"too high a number in the first":  {numbered(65536), nil, 2379},
		"a negative number in the first":  {numbered(-1), nil, 2379},
		"no number in the first":          {numbered(0), nil, 2379},
		"another protocol in the first":   {other, nil, 2379},
		"in a sidecar of both":            {inInit(&always), inInit(&always), 2379},
		"in a container that ends before": {inInit(nil), inInit(nil), 0},
		"in none":                         {numbered(70000), other, 0},
	} {
		service := &corev1.Service{}
		service.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("client"), Protocol: corev1.ProtocolTCP}}
		var there []*corev1.Pod
		for _, p := range []*corev1.Pod{pod("web-0", c.first, "10.0.0.1"), pod("web-1", c.second, "10.0.0.2")} {
			kept, _ := slim(p)
			small, _ := kept.(*corev1.Pod)
			there = append(there, small)
		}
		s := Want(bridge(), plans.Directory{Lists: plans.Source}, service, map[plans.Side][]*corev1.Pod{plans.Destination: there}, nil)["stsmigrate-web-abc-ipv4-0"]
		if s == nil || len(s.Endpoints) != 2 {
			t.Fatalf("%s: %v", name, s)
		}
		var got int32
		for _, p := range s.Ports {
			got += *p.Port
		}
		if got != c.want {
			t.Errorf("%s: %d ports, %d, expected %d", name, len(s.Ports), got, c.want)
		}
	}
}

func TestEachNameHasADirectoryInEachCluster(t *testing.T) {
	one := bridge()
	same := bridge()
	same.Destination = plans.Ref{Cluster: "2", Namespace: "shop", Name: "web"}
	two := bridge()
	two.Destination.Cluster = "2"
	none := bridge()
	none.Names.Mode = plans.NoNames
	for _, c := range []struct {
		plan *plans.Plan
		want int
	}{{one, 2}, {same, 2}, {two, 4}, {none, 0}} {
		if got := c.plan.Directories(); len(got) != c.want {
			t.Errorf("%v, expected %d", got, c.want)
		}
	}
}
