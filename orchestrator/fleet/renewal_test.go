package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// authority returns the certificate of an authority, in the format of a kubeconfig.
func authority(t *testing.T) []byte {
	t.Helper()
	s, _ := server(t, nil)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// ended reports whether the plans of a cluster are notified that its server has changed.
func ended(c *Cluster) bool {
	select {
	case <-c.Gone:
		return true
	default:
		return false
	}
}

// A token is read for every request: a new token ends no run.
func TestRenewedCredentialsEndNothing(t *testing.T) {
	var sent atomic.Value
	s, kubeconfig := server(t, func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	})
	f := testFleet(true)
	learn := func(raw string) *Cluster {
		t.Helper()
		if err := f.Learn(secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": raw})); err != nil {
			t.Fatal(err)
		}
		c, err := f.Find("prod", "uid")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	asks := func(c *Cluster, want string) {
		t.Helper()
		end, err := c.Connect()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = clusters.ClusterUID(t.Context(), end.Client) // the request is forbidden
		if got := sent.Load(); got != "Bearer "+want {
			t.Errorf("it was sent with %q, expected %q", got, want)
		}
	}
	first := learn(kubeconfig)
	asks(first, canary)
	for _, again := range []struct{ raw, token string }{{kubeconfig, canary}, {reaching(s, "new"), "new"}} {
		if c := learn(again.raw); c != first || ended(first) {
			t.Fatal("another token made another connection, or ended the plans of the one before")
		}
		asks(first, again.token)
	}
	moved := byName(reaching(s, "new"))
	second := learn(moved)
	if second == first || !ended(first) {
		t.Error("nobody was told that the server is another one")
	}
	asks(second, "new")
	other := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})) + "\n"
	third := learn(regexp.MustCompile("certificate-authority-data: .*").ReplaceAllString(moved, "certificate-authority-data: "+base64.StdEncoding.EncodeToString([]byte(other))))
	if third == second || !ended(second) {
		t.Error("nobody was told that the certificate authority is another one")
	}
	f.Forget("a")
	if _, err := f.Find("prod", "uid"); err == nil || !ended(third) {
		t.Errorf("nobody was told that the Secret is gone: %v", err)
	}
}

// A client certificate is renewed like a token.
func TestARenewedCertificateEndsNothing(t *testing.T) {
	var seen atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.TLS.PeerCertificates[0].Subject.CommonName)
		w.WriteHeader(http.StatusForbidden)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	f := testFleet(true)
	var first *Cluster
	for _, name := range []string{"old", "new"} {
		cert, key := pair(t, name)
		raw := strings.Replace(reaching(s, canary), "token: "+canary, "client-certificate-data: "+cert+"\n    client-key-data: "+key, 1)
		if err := f.Learn(secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": raw})); err != nil {
			t.Fatal(err)
		}
		c, err := f.Find("prod", "uid")
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
		if c != first || ended(first) {
			t.Fatal("another certificate ended the plans of the cluster")
		}
		end, err := c.Connect()
		if err != nil {
			t.Fatal(err)
		}
		for way, ask := range ways(t, end) {
			seen.Store("")
			_ = ask(t.Context()) // the request is forbidden
			if got := seen.Load(); got != name {
				t.Errorf("%s: it was sent with the certificate %q, expected %q", way, got, name)
			}
		}
	}
}

// pair returns a client certificate and its key, in the format of a kubeconfig.
func pair(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	in := func(kind string, raw []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}))
	}
	return in("CERTIFICATE", public), in("PRIVATE KEY", raw)
}
