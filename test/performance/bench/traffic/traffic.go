// Package traffic counts the requests of a program to API servers.
package traffic

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
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// Call is one request to an API server.
type Call struct {
	Verb, Resource string
	Kind           Kind
	At             time.Time
	Took           time.Duration
	Bytes          int64 // of the body of the answer, as sent: API servers compress large ones
}

// Kind is how a request is counted.
type Kind int

// The kinds of requests.
const (
	Read   Kind = iota
	Write       // changes the state of a cluster
	Review      // queries the permissions of the user, by POST
	Trial       // a write that is a dry run
)

// Counter is a proxy between a client and the API servers, on loopback. It records every request
// except watches, of which it counts the bytes. The client uses the counter's kubeconfig.
type Counter struct {
	mu      sync.Mutex
	calls   []Call
	watched atomic.Int64 // bytes
	servers []*http.Server
}

// Listen starts a proxy for each cluster and writes the kubeconfig, whose current context is the
// first cluster.
func Listen(ctx context.Context, kubeconfig string, clusters ...*cluster.Cluster) (*Counter, error) {
	all := make([]Server, 0, len(clusters))
	for _, k := range clusters {
		all = append(all, Server{Name: k.Name, Config: k.Config()})
	}
	return Before(ctx, kubeconfig, all...)
}

// Server is an API server before which a proxy stands, by the name of its context.
type Server struct {
	Name   string
	Config *rest.Config
}

// Before is Listen for API servers of any kind.
func Before(ctx context.Context, kubeconfig string, servers ...Server) (*Counter, error) {
	c := &Counter{}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = servers[0].Name
	for _, k := range servers {
		address, err := c.serve(ctx, k.Config)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		config.Clusters[k.Name] = &clientcmdapi.Cluster{Server: "http://" + address}
		config.Contexts[k.Name] = &clientcmdapi.Context{Cluster: k.Name}
	}
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// serve starts the proxy of one cluster. The proxy has the credentials, so the client needs none.
func (c *Counter) serve(ctx context.Context, config *rest.Config) (address string, err error) {
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
		// A client that has disconnected is not worth a log line.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, k := time.Now(), classify(r.Method, r.URL)
		answer := &counted{ResponseWriter: w}
		if k.Verb == "watch" {
			answer.watched = &c.watched
		}
		proxy.ServeHTTP(answer, r)
		k.Bytes = answer.bytes
		c.note(k, start)
	})}
	c.servers = append(c.servers, server)
	go func() { _ = server.Serve(listener) }() // ends with Close
	return listener.Addr().String(), nil
}

func (c *Counter) note(k Call, start time.Time) {
	if k.Verb == "watch" {
		return // a watch ends when the client ends
	}
	k.At, k.Took = start, time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, k)
}

// counted is an answer whose bytes are counted.
type counted struct {
	http.ResponseWriter
	bytes   int64
	watched *atomic.Int64 // nil unless the request is a watch
}

func (a *counted) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	if a.watched != nil {
		a.watched.Add(int64(n)) // now: a watch ends when the client ends
	}
	return n, err
}

// Unwrap is for http.ResponseController, which flushes the events of a watch.
func (a *counted) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// TakeWatched returns the bytes that watches have delivered since the previous call of TakeWatched.
func (c *Counter) TakeWatched() int64 { return c.watched.Swap(0) }

// Take returns the requests since the previous call of Take.
func (c *Counter) Take() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// Close stops the proxies.
func (c *Counter) Close() error {
	var err error
	for _, s := range c.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}

// classify returns the verb, resource and kind of a request, from its method and URL.
func classify(method string, u *url.URL) Call {
	resource, name := target(u.Path)
	query := u.Query()
	switch {
	case method == http.MethodGet && (query.Get("watch") == "true" || query.Get("watch") == "1"):
		return Call{Verb: "watch", Resource: resource}
	case method == http.MethodGet && name == "":
		return Call{Verb: "list", Resource: resource}
	case method == http.MethodGet:
		return Call{Verb: "get", Resource: resource}
	}
	k := Call{Verb: verbs()[method], Resource: resource, Kind: Write}
	switch {
	case strings.HasSuffix(resource, "accessreviews"), resource == "selfsubjectrulesreviews", resource == "selfsubjectreviews":
		k.Kind = Review
	case query.Has("dryRun"):
		k.Kind = Trial
	}
	return k
}

func verbs() map[string]string {
	return map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	}
}

// target returns the resource and the name in a path such as
// /apis/apps/v1/namespaces/shop/statefulsets/web. For a path that is not under a resource
// (discovery), both are the path itself.
func target(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	i := slices.Index([]string{"api", "", "apis"}, parts[0]) // i/2: path parts of the API group
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
