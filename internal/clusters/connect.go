package clusters

import (
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Connect returns the live client of one cluster. Unlike a plain client it can also return the version
// of the API server.
func Connect(config *rest.Config) (client.Client, error) {
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: Scheme(), HTTPClient: through})
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, through)
	if err != nil {
		return nil, err
	}
	return Connection{c, d, unverified(config), make(chan struct{}, maxConcurrentPages)}, nil
}

// Connection is the live client of one cluster, with its server version. Doubt is why its identity is
// unverified, or "".
type Connection struct {
	client.Client
	discovery.ServerVersionInterfaceWithContext
	Doubt string

	taken chan struct{} // a place for each page that is being read
}

// unverified returns why another host on the path could impersonate the API server, or "".
func unverified(config *rest.Config) string {
	switch {
	case strings.HasPrefix(config.Host, "http://"):
		return "it is spoken to over plain HTTP"
	case config.Insecure:
		return "its certificate is not verified (insecure-skip-tls-verify)"
	}
	return ""
}
