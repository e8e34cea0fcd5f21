package dns

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Until its peers find an ordinal under all its names, the next one must stay up (S2).
func TestAPodIsMissingUntilItIsFoundUnderItsNames(t *testing.T) {
	p, arrived := bridge(), pod("web-1", nil, "10.0.1.1")
	listed := func(host, address string, ready bool) client.Object {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web-abc-ipv4-0"}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Hostname: &host, Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		}
	}
	for name, c := range map[string]struct {
		world   []client.Object
		missing bool
	}{
		"nothing lists it":               {nil, true},
		"it is listed":                   {[]client.Object{listed("web-1", "10.0.1.1", true)}, false},
		"its earlier address is listed":  {[]client.Object{listed("web-1", "10.0.0.1", true)}, true},
		"another has its address":        {[]client.Object{listed("web-0", "10.0.1.1", true)}, true},
		"it is listed, and not answered": {[]client.Object{listed("web-1", "10.0.1.1", false)}, true},
		"a slice of another plan has it": {[]client.Object{&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web-xyz-ipv4-0"}}}, true},
	} {
		api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(append(c.world, peersIn("mall"))...).Build()
		why, err := Missing(t.Context(), p, map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, plans.Destination, arrived, 1)
		if err != nil || (why != "") != c.missing || c.missing && !strings.Contains(why, "waiting until web-1.peers.shop.svc resolves to its address 10.0.1.1") {
			t.Errorf("%s: %q, %v, expected that it is missing: %t", name, why, err, c.missing)
		}
	}
}

// A controller manager that does not run leaves the former address where it was: the wait says so.
func TestAWaitForANameSaysWhoStillListsIt(t *testing.T) {
	host, service := "web-1", map[string]string{discoveryv1.LabelServiceName: "peers"}
	own := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "peers-x7k2p", Labels: service}, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Hostname: &host, Addresses: []string{"10.0.0.1"}}}}
	api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(own, peersIn("shop")).Build()
	why, err := Missing(t.Context(), bridge(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, plans.Destination, pod("web-1", nil, "10.0.1.1"), 1)
	if err != nil || !strings.Contains(why, "EndpointSlice shop/peers-x7k2p still lists the name at another address") {
		t.Errorf("%q, %v", why, err)
	}
}

// Without the Service no name is resolved, and no slice is written: the wait says what to do about it.
func TestAWaitForANameSaysThatItsServiceIsGone(t *testing.T) {
	const gone = "Service shop/peers does not exist any more: it gives the pods their names; recreate it"
	for lost, world := range map[bool][]client.Object{true: nil, false: {peersIn("shop")}} {
		if why := missing(t, world...); strings.Contains(why, gone) != lost {
			t.Errorf("gone %t: %q", lost, why)
		}
	}
}

// The peers that have arrived before find a pod by the Service of its own side, and by no slice of ours.
func TestAPodIsMissingWhileItsOwnServiceIsGone(t *testing.T) {
	address, ready, host := "10.0.1.1", true, "web-1"
	listed := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web-abc-ipv4-0"}, AddressType: discoveryv1.AddressTypeIPv4}
	listed.Endpoints = []discoveryv1.Endpoint{{Hostname: &host, Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
	if why := missing(t, listed, peersIn("shop"), peersIn("mall")); why != "" {
		t.Errorf("%q, expected that it is found", why)
	}
	const want = "pod web-1 is available, waiting until web-1.peers.mall.svc resolves on the destination, where Service mall/peers does not exist any more: it gives the pods their names; recreate it"
	if why := missing(t, listed, peersIn("shop")); why != want {
		t.Errorf("%q, expected %q", why, want)
	}
}

func peersIn(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peers"}}
}

// missing returns why web-1 has not arrived on the destination of a cluster with these objects.
func missing(t *testing.T, world ...client.Object) string {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(world...).Build()
	why, err := Missing(t.Context(), bridge(), map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}, plans.Destination, pod("web-1", nil, "10.0.1.1"), 1)
	if err != nil {
		t.Fatal(err)
	}
	return why
}

// A Service that stands in for that of the other cluster goes with its namespace, and nobody can make it there again.
func TestAWaitForANameSaysThatAStandInIsGone(t *testing.T) {
	p := bridge()
	p.Destination.Cluster = "2"
	on := map[plans.Side]client.Client{}
	for _, side := range plans.Sides() {
		on[side] = fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	}
	address, ready, host := "10.0.1.1", true, "web-1"
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web-abc-ipv4-0"}, AddressType: discoveryv1.AddressTypeIPv4}
	slice.Endpoints = []discoveryv1.Endpoint{{Hostname: &host, Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
	if err := on[plans.Source].Create(t.Context(), slice); err != nil { // it is found by its old name
		t.Fatal(err)
	}
	why, err := Missing(t.Context(), p, on, plans.Destination, pod(host, nil, address), 1)
	if err != nil || !strings.Contains(why, "which stands in for that of the other cluster, does not exist; recreate namespace mall there") {
		t.Errorf("%q, %v", why, err)
	}
}

// At the end only what the plan made is deleted (S12). The export of the destination becomes its own.
func TestRemoveLeavesWhatThePlanDidNotMake(t *testing.T) {
	for name, c := range map[string]struct {
		mode plans.NameMode
		make func(namespace, plan string) client.Object
	}{
		"Service": {plans.Bridge, func(namespace, plan string) client.Object {
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peers", Labels: map[string]string{PlanLabel: plan}}}
		}},
		"EndpointSlice another writer says it manages": {plans.Bridge, func(namespace, plan string) client.Object {
			return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stsmigrate-" + plan + "-ipv4-0", Labels: map[string]string{PlanLabel: plan, discoveryv1.LabelManagedBy: "another"}}}
		}},
		"EndpointSlice": {plans.Bridge, func(namespace, plan string) client.Object {
			return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stsmigrate-" + plan + "-ipv4-0", Labels: map[string]string{PlanLabel: plan, discoveryv1.LabelManagedBy: ManagedBy}}}
		}},
		"ServiceExport": {plans.MCS, func(namespace, plan string) client.Object {
			return &mcsv1alpha1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "peers", Labels: map[string]string{PlanLabel: plan}}}
		}},
	} {
		for plan, want := range map[string]plans.Standing{"web-abc": plans.Before, "web-xyz": plans.After, "": plans.After} {
			p := bridge()
			p.Destination.Cluster, p.Names.Mode = "2", c.mode // a stand-in for mall is on the source, and one for shop on the destination
			namespace := map[plans.NameMode]string{plans.Bridge: "mall", plans.MCS: "shop"}[c.mode]
			on := map[plans.Side]client.Client{
				plans.Source:      fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(c.make(namespace, plan)).Build(),
				plans.Destination: fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build(),
			}
			stopped := false
			s, err := Remove(p, on, func() { stopped = true })(t.Context(), plans.StepContext{Step: plans.Step{Op: plans.Thaw, From: plans.Source}})
			if err != nil || s.Standing != want || !stopped || want == plans.Before && !strings.Contains(s.Reason, "source: delete "+strings.Fields(name)[0]) {
				t.Errorf("%s of plan %q: %s (%s), %v, stopped %t, expected %s", name, plan, s.Standing, s.Reason, err, stopped, want)
			}
		}
	}
}
