package dns

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Whatever addresses, names and ports the pods of a set claim to have, the API server accepts the slices: one pod that
// lies takes no other one's name away.
func FuzzNames(f *testing.F) {
	f.Add("web-0", "10.0.0.1", "fd00::1", "client", int32(2379))
	f.Add("web-0", "127.0.0.1", "::ffff:10.0.0.1", "client", int32(70000))
	f.Add("web-119", "169.254.169.254", "fe80::1%eth0", "", int32(0))
	f.Add("web-120", "010.0.0.1", "::", "x", int32(-1))
	f.Fuzz(liedTo)
}

// A lie is often told by two values together, which a fuzz test may take long to find.
func TestEveryLieOfAPodIsToldWithEveryOther(t *testing.T) {
	for _, name := range []string{"web-0", "web-119", "web-120", "web-00", "web--1", "web"} {
		for _, first := range []string{"10.0.0.1", "10.0.0.2", "010.0.0.1", "127.0.0.1", "169.254.169.254", "224.0.0.1", "0.0.0.0", "fd00::1", ""} {
			for _, second := range []string{"fd00::1", "fd00::1%eth0", "fe80::1%eth0", "ff02::1", "::", "::1", "::ffff:10.0.0.1", "x"} {
				for _, port := range []string{"client", "x", ""} {
					for _, number := range []int32{2379, 0, -1, 65535, 65536, math.MaxInt32, math.MinInt32} {
						if liedTo(t, name, first, second, port, number); t.Failed() {
							t.Fatalf("pod %q at %q and %q with port %q of number %d", name, first, second, port, number)
						}
					}
				}
			}
		}
	}
}

// liedTo checks the slices of a pod that tells the truth and of another one of that name, addresses and port.
func liedTo(t *testing.T, name, first, second, port string, number int32) {
	t.Helper()
	p := bridge()
	liar, honest := pod(name, nil, first, second), pod("web-1", nil, "10.0.0.2")
	liar.Spec.Containers[0].Ports[0].Name, liar.Spec.Containers[0].Ports[0].ContainerPort = port, number
	service := &corev1.Service{}
	service.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("client"), Protocol: corev1.ProtocolTCP}}
	all := Want(p, plans.Directory{On: plans.Source, Namespace: "shop", Lists: plans.Source}, service, map[plans.Side][]*corev1.Pod{plans.Destination: {liar, honest}}, nil)
	found := false
	for key, s := range all {
		if key != s.Name || len(validation.IsDNS1123Subdomain(s.Name)) > 0 || len(s.Endpoints) > maxEndpointsPerSlice {
			t.Errorf("slice %q has %d endpoints", s.Name, len(s.Endpoints))
		}
		found = names(t, s) || found
		for _, port := range s.Ports {
			if len(validation.IsValidPortNum(int(*port.Port))) > 0 {
				t.Errorf("port %d", *port.Port)
			}
		}
	}
	if !found {
		t.Error("the other pod is not found any more")
	}
}

// names checks the endpoints of a slice, and reports whether the other pod is one of them.
func names(t *testing.T, s *discoveryv1.EndpointSlice) (found bool) {
	t.Helper()
	for _, e := range s.Endpoints {
		found = found || *e.Hostname == "web-1"
		if !strings.HasPrefix(*e.Hostname, "web-") || len(validation.IsDNS1123Label(*e.Hostname)) > 0 {
			t.Errorf("hostname %q", *e.Hostname)
		}
		a, err := netip.ParseAddr(e.Addresses[0])
		if err != nil || a.Is4() != (s.AddressType == discoveryv1.AddressTypeIPv4) || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() {
			t.Errorf("address %q (%v) in a slice of %s", e.Addresses[0], err, s.AddressType)
		}
	}
	return found
}
