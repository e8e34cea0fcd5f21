package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
)

const (
	// MaxAnswerBytes limits one response from a cluster of a Secret, and one event of a watch. A list is read in
	// pages of 500 objects, which are smaller.
	MaxAnswerBytes = 32 << 20
	// maxErrorBytes limits the Status of a refused request.
	maxErrorBytes = 1 << 20
	// maxAnswerTime limits one response, the beginning of a watch, and how long a watch goes on beyond its time. An API
	// server gives a request up after a minute; what does not answer for longer is something between, and the request
	// would keep its plan for ever.
	maxAnswerTime = 2 * time.Minute
	// retryAfter is the header with the seconds after which a server wants to be asked again. The client waits for as
	// long, up to ten times, and says nothing. A server that wants more than maxRetryAfter has refused the request: it
	// is reported, and tried again with the pauses of its caller (L3).
	retryAfter    = "Retry-After"
	maxRetryAfter = 2
)

// Upgrader is a transport for commands in pods. It makes a new connection for every command and does not use
// the dialer.
type Upgrader interface {
	http.RoundTripper
	utilnet.TLSClientConfigHolder
}

// Careful returns the config with a transport that follows no redirect and quotes only API servers. A
// response that is no Status of Kubernetes loses its body. Otherwise the body would be part of an error,
// and so of journals, events and logs.
func Careful(config *rest.Config) *rest.Config { return CarefulOf("", config) }

// CarefulOf is Careful. A refusal of the login says whose it is.
func CarefulOf(whose string, config *rest.Config) *rest.Config {
	out, login := rest.CopyConfig(config), LoginOf(whose, config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		_, upgrades := next.(Upgrader)
		return careful{next: next, upgrades: upgrades, login: login}
	})
	return out
}

// Bounded returns a transport that also limits each response to MaxAnswerBytes.
func Bounded(next http.RoundTripper) http.RoundTripper { return BoundedOf(Login{}, next) }

// BoundedOf is Bounded. A refusal of the login says whose it is.
func BoundedOf(whose Login, next http.RoundTripper) http.RoundTripper {
	return careful{next: next, most: MaxAnswerBytes, login: whose}
}

// Streaming returns a transport for streams only, which have no end and so no limit.
func Streaming(next http.RoundTripper) http.RoundTripper { return careful{next: next, upgrades: true} }

// careful filters responses before any client reads them.
type careful struct {
	next http.RoundTripper
	// upgrades reports that the transport is used for streams only.
	upgrades bool
	// most limits the bytes of a response; 0 means no limit.
	most  int64
	login Login
}

// toPod matches the path of a request that an API server forwards to a pod. The response is the pod's,
// and the gate that sent the request reads it as such.
var toPod = regexp.MustCompile(`/api/v1/namespaces/[^/]+/pods/[^/]+/proxy(/|$)`)

// toObjects matches the path of a request for objects. The others are about what an API server has at all.
var toObjects = regexp.MustCompile(`/(api/[^/]+|apis/[^/]+/[^/]+)/[^/]`)

// RoundTrip implements http.RoundTripper.
func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.upgrades {
		return c.judged(r)
	}
	late := fmt.Errorf("%s has not answered for %s", r.URL.Host, maxAnswerTime)
	ctx, end := context.WithCancelCause(r.Context())
	limit := time.AfterFunc(maxAnswerTime, func() { end(late) })
	answer, err := c.judged(r.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), late) {
			err = late
		}
		limit.Stop()
		end(nil)
		return nil, err
	}
	if watches(r) && limit.Stop() {
		if lasts, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil && lasts > 0 {
			limit.Reset(time.Duration(lasts)*time.Second + maxAnswerTime)
		}
	}
	answer.Body = &ending{answer.Body, func() { limit.Stop(); end(nil) }}
	return answer, nil
}

