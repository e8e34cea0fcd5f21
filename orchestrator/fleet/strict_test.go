package fleet

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// Kubeconfigs that tools write are accepted, with all the fields that are not read here.
func TestKubeconfigsOfToolsAreAccepted(t *testing.T) {
	data := base64.StdEncoding.EncodeToString([]byte("some certificate"))
	for name, raw := range map[string]string{
		"kind": `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: DATA
    server: https://172.18.0.3:6443
  name: kind-east
contexts:
- context:
    cluster: kind-east
    user: kind-east
  name: kind-east
current-context: kind-east
kind: Config
preferences: {}
users:
- name: kind-east
  user:
    client-certificate-data: DATA
    client-key-data: DATA
`,
		"Cluster API": `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: DATA
    server: https://10.0.0.5:6443
  name: prod
contexts:
- context: {cluster: prod, user: prod-admin}
  name: prod-admin@prod
current-context: prod-admin@prod
kind: Config
users:
- name: prod-admin
  user: {client-certificate-data: DATA, client-key-data: DATA}
`,
		"EKS with a token": `---
apiVersion: v1
kind: Config
clusters:
- name: arn:aws:eks:eu-west-1:111122223333:cluster/prod
  cluster:
    server: https://ABCDEF.gr7.eu-west-1.eks.amazonaws.com
    certificate-authority-data: DATA
contexts:
- name: arn:aws:eks:eu-west-1:111122223333:cluster/prod
  context:
    cluster: arn:aws:eks:eu-west-1:111122223333:cluster/prod
    namespace: shop
    user: orchestrator
current-context: arn:aws:eks:eu-west-1:111122223333:cluster/prod
users:
- name: orchestrator
  user:
    token: abc.def-_ghi
`,
		"minikube, with extensions": `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: DATA
    disable-compression: true
    extensions:
    - extension: {last-update: "Mon, 01 Jan 2026", provider: minikube.sigs.k8s.io, version: v1.38.0}
      name: cluster_info
    server: https://192.168.49.2:8443
    tls-server-name: minikubeCA
  name: minikube
contexts:
- context:
    cluster: minikube
    extensions:
    - extension: {last-update: "Mon, 01 Jan 2026", anything: [goes, {here: 1}]}
      name: context_info
    namespace: default
    user: minikube
  name: minikube
current-context: minikube
extensions: []
kind: Config
preferences: {colors: true}
users:
- name: minikube
  user: {client-certificate-data: DATA, client-key-data: DATA, extensions: []}
`,
		"JSON": `{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
"clusters": [{"name": "a", "cluster": {"server": "https://a.example"}}], "users": [{"name": "a", "user": {"token": "x"}}]}`,
	} {
		contexts, current, err := Sanitize([]byte(strings.ReplaceAll(raw, "DATA", data)))
		if err != nil || contexts[current] == nil {
			t.Errorf("%s: %v, %q", name, err, current)
		}
	}
}

func TestABombIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for k := range 12 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", k+1, k+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", k), 9), ", "))
	}
	for name, raw := range map[string]string{"aliases": bomb, "brackets": strings.Repeat("[", 500000)} {
		if _, _, err := Sanitize([]byte(raw)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, _, err := Sanitize([]byte("apiVersion: v1\nkind: Config\nusers: &u [*u]\n")); err == nil || !strings.Contains(err.Error(), "write out what is meant") {
		t.Errorf("an alias of itself: %v", err)
	}
}
