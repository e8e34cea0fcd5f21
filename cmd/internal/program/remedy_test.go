package program

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestAnErrorOfTheConnectionEndsWithWhatToDo(t *testing.T) {
	t.Parallel()
	sent := func(err error) error {
		return fmt.Errorf("reading plan a/b: %w", &url.Error{Op: "Get", URL: "https://127.0.0.1:1/api", Err: err})
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nobody listens":             {sent(syscall.ECONNREFUSED), "can be reached"},
		"another certificate":        {sent(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "certificate-authority"},
		"no program for credentials": {sent(errors.New("getting credentials: exec: executable aws not found")), "run it by hand"},
		"credentials that ended":     {fmt.Errorf("reading plan: %w", apierrors.NewUnauthorized("Unauthorized")), "log in again"},
		"a redirect":                 {sent(errors.New("it redirects: put the address of the API server itself into the kubeconfig")), ""},
		"an answer":                  {apierrors.NewBadRequest("no"), ""},
		"bad input":                  {errors.New("--d is 0"), ""},
	} {
		got := Remedy(c.err, "repeat the command")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || got != "" && !strings.HasSuffix(got, "then repeat the command") {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}
