package reach

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"time"
)

// discoveryTimeout limits a request about the kinds that a cluster has. The libraries send these without a context, so
// that a server that never answers would keep a command for ever.
const discoveryTimeout = 32 * time.Second

// aboutKinds matches the path of a request about kinds, of groups, or of the version of the API server.
var aboutKinds = regexp.MustCompile(`^(/.*)?/(api|api/v1|apis|apis/[^/]+/[^/]+|version|openapi/.*)/?$`)

// aboutObjects matches the path of a request about objects, which may be called as they like.
var aboutObjects = regexp.MustCompile(`/(api/v1|apis/[^/]+/[^/]+)/[^/]`)

// discovery ends requests about kinds with the command, and after discoveryTimeout.
type discovery struct {
	next  http.RoundTripper
	ended <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (d discovery) RoundTrip(r *http.Request) (*http.Response, error) {
	if !kinds(r.URL.Path) {
		return d.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), discoveryTimeout)
	go func() {
		select {
		case <-d.ended: // nil, and never, for a caller without an end
			cancel()
		case <-ctx.Done():
		}
	}()
	answer, err := d.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answer.Body = body{answer.Body, cancel}
	return answer, nil
}

func kinds(path string) bool { return aboutKinds.MatchString(path) && !aboutObjects.MatchString(path) }

// body ends the context of a request when all of the answer has been read.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