// ending is the body of a response whose time is limited.
type ending struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// judged returns the response if a program may read it.
func (c careful) judged(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(tried(r))
	if err != nil {
		return nil, unquoted(r, err)
	}
	code := answer.StatusCode
	if wanted, err := strconv.Atoi(answer.Header.Get(retryAfter)); err == nil && wanted > maxRetryAfter {
		answer.Header.Del(retryAfter)
	}
	switch {
	case code == http.StatusSwitchingProtocols:
		return answer, nil
	case toPod.MatchString(r.URL.EscapedPath()):
		answer.Header.Del(retryAfter) // what an application answers is the answer
		answer.Header.Del("Location") // without it http.Client follows no redirect
		return answer, nil
	case code >= 300 && code < 400:
		return nil, drop(answer, fmt.Errorf("%s redirects to %s (HTTP %d), and redirects are not followed: put the address of the API server itself into the kubeconfig", r.URL.Host, target(answer), code))
	case code == http.StatusUnauthorized:
		return c.login.refused(r, answer)
	case code >= 400:
		return withoutBody(r, answer)
	case c.upgrades:
		return nil, drop(answer, errNoStream(r))
	}
	if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); strings.HasPrefix(media, "text/") && media != schemas(r) {
		return nil, drop(answer, fmt.Errorf("%s answers %s: it is no API server of Kubernetes", r.URL.Host, media))
	}
	if c.most > 0 {
		answer.Body = &bounded{ReadCloser: answer.Body, most: c.most, host: r.URL.Host, lines: watches(r)}
		answer.Body = weighed(r, answer, c.most)
	}
	return answer, nil
}

// unquoted returns the error without the response that came instead of a stream. A Status stays.
func unquoted(r *http.Request, err error) error {
	var failure *httpstream.UpgradeFailureError
	if errors.As(err, &failure) && !errors.As(failure.Cause, new(*apierrors.StatusError)) {
		return errNoStream(r)
	}
	return err
}

func errNoStream(r *http.Request) error {
	return &httpstream.UpgradeFailureError{Cause: fmt.Errorf("%s answers, and not with a stream", r.URL.Host)}
}

// schemas returns the media type of the list of published schemas if the request is for it, and nothing else.
// API servers write the list as JSON and call it text.
func schemas(r *http.Request) string {
	if strings.HasSuffix(r.URL.Path, "/openapi/v3") {
		return "text/plain"
	}
	return ""
}

// watches reports whether a request opens a stream of events, which has no end. API servers write one
// event per line. For the other formats client-go has a limit of its own.
func watches(r *http.Request) bool {
	on, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && on
}

// drop closes a response without reading it, and returns why.
func drop(answer *http.Response, why error) error {
	_ = answer.Body.Close() // the body is not needed
	return why
}

// target returns where a redirect points to, reduced to scheme and host: paths and parameters may be
// secrets.
func target(answer *http.Response) string {
	to, err := answer.Location()
	if err != nil {
		return "no address"
	}
	return fmt.Sprintf("%.300q", to.Scheme+"://"+to.Host)
}

// withoutBody keeps a Status, and replaces any other body by a note with the HTTP code. A 404 that says nothing of an
// object is no answer about the object.
func withoutBody(r *http.Request, answer *http.Response) (*http.Response, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBytes))
	if err := drop(answer, err); err != nil {
		return nil, err
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	said, status := o.(*metav1.Status)
	names := err == nil && status && said.Details != nil && said.Details.Name != ""
	if answer.StatusCode == http.StatusNotFound && !names && toObjects.MatchString(r.URL.EscapedPath()) {
		return nil, answers.ErrNoKind{Host: r.URL.Host, Path: r.URL.Path}
	}
	if err != nil || !status {
		raw = fmt.Appendf(nil, "HTTP %d (%s), and the body is no response of a Kubernetes API server", answer.StatusCode, http.StatusText(answer.StatusCode))
		answer.Header.Set("Content-Type", "text/plain")
	}
	return with(answer, raw), nil
}

// with gives a response another body.
func with(answer *http.Response, raw []byte) *http.Response {
	answer.Header.Del("Content-Length")
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return answer
}

// bounded is a body whose Read fails when the body is too long or, with lines, when one of its lines is.
type bounded struct {
	io.ReadCloser
	most, read int64
	host       string
	lines      bool
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.lines {
		if k := bytes.LastIndexByte(p[:n], '\n'); k >= 0 {
			b.read = int64(n - k - 1)
		}
	}
	if b.read > b.most {
		return 0, clusters.ErrTooLong{Host: b.host, Most: b.most}
	}
	return n, err
}
