package dns

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// listing returns a slice of a Service of the source with one endpoint: of the plan, or of the control plane.
func listing(name, service string, ready bool) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.1.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
	if strings.HasPrefix(name, "stsmigrate-") {
		s.Labels[PlanLabel] = "web-abc"
	}
	return s
}

// A Service that the bridge alone serves has no endpoint after finalize, so that waits for the user before it deletes
// anything. An abort takes nothing from clients: their pods are back.
func TestAFinalizeIsHeldWhileClientsWouldFindNothing(t *testing.T) {
	forward := plans.StepContext{Step: plans.Step{Op: plans.Retire, From: plans.Source}}
	kept, begun, back := forward, forward, forward
	kept.KeepNames, begun.Began, back.From = true, true, plans.Destination
	ours, theirs := listing("stsmigrate-web-abc-web-clients-ipv4-0", "web-clients", true), listing("web-clients-x7", "web-clients", true)
	route := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}}
	route.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web-clients"}}
	for name, c := range map[string]struct {
		world   []client.Object
		m       plans.StepContext
		ignored []string
		held    bool
	}{
		"nothing lists for it":                  {nil, forward, nil, false},
		"the bridge alone lists for it":         {[]client.Object{ours}, forward, nil, true},
		"others list for it too":                {[]client.Object{ours, theirs}, forward, nil, false},
		"others list what is not ready":         {[]client.Object{ours, listing("web-clients-x7", "web-clients", false)}, forward, nil, true},
		"the bridge lists what is not ready":    {[]client.Object{listing("stsmigrate-web-abc-web-clients-ipv4-0", "web-clients", false)}, forward, nil, false},
		"others list for another Service":       {[]client.Object{ours, listing("web-0-x7", "web-0", true)}, forward, nil, true},
		"the names are kept":                    {[]client.Object{ours}, kept, nil, false},
		"the user says that it does not matter": {[]client.Object{ours}, forward, []string{"clients"}, false},
		"the user ignores another check":        {[]client.Object{ours}, forward, []string{"quota"}, true},
		"the set is being deleted":              {[]client.Object{ours}, begun, nil, false},
		"the ordinals go back":                  {[]client.Object{ours}, back, nil, false},
	} {
		api := fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(append(c.world, route)...).Build()
		on := map[plans.Side]client.Client{plans.Source: api, plans.Destination: api}
		seen, err := Served(serving(), on, func() []string { return c.ignored })(t.Context(), c.m)
		held := seen.Standing == plans.Conflict
		if err != nil || held != c.held || held && (seen.ID != reasons.ClientsDeserted || !strings.Contains(seen.Reason, "Service shop/web-clients (behind Ingress front) would have no endpoint")) {
			t.Errorf("%s: %s %s, %v, expected that it is held: %t", name, seen.Standing, seen.Reason, err, c.held)
		}
	}
}
