package reach

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// login names the login of a context for who has to renew it.
func (e *End) login(raw *clientcmdapi.Config) string {
	c := raw.Contexts[e.Context]
	if c == nil {
		return ""
	}
	return fmt.Sprintf("context %s (user %s of the kubeconfig)", e.Context, c.AuthInfo)
}

// WarnOfLogins prints which logins end before a time, when a move may still be under way.
func (r *Flags) WarnOfLogins(to io.Writer, until time.Time) {
	for _, line := range r.expiring(until) {
		fmt.Fprintln(to, "warning: "+line)
	}
}

// expiring returns a line for each login that ends before a time and cannot be renewed by a process that runs: a token or a
// certificate that is written in the kubeconfig. What comes from a file or from a program is renewed there.
func (r *Flags) expiring(until time.Time) []string {
	var out []string
	said := map[string]bool{}
	for _, e := range r.opened {
		what, ends := expiry(e.config)
		if ends.IsZero() || !ends.Before(until) || said[e.Name()] {
			continue
		}
		said[e.Name()] = true
		out = append(out, fmt.Sprintf("the login of %s (%s in the kubeconfig) ends at %s, and the move may take until %s: log in again first; a process that runs does not read it again",
			e.Name(), what, ends.UTC().Format(time.DateTime+" MST"), until.UTC().Format(time.DateTime+" MST")))
	}
	return out
}

// expiry returns what a static login is, and when it ends; the zero time if it does not say.
func expiry(config *rest.Config) (what string, ends time.Time) {
	switch {
	case config.ExecProvider != nil, config.AuthProvider != nil, config.BearerTokenFile != "":
		return "", time.Time{}
	case config.BearerToken != "":
		return "a token", tokenEnds(config.BearerToken)
	case len(config.CertData) > 0:
		return "a client certificate", certificateEnds(config.CertData)
	}
	return "", time.Time{}
}

// tokenEnds returns the time exp of a token that is a JWT. Nothing is verified: only the API server can do that.
func tokenEnds(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}

// certificateEnds returns until when a client's certificate is valid.
func certificateEnds(data []byte) time.Time {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return c.NotAfter
}
