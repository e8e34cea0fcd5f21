package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stsmigrate/stsmigrate/test/cluster"
)

// call is one request to an API server.
type call struct {
	verb, resource string
	kind           callKind
	at             time.Time
	took           time.Duration
}

// callKind says what a request is to the count.
type callKind int

const (
	aRead   callKind = iota
	aWrite           // changes the state of a cluster
	aReview          // asks what the user may do, by POST
	aTrial           // a write that the API server only tries out
)

// counter stands between a client and the API servers, on loopback, and notes
// every request. The client uses the counter's kubeconfig.
type counter struct {
	mu      sync.Mutex
	calls   []call
	servers []*http.Server
}

// newCounter starts a proxy for each cluster and writes the kubeconfig.
func newCounter(ctx context.Context, kubeconfig string, clusters ...*cluster.Cluster) (*counter, error) {
	c := &counter{}
	config := clientcmdapi.NewConfig()
	for _, k := range clusters {
		address, err := c.serve(ctx, k.Config())
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		config.Clusters[k.Name] = &clientcmdapi.Cluster{Server: "http://" + address}
		config.Contexts[k.Name] = &clientcmdapi.Context{Cluster: k.Name}
	}
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// serve starts the proxy of one cluster. It has the credentials, so the client
// needs none.
func (c *counter) serve(ctx context.Context, config *rest.Config) (address string, err error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return "", err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // events of a watch must not wait for the next one
		// A client that went away is not worth a line.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		proxy.ServeHTTP(w, r)
		c.note(classify(r.Method, r.URL), start)
	})}
	c.servers = append(c.servers, server)
	go func() { _ = server.Serve(listener) }() // ends with close
	return listener.Addr().String(), nil
}

func (c *counter) note(k call, start time.Time) {
	if k.verb == "watch" {
		return // it is over when the client is
	}
	k.at, k.took = start, time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, k)
}

// take returns the requests since the last take.
func (c *counter) take() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

func (c *counter) close() error {
	var err error
	for _, s := range c.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}

// classify tells from method and address what a request is.
func classify(method string, u *url.URL) call {
	resource, name := target(u.Path)
	query := u.Query()
	switch {
	case method == http.MethodGet && (query.Get("watch") == "true" || query.Get("watch") == "1"):
		return call{verb: "watch", resource: resource}
	case method == http.MethodGet && name == "":
		return call{verb: "list", resource: resource}
	case method == http.MethodGet:
		return call{verb: "get", resource: resource}
	}
	k := call{verb: verbs()[method], resource: resource, kind: aWrite}
	switch {
	case strings.HasSuffix(resource, "accessreviews"):
		k.kind = aReview
	case query.Has("dryRun"):
		k.kind = aTrial
	}
	return k
}

func verbs() map[string]string {
	return map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
}

// target gives the resource and the name in a path such as
// /apis/apps/v1/namespaces/shop/statefulsets/web. What is not under a resource
// (discovery) has the path itself for a resource.
func target(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	i := slices.Index([]string{"api", "", "apis"}, parts[0]) // so many parts besides the version
	if i < 0 || len(parts) < 3+i/2 {
		return path, path
	}
	parts = parts[2+i/2:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	return parts[0], name
}
