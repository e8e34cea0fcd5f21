package gates

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestAGateRequestGoesThroughTheAPIServer(t *testing.T) {
	var got []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the credentials %q went where a pod said", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.String()+" "+r.Header.Get("X-Who"))
		switch {
		case strings.Contains(r.URL.Path, "moved"):
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case strings.Contains(r.URL.Path, "gone"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"error trying to reach service"}`))
		default:
			_, _ = w.Write([]byte("all good"))
		}
	}))
	defer api.Close()
	p := Through(map[plans.Side]*rest.Config{plans.Source: {Host: api.URL, BearerToken: "canary"}}, time.Now) //nolint:forbidigo // the clock that is handed in
	for path, want := range map[string]Answer{
		"/a/b?c=d&e=f": {Code: 200, Body: "all good"},
		"/":            {Code: 200, Body: "all good"}, // without the slash the API server would answer itself
		"/a/":          {Code: 200, Body: "all good"},
		"/moved":       {Code: 302},
		"/gone":        {Code: 503, Complaint: "error trying to reach service"},
	} {
		q := Question{Side: plans.Source, Namespace: "shop", Pod: "web-2", Get: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTPS, HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Who", Value: "me"}},
		}}
		a, err := p.Ask(t.Context(), q)
		if err != nil || a.Code != want.Code || a.Complaint != want.Complaint || want.Body != "" && a.Body != want.Body {
			t.Errorf("%s: got %+v, %v, expected %+v", path, a, err, want)
		}
		if want := "/api/v1/namespaces/shop/pods/https:web-2:8080/proxy" + path + " me"; got[len(got)-1] != want {
			t.Errorf("asked for %s, expected %s", got[len(got)-1], want)
		}
	}
}
