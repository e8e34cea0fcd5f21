package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// With -v the user sees each request as text. No level shows a token or the content of an object.
func TestRequestsAreLoggedAsText(t *testing.T) {
	_, config := serve(t, []string{"home"}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "stsmigrate-db", Labels: map[string]string{"stsmigrate.dev/plan": "db"}},
		Data:       map[string]string{"password": "canary-4711"},
	})
	get := func(v string) string {
		t.Helper()
		got := command(t, "get", "-n", "mall", "--kubeconfig", config, "-v", v)
		if got.code != exitDone {
			t.Fatalf("%+v", got)
		}
		return got.errOut
	}
	if said := get("0"); said != "" {
		t.Errorf("without -v it says %s", said)
	}
	for _, v := range []string{"6", "7", "8", "9", "10"} {
		said := get(v)
		if !strings.Contains(said, "round_trippers.go") || !strings.Contains(said, "/api/v1/namespaces/mall/configmaps") || strings.HasPrefix(said, "{") {
			t.Errorf("-v %s shows no request:\n%s", v, said)
		}
		if strings.Contains(said, "canary-4711") || strings.Contains(said, "token-4711") {
			t.Errorf("-v %s shows what is nobody's business:\n%s", v, said)
		}
	}
}
