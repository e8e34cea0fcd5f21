package gates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Prober sends questions to pods.
type Prober interface {
	// Ask asks once. An error means that there was no answer. Its text is bounded, and of the pod's output it
	// contains at most the last line of a command's standard error (S16).
	Ask(context.Context, Question) (Answer, error)
	// Now is the clock for timeouts and intervals.
	Now() time.Time
}

// Question is a command in a container, or a request to a port.
type Question struct {
	Side           plans.Side // the cluster that the pod is in
	Namespace, Pod string
	// Container and Command are set for a command.
	Container string
	Command   []string
	// Get is set for a request; its port is a number.
	Get *corev1.HTTPGetAction
}

// Answer is the result of a question.
type Answer struct {
	// Code is the exit code or the HTTP status.
	Code int
	// Body is the standard output, or the first MiB of the response body. Of a standard output larger than 2
	// MiB, only the first and the last MiB are kept. Body is searched, never shown.
	Body string
	// Complaint is the last line of the standard error, or the API server's message about a pod that it could
	// not reach.
	Complaint string
}

const (
	most     = 1 << 20 // bytes of an answer that are kept
	mostSaid = 300     // runes of an answer that are shown
)

// Through returns the Prober that sends its questions through the API servers: the pod network need not be
// reachable from here.
func Through(configs map[plans.Side]*rest.Config, now func() time.Time) Prober {
	return server{configs, now}
}

type server struct {
	configs map[plans.Side]*rest.Config
	now     func() time.Time
}

// Now implements Prober.
func (s server) Now() time.Time { return s.now() }

// Ask implements Prober.
func (s server) Ask(ctx context.Context, q Question) (Answer, error) {
	config := s.configs[q.Side]
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Answer{}, err
	}
	if q.Get != nil {
		return get(ctx, config, set.CoreV1().RESTClient(), q)
	}
	return run(ctx, config, set.CoreV1().RESTClient(), q)
}

// run executes a command over a WebSocket, or over SPDY if something on the way does not support WebSockets.
func run(ctx context.Context, config *rest.Config, api rest.Interface, q Question) (Answer, error) {
	at := api.Post().Namespace(q.Namespace).Resource("pods").Name(q.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: q.Container, Command: q.Command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at)
	if err != nil {
		return Answer{}, err
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	if err != nil {
		return Answer{}, err
	}
	either, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return Answer{}, err
	}
	var out, complaint bounded
	err = either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaint})
	a := Answer{Body: out.String(), Complaint: lastLine(complaint.String())}
	var code exec.ExitError
	switch {
	case errors.As(err, &code) && code.Exited():
		a.Code = code.ExitStatus()
		return a, nil
	case err != nil:
		return a, errors.New(shorten(err.Error()))
	}
	return a, nil
}

// get sends a request through the proxy of the API server. It follows no redirect: a pod could direct the
// credentials of this process to any address.
func get(ctx context.Context, config *rest.Config, api rest.Interface, q Question) (Answer, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return Answer{}, err
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	path, query, _ := strings.Cut(q.Get.Path, "?")
	pod := Proxied(q.Pod, q.Get)
	at := api.Get().Namespace(q.Namespace).Resource("pods").Name(pod).SubResource("proxy").URL()
	// The path is sent as it is written, but always begins with a slash, even if it is empty. Without one
	// the API server itself would answer with a redirect to "/", and the request would not reach the pod.
	at.Path = strings.TrimSuffix(at.Path, "/") + "/" + strings.TrimPrefix(path, "/")
	at.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return Answer{}, err
	}
	for _, h := range q.Get.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
	}
	response, err := c.Do(request)
	if err != nil {
		return Answer{}, errors.New(shorten(err.Error()))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return Answer{}, errors.New(shorten(err.Error()))
	}
	a := Answer{Code: response.StatusCode, Body: string(body)}
	// The API server reports in a Status why it could not reach the pod.
	var status metav1.Status
	if a.Code >= http.StatusBadRequest && json.Unmarshal(body, &status) == nil && status.Kind == "Status" {
		a.Complaint = shorten(status.Message)
	}
	return a, nil
}

// Proxied returns the name of a pod's port for the proxy of the API server and for a Role, or "" while only
// the name of the port is known.
func Proxied(pod string, get *corev1.HTTPGetAction) string {
	if get.Port.Type == intstr.String {
		return ""
	}
	return fmt.Sprintf("%s:%s:%s", strings.ToLower(string(get.Scheme)), pod, get.Port.String())
}

// bounded keeps the first MiB of what is written to it, and the last MiB beyond that. A cancelled stream may
// continue to write for a while.
type bounded struct {
	mu          sync.Mutex
	first, last bytes.Buffer
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), most-b.first.Len())
	b.first.Write(p[:n])
	if b.last.Write(p[n:]); b.last.Len() > most {
		b.last.Next(b.last.Len() - most)
	}
	return len(p), nil
}

// String returns the kept bytes.
func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first.String() + b.last.String()
}

// lastLine returns the last line that is not blank.
func lastLine(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	return shorten(s[strings.LastIndexByte(s, '\n')+1:])
}

// shorten makes untrusted text fit for a message.
func shorten(s string) string {
	runes := []rune(plans.Line(s))
	if len(runes) > mostSaid {
		return string(runes[:mostSaid]) + "..."
	}
	return string(runes)
}
