package traffic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestClassify(t *testing.T) {
	for request, want := range map[string]Call{
		"GET /api/v1/namespaces/shop/pods":                                      {Verb: "list", Resource: "pods"},
		"GET /api/v1/namespaces/shop/pods?watch=true&resourceVersion=1":         {Verb: "watch", Resource: "pods"},
		"GET /api/v1/namespaces/kube-system":                                    {Verb: "get", Resource: "namespaces"},
		"GET /api/v1/persistentvolumes/a":                                       {Verb: "get", Resource: "persistentvolumes"},
		"GET /apis":                                                             {Verb: "get", Resource: "/apis"},
		"PUT /apis/apps/v1/namespaces/shop/statefulsets/web":                    {Verb: "update", Resource: "statefulsets", Kind: Write},
		"DELETE /api/v1/namespaces/shop/persistentvolumeclaims/a":               {Verb: "delete", Resource: "persistentvolumeclaims", Kind: Write},
		"POST /apis/apps/v1/namespaces/shop/statefulsets?dryRun=All":            {Verb: "create", Resource: "statefulsets", Kind: Trial},
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":           {Verb: "create", Resource: "selfsubjectaccessreviews", Kind: Review},
		"POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews":            {Verb: "create", Resource: "selfsubjectrulesreviews", Kind: Review},
		"POST /apis/authentication.k8s.io/v1/selfsubjectreviews":                {Verb: "create", Resource: "selfsubjectreviews", Kind: Review},
		"PUT /apis/coordination.k8s.io/v1/namespaces/shop/leases/stsmigrate-we": {Verb: "update", Resource: "leases", Kind: Write},
	} {
		t.Run(request, func(t *testing.T) {
			method, address, _ := strings.Cut(request, " ")
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if got := classify(method, u); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// The bytes of a watch count while it lasts, and never as those of a request.
func TestCountsTheBytesOfAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, "four")
			return
		}
		fmt.Fprint(w, "event")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	var c Counter
	address, err := c.serve(t.Context(), &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	read := func(query string, n int) {
		t.Helper()
		r, err := http.Get("http://" + address + "/api/v1/pods" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close() //nolint:errcheck // it was read
		if _, err := io.ReadFull(r.Body, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	read("?watch=1", len("event"))
	if got := c.TakeWatched(); got != 5 {
		t.Errorf("watches: %d bytes, want 5", got)
	}
	read("", len("four"))
	if err := c.servers[0].Shutdown(t.Context()); err != nil { // waits until the request is recorded
		t.Fatal(err)
	}
	calls := c.Take()
	if len(calls) != 1 || calls[0].Verb != "list" || calls[0].Bytes != 4 || c.TakeWatched() != 0 {
		t.Errorf("got %+v, want one list of 4 bytes, and no more of watches", calls)
	}
}
