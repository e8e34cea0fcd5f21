package reach

import "testing"

func TestRequestsAboutKindsAreKnownByTheirPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/api": true, "/apis": true, "/api/v1": true, "/apis/apps/v1": true, "/version": true, "/openapi/v3": true, "/openapi/v3/apis/apps/v1": true,
		"/k8s/clusters/c-1/api": true, "/k8s/clusters/c-1/apis/apps/v1": true, "/apis/apps/v1/": true,
		"/api/v1/namespaces/openapi/pods": false, "/api/v1/namespaces/openapi/pods/web-0/exec": false, "/api/v1/nodes/version": false,
		"/apis/apps/v1/namespaces/shop/statefulsets/apis": false, "/k8s/clusters/c-1/api/v1/namespaces/openapi/x": false, "/api/v1/pods": false,
	} {
		if got := kinds(path); got != want {
			t.Errorf("%s: %t, expected %t", path, got, want)
		}
	}
}
