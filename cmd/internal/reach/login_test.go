package reach

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".secret"
}

// A login that ends before the move may end, and that a process cannot renew, is told at the start. The token itself is
// told to nobody.
func TestALoginThatEndsBeforeTheMoveIsTold(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: noon}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	token := jwt(fmt.Sprintf(`{"exp":%d,"sub":"anna"}`, noon.Unix()))
	for name, c := range map[string]struct {
		config rest.Config
		until  time.Time
		want   string
	}{
		"a token":                        {rest.Config{BearerToken: token}, noon.Add(time.Second), "a token in the kubeconfig) ends at 2026-01-01 12:00:00 UTC, and the move may take until 2026-01-01 12:00:01 UTC"},
		"a token that lasts":             {rest.Config{BearerToken: token}, noon, ""},
		"a token from a file":            {rest.Config{BearerToken: token, BearerTokenFile: "/token"}, noon.Add(time.Hour), ""},
		"a program":                      {rest.Config{BearerToken: token, ExecProvider: &clientcmdapi.ExecConfig{}}, noon.Add(time.Hour), ""},
		"a token that is no JWT":         {rest.Config{BearerToken: "abc"}, noon.Add(time.Hour), ""},
		"a token without an end":         {rest.Config{BearerToken: jwt(`{"sub":"anna"}`)}, noon.Add(time.Hour), ""},
		"a token with nonsense":          {rest.Config{BearerToken: jwt(`{"exp":"soon"}`)}, noon.Add(time.Hour), ""},
		"a certificate":                  {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate}}, noon.Add(time.Second), "a client certificate in the kubeconfig) ends at 2026-01-01 12:00:00 UTC"},
		"a certificate that is nonsense": {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("abc")}}, noon.Add(time.Second), ""},
		"nothing":                        {rest.Config{}, noon.Add(time.Hour), ""},
	} {
		r := Flags{opened: []*End{{Context: "west", config: &c.config}, {Context: "west", config: &c.config}}}
		got := strings.Join(r.expiring(c.until), "\n")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "secret") || strings.Count(got, "context west") > 1 {
			t.Errorf("%s: %q, expected %q once", name, got, c.want)
		}
	}
}
