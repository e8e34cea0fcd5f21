package traffic

import (
	"net/url"
	"strings"
	"testing"
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
