package orchestrator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/orchestrator/fleet"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// consenting returns a cluster with the UID own, whose namespaces consent to a plan if agreed is set. It forbids
// everything else.
func consenting(t *testing.T, p *plans.Plan, agreed *atomic.Bool) *httptest.Server {
	t.Helper()
	kind := func(s string) metav1.TypeMeta { return metav1.TypeMeta{Kind: s, APIVersion: "v1"} }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		say := func(code int, v any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(v)
		}
		fails := func(code int32, reason metav1.StatusReason) {
			say(int(code), metav1.Status{TypeMeta: kind("Status"), Status: "Failure", Reason: reason, Code: code, Message: string(reason), Details: &metav1.StatusDetails{Name: path.Base(r.URL.Path)}})
		}
		switch at := r.URL.Path; {
		case at == "/api":
			say(200, metav1.APIVersions{TypeMeta: kind("APIVersions"), Versions: []string{"v1"}})
		case at == "/apis":
			say(200, metav1.APIGroupList{TypeMeta: kind("APIGroupList")})
		case at == "/api/v1":
			say(200, metav1.APIResourceList{TypeMeta: kind("APIResourceList"), GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "namespaces", Kind: "Namespace"}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
			}})
		case at == "/api/v1/namespaces/kube-system":
			say(200, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-system", "uid": "own"}})
		case !strings.HasSuffix(at, "/configmaps/"+access.ConsentMap):
			fails(403, metav1.StatusReasonForbidden)
		case !agreed.Load():
			fails(404, metav1.StatusReasonNotFound)
		default:
			for _, n := range access.Parties(p) {
				if strings.Contains(at, "/namespaces/"+n.Namespace+"/") {
					say(200, n.Agree(p, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), nil))
					return
				}
			}
			fails(404, metav1.StatusReasonNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// A plan at rest whose names cannot be kept says so. Otherwise the pods that restart lose their names, and
// nobody knows why.
func TestNamesThatCannotBeKeptAreReported(t *testing.T) {
	h, p := fixture(t)
	p.Source.Cluster, p.Destination.Cluster, p.Source.Context, p.Destination.Context = "own", "own", fleet.Home, fleet.Home
	p.Destination.Namespace, p.Hash = "mall", ""
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	store := records.NewStore(h.Live, h.Namespace, p.Name)
	for _, o := range append(h.records(p)[:1], journalOf(p)) {
		if err := h.Live.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	j := journal.New(p)
	j.Detached, j.Epoch, j.Outcome = true, 1, plans.Moved
	if err := store.Create(t.Context(), p, j); err != nil {
		t.Fatal(err)
	}
	var agreed atomic.Bool
	h.Fleet = fleet.New(fleet.Setup{Home: &rest.Config{Host: consenting(t, p, &agreed).URL}, Own: "own", Limits: fleet.Limits{QPS: 1000, Burst: 1000}, Agent: "test"})
	r := &run{orchestrator: h, plan: p, what: keep, stop: make(chan struct{})}
	if err := r.safely(t.Context()); err == nil {
		t.Error("it is tried again at once")
	}
	if j, _, err = store.Journal(t.Context(), p); err != nil || j.WaitingID != reasons.NoConsent || j.Waiting == "" {
		t.Errorf("it waits because of %q [%s], %v", j.Waiting, j.WaitingID, err)
	}
	select {
	case e := <-h.Events.(*record.FakeRecorder).Events:
		if !strings.HasPrefix(e, "Warning TryingAgain ") {
			t.Errorf("the event says %q", e)
		}
	default:
		t.Error("there is no event")
	}
	agreed.Store(true)
	r.end() // as soon as it keeps them
	if err := r.safely(t.Context()); err != nil {
		t.Error(err)
	}
	if j, _, err = store.Journal(t.Context(), p); err != nil || j.Waiting != "" {
		t.Errorf("the names are kept, and it waits because of %q, %v", j.Waiting, err)
	}
}
