package writes

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const ahead = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"5","generation":1},
"spec":{"replicas":3,"futureSet":"set","serviceName":"web","selector":{"matchLabels":{"app":"web"}},
"template":{"metadata":{"labels":{"app":"web"}},"spec":{"futurePod":{"precious":"yes"},"containers":[{"name":"c","image":"old","futureContainer":1}]}}},
"status":{"observedGeneration":1,"replicas":3,"futureStatus":1}}`

// server returns a client of an API server that is newer than this program and has one set. sent
// returns the last write request.
func server(t *testing.T) (on client.Client, sent func() string) {
	t.Helper()
	var last string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			last = r.Method + " " + r.Header.Get("Content-Type") + " " + r.URL.RequestURI() + " " + string(body)
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(w, ahead); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	on, err := client.New(&rest.Config{Host: s.URL}, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return on, func() string { return last }
}

func theSet(t *testing.T, on client.Client) *appsv1.StatefulSet {
	t.Helper()
	var set appsv1.StatefulSet
	if err := on.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &set); err != nil {
		t.Fatal(err)
	}
	return &set
}

func TestANewerServerIsSentOnlyWhatChanges(t *testing.T) {
	on, sent := server(t)
	set := theSet(t, on)
	next := set.DeepCopy()
	next.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 2}
	if err := Change(t.Context(), on, set, next); err != nil {
		t.Fatal(err)
	}
	want := `PATCH application/merge-patch+json /apis/apps/v1/namespaces/shop/statefulsets/web {"metadata":{"resourceVersion":"5","uid":"u"},"spec":{"ordinals":{"start":2}}}`
	if sent() != want {
		t.Errorf("%s, expected %s", sent(), want)
	}
}

func TestACopyHasWhatIsNotKnownOfItsModel(t *testing.T) {
	on, sent := server(t)
	set := theSet(t, on)
	next := &appsv1.StatefulSet{Spec: *set.Spec.DeepCopy()}
	next.Namespace, next.Name, next.Annotations = "mall", "web", map[string]string{"ours": "yes"}
	next.Spec.Replicas = new(int32)
	next.Spec.Template.Spec.Containers[0].Image = "new"
	if err := Copy(t.Context(), on, set, on, next); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"POST application/json /apis/apps/v1/namespaces/mall/statefulsets?fieldValidation=Strict ", `"kind":"StatefulSet"`, `"replicas":0`, `"image":"new"`, `"ours":"yes"`,
		`"futureSet":"set"`, `"futurePod":{"precious":"yes"}`, `"futureContainer":1`,
	}
	for _, w := range want {
		if !strings.Contains(sent(), w) {
			t.Errorf("%s, expected %s in it", sent(), w)
		}
	}
	for _, w := range []string{`"uid"`, "resourceVersion", "futureStatus"} {
		if strings.Contains(sent(), w) {
			t.Errorf("%s, expected no %s in it", sent(), w)
		}
	}
	if next.UID != "u" || next.Spec.Template.Spec.Containers[0].Image != "old" {
		t.Errorf("%+v, expected what the server answered", next)
	}
}

func TestACopyOfAnotherObjectIsRefused(t *testing.T) {
	on, sent := server(t)
	set := theSet(t, on)
	set.UID = "older"
	if err := Copy(t.Context(), on, set, on, set.DeepCopy()); err == nil || sent() != "" {
		t.Errorf("%v, and %q was sent", err, sent())
	}
}
