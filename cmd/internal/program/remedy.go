package program

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Remedy returns what an error ends with whose cause is between this machine and an API server: what to do, or "".
// again says how the user goes on after that. An answer that was not from an API server has said itself what to do.
func Remedy(err error, again string) string {
	if do := remedy(err); do != "" {
		return "; " + do + ", then " + again
	}
	return ""
}

func remedy(err error) string {
	var sent *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return "renew the credentials of this context (log in again)"
	case !errors.As(err, &sent):
		return ""
	case strings.Contains(sent.Error(), "getting credentials: "):
		return "the program that the kubeconfig names for credentials failed: run it by hand"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "this is not the server that the kubeconfig describes: compare server and certificate-authority of the cluster"
	case errors.As(sent.Err, new(net.Error)):
		return "check that the API server can be reached from here (address, network, proxy)"
	}
	return ""
}
