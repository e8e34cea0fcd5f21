package transport_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
)

// A login that is not accepted is said with whose it is and how it is renewed, and never with what it is.
func TestALoginThatIsNotAcceptedSaysWhatToDo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "go away: my-token", http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("my-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config rest.Config
		want   string
	}{
		"a token":        {rest.Config{BearerToken: "my-token"}, "stop this process, and `resume`"},
		"a file":         {rest.Config{BearerTokenFile: file}, "renew the token in file " + file},
		"no credentials": {rest.Config{}, "renew it in the kubeconfig"},
	} {
		c.config.Host = s.URL
		on := kubernetes.NewForConfigOrDie(transport.CarefulOf("context west (user anna of the kubeconfig)", &c.config))
		_, err := on.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
		if !apierrors.IsUnauthorized(err) || !strings.Contains(err.Error(), "does not accept the login of context west (user anna of the kubeconfig) (HTTP 401)") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "my-token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	program := transport.LoginOf("context west", &rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: "aws"}})
	if !strings.Contains(program.Renew, "(program aws)") {
		t.Errorf("%+v", program)
	}
}

// answering is an API server that knows one token.
type answering func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// A token that comes from a file is read again, within a minute.
func TestATokenFileIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := answering(func(r *http.Request) *http.Response {
			w := httptest.NewRecorder()
			if w.Header().Set("Content-Type", "application/json"); r.Header.Get("Authorization") != "Bearer new" {
				w.WriteHeader(http.StatusUnauthorized)
			} else {
				_ = json.NewEncoder(w).Encode(corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}})
			}
			return w.Result()
		})
		file := filepath.Join(t.TempDir(), "token")
		write := func(token string) {
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		on := kubernetes.NewForConfigOrDie(transport.Careful(&rest.Config{Host: "http://east", BearerTokenFile: file, Transport: server}))
		read := func() error {
			_, err := on.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{})
			return err
		}
		if err := read(); !apierrors.IsUnauthorized(err) {
			t.Fatalf("with the old one: %v", err)
		}
		write("new")
		<-time.After(time.Minute)
		if err := read(); err != nil {
			t.Errorf("with the new one: %v", err)
		}
	})
}

// A 404 is about an object only if it names one. Else the kind is not served (yet), or something in front of the API server
// answers, and nobody may take the object for gone. Discovery learns from a 404 what there is not.
func TestA404ThatNamesNoObjectDoesNotSayThatItIsGone(t *testing.T) {
	status := func(details *metav1.StatusDetails) string {
		raw, err := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "not found", Details: details})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	for name, c := range map[string]struct {
		body string
		gone bool
	}{
		"the object is gone":         {status(&metav1.StatusDetails{Name: "web-0", Kind: "pods"}), true},
		"the path is not known":      {"404 page not found", false},
		"a proxy answers":            {"<html>no route</html>", false},
		"the resource is not served": {status(&metav1.StatusDetails{}), false},
		"it says nothing":            {status(nil), false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(c.body))
		}))
		on := kubernetes.NewForConfigOrDie(transport.Careful(&rest.Config{Host: s.URL}))
		_, err := on.CoreV1().Pods("shop").Get(t.Context(), "web-0", metav1.GetOptions{})
		if apierrors.IsNotFound(err) != c.gone || meta.IsNoMatchError(err) == c.gone || (answers.Of(err) == answers.Passing) == c.gone {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := on.Discovery().ServerResourcesForGroupVersion("apps/v1"); !apierrors.IsNotFound(err) {
			t.Errorf("%s, when asked what there is: %v", name, err)
		}
		s.Close()
	}
}
