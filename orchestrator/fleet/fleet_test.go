package fleet

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// canary is what must never be seen outside.
const canary = "open-sesame-4711"

// kubeconfig is one whose cluster and user have these further lines.
func kubeconfig(cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: east
contexts: [{name: east, context: {cluster: c, user: u}}]
clusters:
- name: c
  cluster:
    server: https://east.example:6443
%s
users:
- name: u
  user:
    token: %s
%s
`, cluster, canary, user)
}

func TestAKubeconfigMustNotDoAnything(t *testing.T) {
	contexts, current, err := Sanitize(kubeconfig("    tls-server-name: api", ""))
	if err != nil || current != "east" || contexts["east"].BearerToken != canary || contexts["east"].ServerName != "api" {
		t.Fatalf("%v, %q, %v", contexts, current, err)
	}
	for name, c := range map[string]struct{ cluster, user, want string }{
		"exec":                 {user: "    exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}", want: "exec runs a program"},
		"auth provider":        {user: "    auth-provider: {name: gcp}", want: "auth-provider is a plugin"},
		"a token in a file":    {user: "    tokenFile: /etc/passwd", want: "tokenFile is a file"},
		"a certificate's file": {user: "    client-certificate: /etc/passwd", want: "client-certificate is a file"},
		"a key's file":         {user: "    client-key: /etc/passwd", want: "client-key is a file"},
		"an authority's file":  {cluster: "    certificate-authority: /etc/passwd", want: "certificate-authority is a file"},
		"no verification":      {cluster: "    insecure-skip-tls-verify: true", want: "insecure-skip-tls-verify is set"},
		"a proxy":              {cluster: "    proxy-url: http://elsewhere", want: "proxy-url is set"},
		"somebody else":        {user: "    as: admin", want: "impersonates"},
		"other groups":         {user: "    as-groups: [system:masters]", want: "impersonates"},
		"a password":           {user: "    username: me\n    password: " + canary, want: "username and password"},
	} {
		if _, _, err := Sanitize(kubeconfig(c.cluster, c.user)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"plain HTTP":            {"https://east.example", "http://east.example", "not reached over https"},
		"no host":               {"https://east.example:6443", "/tmp/socket", "server is no URL"},
		"a password in the URL": {"https://", "https://me:" + canary + "@", "credentials in its URL"},
		"no user":               {"user: u}", "user: v}", "names a user that is not in it"},
		"no cluster":            {"cluster: c,", "cluster: d,", "names a cluster that is not in it"},
		"no credentials":        {"token: " + canary, "token: ''", "neither token nor client-certificate-data"},
		"an unknown context":    {"current-context: east", "current-context: west", `current context "west" is not in it`},
		"what is no kubeconfig": {"apiVersion: v1", "{" + canary, "cannot be read"},
		"another one's kind":    {"contexts: [", "contexts: 7 #[", "cannot be read"},
		"no contexts at all":    {"contexts: [{name: east, context: {cluster: c, user: u}}]", "", "no contexts"},
	} {
		raw := strings.Replace(string(kubeconfig("", "")), c.from, c.to, 1)
		if _, _, err := Sanitize([]byte(raw)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

// Whatever is put in, what comes out can only speak TLS to a host, with inline credentials.
func FuzzSanitize(f *testing.F) {
	f.Add(kubeconfig("", ""))
	f.Add(kubeconfig("    insecure-skip-tls-verify: true", "    exec: {command: sh}"))
	f.Add([]byte(`{"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"HTTPS://h"}}],"users":[{"name":"u","user":{"token":"x","as":"y"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		contexts, _, err := Sanitize(raw)
		if err != nil {
			return
		}
		for name, c := range contexts {
			only := &rest.Config{Host: c.Host, BearerToken: c.BearerToken, TLSClientConfig: rest.TLSClientConfig{ServerName: c.ServerName, CAData: c.CAData, CertData: c.CertData, KeyData: c.KeyData}}
			if !reflect.DeepEqual(c, only) || !strings.HasPrefix(strings.ToLower(c.Host), "https://") {
				t.Errorf("%s: %+v", name, c)
			}
		}
	})
}

