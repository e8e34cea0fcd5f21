package transport

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Login is what a refusal says about the login that is not accepted.
type Login struct {
	// Of says whose it is, as the user knows it. "" means that it is not known.
	Of string
	// Renew says how the process gets a new one.
	Renew string
}

// LoginOf returns the login of a config. It says what the config is, and nothing of what is in it.
func LoginOf(of string, config *rest.Config) Login {
	const again = "log in again; the process asks for it again by itself"
	out := Login{Of: of, Renew: "renew it in the kubeconfig, stop this process, and `resume`: it is read at the start only"}
	switch {
	case config.ExecProvider != nil:
		out.Renew = fmt.Sprintf("%s (program %s)", again, config.ExecProvider.Command)
	case config.AuthProvider != nil:
		out.Renew = again
	case config.BearerTokenFile != "":
		out.Renew = "renew the token in file " + config.BearerTokenFile + ": the process reads it again by itself"
	case config.CertFile != "" && len(config.CertData) == 0 && config.BearerToken == "":
		out.Renew = "renew the certificate in file " + config.CertFile + ": the process reads it again by itself"
	}
	return out
}

// refused returns a response for a caller that the API server does not know, with words that say what to do. Whatever it
// says itself is "Unauthorized".
func (l Login) refused(r *http.Request, answer *http.Response) (*http.Response, error) {
	_ = answer.Body.Close() // the body is not needed
	of := l.Of
	if of == "" {
		of = "this process"
	}
	said := fmt.Sprintf("%s does not accept the login of %s (HTTP 401): it has expired or was revoked", r.URL.Host, of)
	if l.Renew != "" {
		said += "; " + l.Renew
	}
	raw, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized, Message: said,
	})
	if err != nil {
		return nil, err
	}
	answer.Header.Set("Content-Type", "application/json")
	return with(answer, raw), nil
}
