package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/stsmigrate/stsmigrate/clusters"
)

const (
	// mostOfAnAnswer is how many bytes an answer of a cluster of a Secret may have, and one event of
	// a watch. A list is asked for in pages of 500 objects, which are smaller.
	mostOfAnAnswer = 32 << 20
	// mostOfAnError is how many bytes the Status may have that says why a request is refused.
	mostOfAnError = 1 << 20
)

// Careful returns the config with a transport that follows no redirect and quotes nobody but API
// servers: an answer that is no Status of Kubernetes loses its body, which would otherwise be part
// of an error, and so of journals, events and logs.
func Careful(config *rest.Config) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		_, upgrades := next.(upgrader)
		return careful{next: next, upgrades: upgrades}
	})
	return out
}

// careful looks at answers before anybody else reads them.
type careful struct {
	next http.RoundTripper
	// upgrades says that it is used for streams alone.
	upgrades bool
	// most is how many bytes an answer may have; 0 for any number.
	most int64
}

// toPod matches the path of a request that an API server hands on to a pod. What comes back is the
// pod's answer, and the gate that asked for it reads it as such.
var toPod = regexp.MustCompile(`/api/v1/namespaces/[^/]+/pods/[^/]+/proxy(/|$)`)

// RoundTrip implements http.RoundTripper.
func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, unquoted(r, err)
	}
	code := answer.StatusCode
	switch {
	case code == http.StatusSwitchingProtocols:
		return answer, nil
	case toPod.MatchString(r.URL.EscapedPath()):
		answer.Header.Del("Location") // without one http.Client follows nothing
		return answer, nil
	case code >= 300 && code < 400:
		return nil, drop(answer, fmt.Errorf("%s redirects to %s (HTTP %d), where nobody goes: put the address of the API server itself into the kubeconfig", r.URL.Host, target(answer), code))
	case code >= 400:
		return withoutBody(answer)
	case c.upgrades:
		return nil, drop(answer, errNoStream(r))
	}
	if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); strings.HasPrefix(media, "text/") {
		return nil, drop(answer, fmt.Errorf("%s answers %s: it is no API server of Kubernetes", r.URL.Host, media))
	}
	if c.most > 0 {
		answer.Body = &bounded{ReadCloser: answer.Body, most: c.most, host: r.URL.Host, lines: watches(r)}
	}
	return answer, nil
}

// unquoted is an error without what came back instead of a stream. A Status stays.
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

// watches reports whether a request is one for a stream of events, which has no end. API servers
// write every event in a line. In the other formats client-go has a limit of its own.
func watches(r *http.Request) bool {
	on, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && on
}

// drop closes an answer that nobody reads.
func drop(answer *http.Response, why error) error {
	_ = answer.Body.Close() // nobody wants it
	return why
}

// target is where a redirect points to, as far as people may know: paths and parameters are the
// secrets of somebody else.
func target(answer *http.Response) string {
	to, err := answer.Location()
	if err != nil {
		return "no address"
	}
	return fmt.Sprintf("%.300q", to.Scheme+"://"+to.Host)
}

// withoutBody lets a Status through, and says of anything else only that it came.
func withoutBody(answer *http.Response) (*http.Response, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, mostOfAnError))
	if err := drop(answer, err); err != nil {
		return nil, err
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if _, status := o.(*metav1.Status); err != nil || !status {
		raw = fmt.Appendf(nil, "HTTP %d (%s), and nothing that an API server of Kubernetes answers", answer.StatusCode, http.StatusText(answer.StatusCode))
		answer.Header.Set("Content-Type", "text/plain")
	}
	answer.Header.Del("Content-Length")
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return answer, nil
}

// bounded is a body that ends with an error when it is too long, or, where it has lines, when one
// of them is.
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