func secret(name string, labels map[string]string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "stsmigrate", Name: name, Labels: labels}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func TestSecretsOfThreeKindsAreRead(t *testing.T) {
	own := string(kubeconfig("", ""))
	argo := `{"bearerToken":"` + canary + `","tlsClientConfig":{"caData":"` + base64.StdEncoding.EncodeToString([]byte("ca")) + `"}}`
	for name, c := range map[string]struct {
		secret *corev1.Secret
		names  []string
		want   string
	}{
		"ours":                   {secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": own}), []string{"prod", "east"}, ""},
		"ours, without a name":   {secret("a", map[string]string{Label: ""}, map[string]string{"value": own}), []string{"east"}, ""},
		"Cluster API's":          {secret("prod-kubeconfig", map[string]string{clusterAPI: "prod"}, map[string]string{"value": own}), []string{"prod", "east"}, ""},
		"Argo CD's":              {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "server": "https://prod", "config": argo}), []string{"prod"}, ""},
		"Argo CD's with exec":    {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "server": "https://prod", "config": `{"bearerToken":"x","execProviderConfig":{"command":"sh"}}`}), nil, "execProviderConfig runs a program"},
		"Argo CD's without TLS":  {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "server": "https://prod", "config": `{"bearerToken":"x","tlsClientConfig":{"insecure":true}}`}), nil, "insecure-skip-tls-verify"},
		"Argo CD's, not JSON":    {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "config": canary}), nil, "cannot be read"},
		"an empty one":           {secret("a", map[string]string{Label: ""}, nil), nil, "neither the key kubeconfig nor the key value"},
		"one that runs programs": {secret("a", map[string]string{Label: ""}, map[string]string{"kubeconfig": string(kubeconfig("", "    exec: {command: sh}"))}), nil, "exec runs a program"},
	} {
		f := New(&rest.Config{Host: "https://home"}, Limits{QPS: 1, Burst: 1}, "test")
		if !Holds(c.secret) {
			t.Errorf("%s: it is not taken for one of clusters", name)
		}
		err := f.Learn(c.secret)
		if c.want != "" {
			_, found := f.Find(t.Context(), "prod", "uid")
			says(t, name, err, c.want)
			says(t, name+", for who looks for it", found, c.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.names {
			if got, err := f.Find(t.Context(), want, "uid"); err != nil || got.given.BearerToken != canary || got.config.RateLimiter == nil {
				t.Errorf("%s: %s: %+v, %v", name, want, got, err)
			}
		}
	}
	if Holds(secret("a", map[string]string{"app": "web"}, map[string]string{"kubeconfig": own})) {
		t.Error("a Secret without a label is taken for one of clusters")
	}
}

// says wants an error with certain words, and nothing from inside.
func says(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
		t.Errorf("%s: %v, expected %q", name, err, want)
	}
}

func TestRenewedCredentialsEndWhatTheOldOnesBegan(t *testing.T) {
	f := New(&rest.Config{Host: "https://home"}, Limits{QPS: 1, Burst: 1}, "test")
	s := secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": string(kubeconfig("", ""))})
	learn := func() *Cluster {
		t.Helper()
		if err := f.Learn(s); err != nil {
			t.Fatal(err)
		}
		c, err := f.Find(t.Context(), "prod", "uid")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := learn()
	if again := learn(); again != first {
		t.Error("the same credentials made another connection")
	}
	s.Data["kubeconfig"] = []byte(strings.ReplaceAll(string(kubeconfig("", "")), canary, "new"))
	second := learn()
	select {
	case <-first.Gone:
	default:
		t.Error("nobody was told that the credentials are others")
	}
	if second == first || second.given.BearerToken != "new" {
		t.Errorf("%+v", second.given)
	}
	other := secret("b", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": string(kubeconfig("", ""))})
	if err := f.Learn(other); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Find(t.Context(), "prod", "uid"); err == nil || !strings.Contains(err.Error(), "the Secrets a and b all hold a cluster named") {
		t.Errorf("two of one name: %v", err)
	}
	f.Forget("a")
	select {
	case <-second.Gone:
	default:
		t.Error("nobody was told that the Secret is gone")
	}
	if _, err := f.Find(t.Context(), "prod", "uid"); err != nil {
		t.Error(err)
	}
}
