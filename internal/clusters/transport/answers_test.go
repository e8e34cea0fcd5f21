package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
)

// A server that wants to be asked again in an hour does not stop a process for an hour: the refusal is reported, and its
// caller tries again. A second is waited for, as always.
func TestAServerThatWantsALongPauseHasRefused(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		after   string
		refused bool
	}{
		"too many requests, for an hour": {http.StatusTooManyRequests, "3600", true},
		"it is away, for a minute":       {http.StatusServiceUnavailable, "60", true},
		"too many requests, for now":     {http.StatusTooManyRequests, "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if asked++; asked == 1 {
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(c.code)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Code: int32(c.code)})
					return
				}
				_ = json.NewEncoder(w).Encode(corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}})
			}))
			t.Cleanup(s.Close)
			on := kubernetes.NewForConfigOrDie(transport.Careful(&rest.Config{Host: s.URL}))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := on.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
			if apierrors.IsTooManyRequests(err) != c.refused || !c.refused && (err != nil || asked != 2) || ctx.Err() != nil {
				t.Errorf("%v after %d requests; expected a refusal: %t", err, asked, c.refused)
			}
		})
	}
}

// silent accepts requests and answers none, or begins an answer and goes on with none.
type silent struct{ begins bool }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.begins {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(never{r.Context()})}, nil
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

type never struct{ ctx context.Context } //nolint:containedctx // it is that of the request

func (n never) Read([]byte) (int, error) {
	<-n.ctx.Done()
	return 0, n.ctx.Err()
}

// A request that is accepted and never answered, such as by a proxy that has lost it, is given up. A watch that is silent
// is given up some time after its server should have ended it.
func TestARequestThatIsNeverAnsweredIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		query  string
		begins bool
		after  time.Duration
		why    string
	}{
		"no answer":              {"", false, 2 * time.Minute, "east has not answered for 2m0s"},
		"half an answer":         {"", true, 2 * time.Minute, "context canceled"},
		"a watch without answer": {"?watch=true&timeoutSeconds=300", false, 2 * time.Minute, "east has not answered for 2m0s"},
		"a silent watch":         {"?watch=true&timeoutSeconds=300", true, 7 * time.Minute, "context canceled"},
		"a watch without an end": {"?watch=true", true, time.Hour, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://east/api/v1/pods"+c.query, nil)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now() //nolint:forbidigo // that of the bubble
				answer, err := transport.Bounded(silent{c.begins}).RoundTrip(r)
				if err == nil {
					_, err = io.ReadAll(answer.Body)
					_ = answer.Body.Close()
				}
				if took := time.Since(began); err == nil || !strings.Contains(err.Error(), c.why) || took != c.after {
					t.Errorf("it ends after %s with %v", took, err)
				}
			})
		})
	}
}

// What an application answers to a gate is its answer, whenever it wants to be asked again.
func TestThePauseOfAnApplicationIsNotWaitedFor(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "1")
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	on := kubernetes.NewForConfigOrDie(transport.Careful(&rest.Config{Host: s.URL}))
	_, err := on.CoreV1().Pods("shop").ProxyGet("http", "web-0", "8080", "/ready", nil).DoRaw(t.Context())
	if asked != 1 || err == nil || !strings.Contains(err.Error(), "not yet") && !apierrors.IsServiceUnavailable(err) {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// API servers call their list of published schemas text/plain. No other response may be text, and a page of a
// login is none of theirs.
func TestTheListOfPublishedSchemasMayBeText(t *testing.T) {
	listed := func(_ context.Context, on kubernetes.Interface) error {
		paths, err := on.Discovery().OpenAPIV3().Paths()
		if err == nil && paths["apis/apps/v1"] == nil {
			return fmt.Errorf("read %v", paths)
		}
		return err
	}
	pod := func(ctx context.Context, on kubernetes.Interface) error {
		_, err := on.CoreV1().Pods("shop").Get(ctx, "web-0", metav1.GetOptions{})
		return err
	}
	for name, c := range map[string]struct {
		prefix, media string
		read          func(context.Context, kubernetes.Interface) error
		refused       string
	}{
		"of an API server":       {"", "text/plain; charset=utf-8", listed, ""},
		"behind a path":          {"/k8s/clusters/east", "text/plain; charset=utf-8", listed, ""},
		"the page of a login":    {"", "text/html", listed, "answers text/html: it is no API server of Kubernetes"},
		"text in place of a pod": {"", "text/plain; charset=utf-8", pod, "answers text/plain: it is no API server of Kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.media)
				_, _ = w.Write([]byte(`{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1"}}}`))
			}))
			t.Cleanup(s.Close)
			on := kubernetes.NewForConfigOrDie(transport.Careful(&rest.Config{Host: s.URL + c.prefix}))
			err := c.read(t.Context(), on)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v, expected %q", err, c.refused)
			}
		})
	}
}
