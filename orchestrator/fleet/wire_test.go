package fleet

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestSomeAddressesAreNoClusters(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": "loopback", "127.8.8.8": "loopback", "::1": "loopback", "::1%lo": "loopback", "::ffff:127.0.0.1": "loopback",
		"169.254.169.254": "link-local", "::ffff:169.254.169.254": "link-local", "fe80::1%eth0": "link-local",
		"0.0.0.0": "unspecified", "::": "unspecified", "::ffff:0.0.0.0": "unspecified",
		"224.0.0.1": "multicast", "ff02::1": "multicast",
		"fd00:ec2::254": "a cloud tells", "fd20:ce::254": "a cloud tells", "100.100.100.200": "a cloud tells", "168.63.129.16": "a cloud tells", "192.0.0.192": "a cloud tells",
		"::ffff:168.63.129.16": "a cloud tells", "fd00:ec2::254%eth0": "a cloud tells",
		"64:ff9b::169.254.169.254": "link-local", "64:ff9b::127.0.0.1": "loopback", "64:ff9b::168.63.129.16": "a cloud tells", "64:ff9b:1::169.254.169.254": "link-local",
		"64:ff9b:1:a9fe:a9:fe00::": "link-local", "64:ff9b:1:ffa9:fe:a9fe::": "link-local", "64:ff9b:1:ffff:a9:fea9:fe00:0": "link-local",
		"2002:a9fe:a9fe::1": "link-local", "2002:7f00:1::": "loopback", "::169.254.169.254": "link-local", "::127.0.0.1": "loopback",
		"64:ff9b::10.0.0.1": "", "64:ff9b:1::10.0.0.1": "", "2002:a00:1::": "", "fd00:ec2::253": "", "100.64.0.1": "",
		"10.0.0.1": "", "192.168.1.1": "", "fd00::1": "", "203.0.113.7": "", "::ffff:10.0.0.1": "",
	} {
		err := refuseAddress(netip.MustParseAddr(address), false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", address, err, want)
		}
		if err := refuseAddress(netip.MustParseAddr(address), true); want != "loopback" && (err == nil) != (want == "") || want == "loopback" && err != nil {
			t.Errorf("%s where loopback is allowed: %v", address, err)
		}
	}
}

func TestASecretThatNamesSuchAnAddressIsRefused(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1:6443": "loopback", "[::1]": "loopback", "localhost:10250": "loopback", "LocalHost.:1": "loopback", "a.localhost": "loopback",
		"169.254.169.254": "link-local", "[fe80::1%25eth0]:6443": "link-local", "0.0.0.0:6443": "unspecified", "[::ffff:127.0.0.1]": "loopback",
	} {
		raw := strings.Replace(string(kubeconfig("", "")), "east.example:6443", host, 1)
		says(t, host, testFleet(false).Learn(secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": raw})), want)
	}
}

// Whatever the name, the address is checked when a connection is made, whichever client makes it.
func TestNoClientConnectsToSuchAnAddress(t *testing.T) {
	var asked atomic.Int32
	s, kubeconfig := server(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	contexts, _, err := Sanitize([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(false)
	a, err := w.access(contexts["east"])
	if err != nil {
		t.Fatal(err)
	}
	w.renew(a)
	f := testFleet(false)
	c := f.cluster("prod")
	w.breaker = c.breaker
	f.prepare(c, w.config(contexts["east"]))
	end, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	for way, ask := range ways(t, end) {
		if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "is a loopback address") {
			t.Errorf("%s: %v", way, err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%s was asked %d times", s.URL, n)
	}
}

// A command in a pod reaches the server by its name and with the present credentials.
func TestACommandIsSentWithTheCredentialsOfNow(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	_, kubeconfig := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r)
		w.WriteHeader(http.StatusForbidden)
	})
	end := connected(t, byName(kubeconfig))
	for _, way := range []string{"a command over SPDY", "a command over a WebSocket"} {
		if err := ways(t, end)[way](t.Context()); err == nil {
			t.Errorf("%s: expected it to be forbidden", way)
		}
		r := asked.Load()
		if r.Header.Get("Authorization") != "Bearer "+canary || !strings.HasPrefix(r.Host, "localhost:") {
			t.Errorf("%s: Authorization %q, Host %q", way, r.Header.Get("Authorization"), r.Host)
		}
	}
}
