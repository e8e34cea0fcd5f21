package transport

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/writes"
)

// A proxy may drop the body of a DELETE, and with it that the deletion is a dry run of exactly one object. The address says
// that it is a dry run too, and only then.
func TestADeletionThatIsTriedSaysSoInItsAddressToo(t *testing.T) {
	var query, body string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			query, body = r.URL.RawQuery, string(raw)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}))
	defer api.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	through, err := rest.HTTPClientFor(Careful(&rest.Config{Host: api.URL}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, client.Options{HTTPClient: through, Scheme: clusters.Scheme(), Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	seen := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "5"}}
	for name, one := range map[string]struct {
		send func(context.Context) error
		dry  bool
	}{
		"tried":   {func(ctx context.Context) error { return writes.TryDelete(ctx, c, seen.DeepCopy()) }, true},
		"deleted": {func(ctx context.Context) error { return writes.Delete(ctx, c, seen.DeepCopy()) }, false},
	} {
		query, body = "", ""
		if err := one.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(query, "dryRun=All") != one.dry || strings.Contains(body, `"dryRun":["All"]`) != one.dry || !strings.Contains(body, `"uid":"u","resourceVersion":"5"`) {
			t.Errorf("%s: address %q, body %s", name, query, body)
		}
	}
}
