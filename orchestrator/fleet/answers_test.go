package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
)

// server returns an API server with TLS, and the kubeconfig for it.
func server(t *testing.T, answer http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	return s, reaching(s, canary)
}

func reaching(s *httptest.Server, token string) string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	raw := string(kubeconfig("    certificate-authority-data: "+ca, ""))
	return strings.NewReplacer("https://east.example:6443", s.URL, canary, token).Replace(raw)
}

// byName returns the kubeconfig with a host name as address that the server's certificate does not have.
func byName(kubeconfig string) string {
	return strings.NewReplacer("https://127.0.0.1", "https://localhost", "    server:", "    tls-server-name: example.com\n    server:").Replace(kubeconfig)
}

func testFleet(loopback bool) *Fleet {
	return New(Setup{Home: &rest.Config{Host: "https://home"}, Own: "own", Limits: Limits{QPS: 1000, Burst: 1000}, Agent: "test", Loopback: loopback})
}

// connected adds a cluster to a fleet and connects to it.
func connected(t *testing.T, kubeconfig string) *End {
	t.Helper()
	f := testFleet(true)
	if err := f.Learn(secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": kubeconfig})); err != nil {
		t.Fatal(err)
	}
	c, err := f.Find("prod", "uid")
	if err != nil {
		t.Fatal(err)
	}
	end, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// ways returns every way in which a cluster is accessed.
func ways(t *testing.T, end *End) map[string]func(context.Context) error {
	t.Helper()
	set, err := kubernetes.NewForConfig(end.Config)
	if err != nil {
		t.Fatal(err)
	}
	names, err := metadata.NewForConfig(end.Config)
	if err != nil {
		t.Fatal(err)
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	at := set.CoreV1().RESTClient().Post().Namespace("shop").Resource("pods").Name("web-0").SubResource("exec").URL()
	spdy, err := remotecommand.NewSPDYExecutor(end.Config, http.MethodPost, at)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(end.Config, http.MethodGet, at.String())
	if err != nil {
		t.Fatal(err)
	}
	stream := func(e remotecommand.Executor) func(context.Context) error {
		return func(ctx context.Context) error {
			return e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &bytes.Buffer{}})
		}
	}
	return map[string]func(context.Context) error{
		"the client": func(ctx context.Context) error { _, err := clusters.ClusterUID(ctx, end.Client); return err },
		"the clientset": func(ctx context.Context) error {
			_, err := set.CoreV1().Pods("shop").Get(ctx, "web-0", metav1.GetOptions{})
			return err
		},
		"a watch": func(ctx context.Context) error {
			_, err := set.CoreV1().Pods("shop").Watch(ctx, metav1.ListOptions{})
			return err
		},
		"metadata": func(ctx context.Context) error {
			_, err := names.Resource(pods).Namespace("shop").List(ctx, metav1.ListOptions{})
			return err
		},
		"metadata's watch": func(ctx context.Context) error {
			_, err := names.Resource(pods).Namespace("shop").Watch(ctx, metav1.ListOptions{})
			return err
		},
		"a command over SPDY":        stream(spdy),
		"a command over a WebSocket": stream(socket),
	}
}

func TestNobodyFollowsARedirect(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		_, kubeconfig := server(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/latest/meta-data/"+canary, code)
		})
		for way, ask := range ways(t, connected(t, kubeconfig)) {
			err := ask(t.Context())
			if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "meta-data") {
				t.Errorf("%d, %s: %v, expected an error without the path", code, way, err)
			}
			if want := fmt.Sprintf("redirects to %q (HTTP %d)", elsewhere.URL, code); err != nil && !strings.Contains(err.Error(), want) && way != "a command over a WebSocket" {
				t.Errorf("%d, %s: %v, expected it to say that it %s", code, way, err, want)
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("who the redirects name was asked %d times", n)
	}
}

