package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
)

// wire is the connection to the cluster of a Secret. It connects to no address of this machine or of the
// surrounding cloud's metadata, and uses the credentials that the Secret has now. All clients of the
// cluster share the connections, and only wire holds the credentials.
type wire struct {
	dialer  *net.Dialer
	login   transport.Login
	breaker *breaker
	now     atomic.Pointer[access]
}

// access is the transport and the credentials of a request.
type access struct {
	through     http.RoundTripper
	token       string
	certificate *tls.Certificate
}

// allowLoopback is the flag that lets test beds have their clusters on this machine.
const allowLoopback = "--allow-loopback-clusters"

func newWire(loopback bool) *wire {
	return &wire{dialer: &net.Dialer{
		Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		// It is called for every address that a name resolves to, just before the connection is made.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%s is no address of a cluster", address)
			}
			return refuseAddress(at.Addr(), loopback)
		},
	}}
}

// refuseAddress returns an error for an address that no kubeconfig from elsewhere may use: the kubelet,
// a sidecar or the metadata service of the cloud may listen there.
func refuseAddress(ip netip.Addr, loopback bool) error {
	ip = ip.Unmap()
	what := ""
	switch {
	case ip.IsLoopback() && loopback:
	case ip.IsLoopback():
		what = "a loopback address, and means this machine: put in the address that pods reach (" + allowLoopback + " is for test beds)"
	case ip.IsLinkLocalUnicast():
		what = "a link-local address, where no cluster is but the metadata of clouds"
	case ip.IsUnspecified():
		what = "an unspecified address, and means this machine"
	case ip.IsMulticast():
		what = "a multicast address"
	case slices.Contains(metadataServices(), ip.WithZone("").String()):
		what = "where a cloud tells its machines who they are, and no cluster"
	}
	if what != "" {
		return fmt.Errorf("%s is %s", ip, what)
	}
	for _, in := range within(ip) {
		if err := refuseAddress(in, loopback); err != nil && !in.IsUnspecified() { // a shorter prefix has zeros there
			return fmt.Errorf("%s leads to an IPv4 address: %w", ip, err)
		}
	}
	return nil
}

// metadataServices returns the addresses of the metadata services of clouds that are not link-local.
func metadataServices() []string {
	return []string{
		"fd00:ec2::254",   // AWS
		"fd20:ce::254",    // Google Cloud
		"168.63.129.16",   // Azure
		"100.100.100.200", // Alibaba Cloud
		"192.0.0.192",     // Oracle Cloud
	}
}

// within returns the IPv4 addresses to which the network may translate an IPv6 address: NAT64 (RFC 6052, RFC 8215),
// 6to4, and addresses that are compatible with IPv4.
func within(ip netip.Addr) (out []netip.Addr) {
	if !ip.Is6() {
		return nil
	}
	b := ip.As16()
	is := func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(ip.WithZone("")) }
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case is("64:ff9b::/96"), is("::/96"):
		return []netip.Addr{last}
	case is("64:ff9b:1::/48"): // an operator chooses how long the prefix is: /48, /56, /64 or /96
		return []netip.Addr{last, netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}), netip.AddrFrom4([4]byte{b[7], b[9], b[10], b[11]}), netip.AddrFrom4([4]byte(b[9:13]))}
	case is("2002::/16"):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	}
	return nil
}

// refuseServer does the same for a server's URL, as far as possible without resolving a name.
func refuseServer(server string, loopback bool) error {
	at, err := url.Parse(server)
	if err != nil {
		return errors.New("server is no URL")
	}
	name := strings.ToLower(strings.TrimSuffix(at.Hostname(), "."))
	ip, err := netip.ParseAddr(name)
	switch {
	case err == nil:
		return refuseAddress(ip, loopback)
	case !loopback && (name == "localhost" || strings.HasSuffix(name, ".localhost")):
		return refuseAddress(netip.IPv6Loopback(), loopback)
	}
	return nil
}

// access prepares transport and credentials of a config. It does not connect.
func (w *wire) access(config *rest.Config) (*access, error) {
	a := &access{token: config.BearerToken}
	if len(config.CertData) > 0 {
		pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			return nil, errors.New("client-certificate-data and client-key-data are not a certificate and its key")
		}
		a.certificate = &pair
	}
	var err error
	a.through, err = rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig, Dial: w.dialer.DialContext})
	if err != nil {
		return nil, errors.New("certificate-authority-data has no certificate that can be read")
	}
	return a, nil
}

// renew makes all further requests use other credentials.
func (w *wire) renew(a *access) { w.now.Store(a) }

// config returns the config that clients are made with. It has no credentials.
func (w *wire) config(given *rest.Config) *rest.Config {
	return &rest.Config{
		Host: given.Host, TLSClientConfig: rest.TLSClientConfig{CAData: given.CAData, ServerName: serverName(given)},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			if upgrades, ok := next.(transport.Upgrader); ok {
				return transport.Streaming(upgrade{w, upgrades})
			}
			return transport.BoundedOf(w.login, guarded{w.breaker, w})
		},
	}
}

// serverName returns the name that the server's certificate must have.
func serverName(given *rest.Config) string {
	if given.ServerName != "" {
		return given.ServerName
	}
	at, err := url.Parse(given.Host)
	if err != nil { // refuseServer has refused it before
		return given.Host
	}
	return at.Hostname()
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	now := w.now.Load()
	return now.through.RoundTrip(now.authorized(r))
}

// authorized returns the request with the credentials of this access, in place of its own.
func (a *access) authorized(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return r
}

// upgrade sends such a request to an address that the dialer has just connected to: a second name
// resolution could return another address.
type upgrade struct {
	*wire
	next transport.Upgrader
}

// RoundTrip implements http.RoundTripper.
func (u upgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	now := u.now.Load()
	r = now.authorized(r)
	if c := now.certificate; c != nil {
		u.next.TLSClientConfig().GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil {
		return u.next.RoundTrip(r) // the proxy resolves the name
	}
	to := r.URL.Host
	if r.URL.Port() == "" {
		to = net.JoinHostPort(r.URL.Hostname(), "443")
	}
	c, err := u.dialer.DialContext(r.Context(), "tcp", to)
	if err != nil {
		return nil, err
	}
	address := c.RemoteAddr().String()
	if err := c.Close(); err != nil {
		return nil, err
	}
	r.Host = r.URL.Host
	r.Header.Set("Host", r.URL.Host) // WebSockets use this header
	r.URL.Host = address
	return u.next.RoundTrip(r)
}
