package fleet

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Sanitize reads the contexts of a kubeconfig of another author. It refuses every field that runs
// programs, reads files, redirects connections or changes the identity: exec and auth plugins, file
// paths, unverified TLS, plain HTTP, proxies and impersonation. Only inline certificates and tokens
// remain. An error names the field and never contains its value.
func Sanitize(kubeconfig []byte) (contexts map[string]*rest.Config, current string, err error) {
	if err := strict(kubeconfig); err != nil {
		return nil, "", err
	}
	raw, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, "", errors.New("it cannot be read as a kubeconfig") // the parser's error quotes its input
	}
	if len(raw.Contexts) == 0 {
		return nil, "", errors.New("it has no contexts")
	}
	contexts = map[string]*rest.Config{}
	for name, c := range raw.Contexts {
		if name == "" {
			return nil, "", errors.New("it has a context without a name")
		}
		if c == nil || raw.Clusters[c.Cluster] == nil {
			return nil, "", fmt.Errorf("context %q names a cluster that is not in it", name)
		}
		user := raw.AuthInfos[c.AuthInfo]
		if user == nil {
			return nil, "", fmt.Errorf("context %q names a user that is not in it", name)
		}
		if why := errors.Join(harmlessCluster(raw.Clusters[c.Cluster]), harmlessUser(user)); why != nil {
			return nil, "", fmt.Errorf("context %q: %w", name, why)
		}
		// No other field is copied, so that fields unknown here have no effect.
		contexts[name] = &rest.Config{
			Host: raw.Clusters[c.Cluster].Server, BearerToken: user.Token,
			TLSClientConfig: rest.TLSClientConfig{
				CAData: raw.Clusters[c.Cluster].CertificateAuthorityData, ServerName: raw.Clusters[c.Cluster].TLSServerName,
				CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
			},
		}
	}
	current = raw.CurrentContext
	if current == "" && len(contexts) == 1 {
		for name := range contexts {
			current = name
		}
	}
	if current != "" && contexts[current] == nil {
		return nil, "", fmt.Errorf("its current context %q is not in it", current)
	}
	return contexts, current, nil
}

// refusal is a field that must not be set.
type refusal struct {
	set bool
	why string
}

func refuse(all ...refusal) error {
	k := slices.IndexFunc(all, func(r refusal) bool { return r.set })
	if k < 0 {
		return nil
	}
	return errors.New(all[k].why)
}

func harmlessCluster(c *clientcmdapi.Cluster) error {
	server, err := url.Parse(c.Server)
	return refuse(
		refusal{err != nil || server.Host == "", "server is no URL"},
		refusal{err == nil && server.Hostname() == "", "server has a port and no host"},
		refusal{err == nil && server.Scheme != "https", "server is not reached over https, so that another host on the path could answer"},
		refusal{err == nil && server.User != nil, "server has credentials in its URL"},
		refusal{c.InsecureSkipTLSVerify, "insecure-skip-tls-verify is set, so that another host on the path could answer"},
		refusal{c.CertificateAuthority != "", "certificate-authority is a file: put it inline, as certificate-authority-data"},
		refusal{c.ProxyURL != "", "proxy-url is set"},
	)
}

func harmlessUser(u *clientcmdapi.AuthInfo) error {
	return refuse(
		refusal{u.Exec != nil, "exec runs a program: use a token or a certificate"},
		refusal{u.AuthProvider != nil, "auth-provider is a plugin: use a token or a certificate"},
		refusal{u.TokenFile != "", "tokenFile is a file: put the token inline"},
		refusal{u.ClientCertificate != "", "client-certificate is a file: put it inline, as client-certificate-data"},
		refusal{u.ClientKey != "", "client-key is a file: put it inline, as client-key-data"},
		refusal{u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0, "it impersonates another user"},
		refusal{u.Username != "" || u.Password != "", "username and password are no credentials of Kubernetes any more"},
		refusal{u.Token == "" && len(u.ClientCertificateData) == 0, "it has neither token nor client-certificate-data"},
		refusal{!isToken(u.Token), noToken},
	)
}

const noToken = "its token has characters that no token has, such as a line break at its end" //nolint:gosec // it is none

// isToken reports whether a token can be sent in a header.
func isToken(token string) bool {
	return strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