// The response of a pod belongs to the gate that sent the request: a redirect is a response, and is not
// followed.
func TestARedirectOfAPodIsAnAnswer(t *testing.T) {
	_, kubeconfig := server(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/elsewhere") {
			t.Error("it was followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	end := connected(t, kubeconfig)
	through, err := rest.HTTPClientFor(end.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, end.Config.Host+"/api/v1/namespaces/shop/pods/http:web-0:80/proxy/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := through.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusFound {
		t.Errorf("HTTP %d, expected that of the pod", answer.StatusCode)
	}
}

func TestOnlyAPIServersAreQuoted(t *testing.T) {
	status, err := json.Marshal(apierrors.NewForbidden(corev1.Resource("pods"), "web-0", errors.New("no right")).Status())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code       int
		media      string
		body, want string
	}{
		"text":                  {403, "text/plain", canary, "HTTP 403 (Forbidden), and the body is no response of a Kubernetes API server"},
		"a page":                {502, "text/html", "<p>" + canary, "HTTP 502 (Bad Gateway)"},
		"JSON of others":        {403, "application/json", `{"SecretAccessKey": "` + canary + `"}`, "HTTP 403"},
		"no type":               {404, "", canary, ""},
		"a page without errors": {200, "text/html", canary, "answers text/html: it is no API server of Kubernetes"},
		"JSON without errors":   {200, "application/json", `{"SecretAccessKey": "` + canary + `"}`, ""},
		"a string in JSON":      {200, "application/json", `"` + canary + `"`, ""},
		"a Status":              {403, "application/json", string(status), `pods "web-0" is forbidden: no right`},
	} {
		_, kubeconfig := server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.media)
			w.WriteHeader(c.code)
			_, _ = w.Write([]byte(c.body))
		})
		said := 0
		for way, ask := range ways(t, connected(t, kubeconfig)) {
			err := ask(t.Context())
			if c.code == 200 && way == "metadata" {
				continue // no such request is sent before the UID of kube-system was read
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%s, %s: it is quoted: %v", name, way, err)
			}
			if err != nil && strings.Contains(err.Error(), c.want) {
				said++
			}
		}
		if said == 0 {
			t.Errorf("%s: nobody says %q", name, c.want)
		}
	}
}

func TestAnAnswerHasAnEnd(t *testing.T) {
	filler := strings.Repeat("x", 1<<20)
	_, kubeconfig := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "NamespaceList", "apiVersion": "v1", "items": [{"metadata": {"annotations": {"a": "`))
		for range 200 {
			if _, err := w.Write([]byte(filler)); err != nil {
				return
			}
		}
	})
	end := connected(t, kubeconfig)
	set, err := kubernetes.NewForConfig(end.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.AppsV1().StatefulSets("shop").List(t.Context(), metav1.ListOptions{})
	if !errors.As(err, new(clusters.ErrTooLong)) || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("a list without an end: %v", err)
	}
	w, err := set.AppsV1().StatefulSets("shop").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e, more := <-w.ResultChan(); more && e.Type != "ERROR" {
		t.Errorf("an event without an end: %+v", e)
	}
}

// A watch may transfer more bytes than one response may have: the count restarts with every event.
func TestAWatchHasNoEnd(t *testing.T) {
	set := appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{Kind: "StatefulSet", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"a": strings.Repeat("x", 4<<20)}}}
	raw, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": set})
	if err != nil {
		t.Fatal(err)
	}
	const events = 12 // of 4 MiB
	_, kubeconfig := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range events {
			_, _ = w.Write(append(raw, '\n'))
		}
	})
	clients, err := kubernetes.NewForConfig(connected(t, kubeconfig).Config)
	if err != nil {
		t.Fatal(err)
	}
	w, err := clients.AppsV1().StatefulSets("shop").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	n := 0
	for e := range w.ResultChan() {
		if e.Type == "MODIFIED" {
			n++
		}
	}
	if n != events {
		t.Errorf("%d events, expected %d", n, events)
	}
}

func TestOwnClustersAreReadWithCareToo(t *testing.T) {
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
	})
	config := transport.Careful(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	c, err := clusters.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.ClusterUID(t.Context(), c); err == nil || !strings.Contains(err.Error(), `redirects to "http://169.254.169.254"`) {
		t.Errorf("%v", err)
	}
}
