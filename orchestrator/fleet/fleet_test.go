package fleet

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// canary is a secret that must never appear in an output.
const canary = "open-sesame-4711"

// kubeconfig returns a kubeconfig whose cluster and user have these further lines.
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
		"another user":         {user: "    as: admin", want: "impersonates"},
		"other groups":         {user: "    as-groups: [system:masters]", want: "impersonates"},
		"a password":           {user: "    username: me\n    password: " + canary, want: "username and password"},
	} {
		if _, _, err := Sanitize(kubeconfig(c.cluster, c.user)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"plain HTTP":               {"https://east.example", "http://east.example", "not reached over https"},
		"no host":                  {"https://east.example:6443", "/tmp/socket", "server is no URL"},
		"a password in the URL":    {"https://", "https://me:" + canary + "@", "credentials in its URL"},
		"no user":                  {"user: u}", "user: v}", "names a user that is not in it"},
		"no cluster":               {"cluster: c,", "cluster: d,", "names a cluster that is not in it"},
		"no credentials":           {"token: " + canary, "token: ''", "neither token nor client-certificate-data"},
		"an unknown context":       {"current-context: east", "current-context: west", `current context "west" is not in it`},
		"what is no kubeconfig":    {"apiVersion: v1", "{" + canary, "cannot be read"},
		"another one's kind":       {"contexts: [", "contexts: 7 #[", "cannot be read"},
		"a port without a host":    {"https://east.example:6443", "https://:6443", "server has a port and no host"},
		"a key twice":              {"    token: ", "    token: other\n    token: ", `the key "token" is there twice`},
		"another spelling":         {"    token: ", "    Exec: {command: sh}\n    token: ", `the key "users[0].user.Exec" means nothing there`},
		"an unknown key":           {"    server: ", "    proxyURL: http://" + canary + "\n    server: ", `the key "clusters[0].cluster.proxyURL" means nothing there`},
		"a value for a key":        {"current-context: east", "current-context: east\n" + canary + ": 1", "a key means nothing there"},
		"a second document":        {"apiVersion: v1", "apiVersion: v1\nkind: Config\n---\nother: " + canary + "\n---", "it has more than one YAML document: keep only the first"},
		"a document after the end": {"apiVersion: v1", "apiVersion: v1\n...\n" + canary + ": 1\n...\n---", "it has more than one YAML document: keep only the first"},
		"a context without name":   {"{name: east, context: {cluster: c, user: u}}", "{name: east, context: {cluster: c, user: u}}, {name: '', context: {cluster: c, user: u}}", "a context without a name"},
		"a line break in it":       {"token: " + canary, "token: \"" + canary + "\\n\"", "characters that no token has"},
		"no contexts at all":       {"contexts: [{name: east, context: {cluster: c, user: u}}]", "", "no contexts"},
	} {
		raw := strings.Replace(string(kubeconfig("", "")), c.from, c.to, 1)
		if _, _, err := Sanitize([]byte(raw)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

// Whatever the input, the result can only use TLS to a host, with inline credentials.
func FuzzSanitize(f *testing.F) {
	f.Add(kubeconfig("", ""))
	f.Add(kubeconfig("    insecure-skip-tls-verify: true", "    exec: {command: sh}"))
	f.Add([]byte(`{"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"HTTPS://h"}}],"users":[{"name":"u","user":{"token":"x","as":"y"}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) { _ = harmless(t, raw) })
}

// A fuzz test seldom changes two values that belong together. Here each value of a kubeconfig is replaced by each lie,
// and many two by two.
func TestNoLieOfAKubeconfigDoesAnything(t *testing.T) {
	whole, err := yaml.YAMLToJSON(kubeconfig("    tls-server-name: api\n    insecure-skip-tls-verify: false\n    proxy-url: ''", "    tokenFile: ''\n    as: ''\n    username: ''"))
	if err != nil {
		t.Fatal(err)
	}
	read := planstest.Lie(t, whole, 3000, func(what string, raw []byte) bool {
		err := harmless(t, raw)
		if err != nil && !strings.Contains(what, "; ") && strings.Contains(err.Error(), canary) { // one lie leaves the secret in its place
			t.Errorf("a secret is in the error: %v", err)
		}
		return err == nil
	})
	if read < 100 {
		t.Errorf("only %d were read", read)
	}
}

// harmless checks that the clusters of a kubeconfig can only be reached over TLS, with what is written in it. It returns
// why the kubeconfig cannot be read.
func harmless(t *testing.T, raw []byte) error {
	t.Helper()
	contexts, _, err := Sanitize(raw)
	for name, c := range contexts {
		only := &rest.Config{Host: c.Host, BearerToken: c.BearerToken, TLSClientConfig: rest.TLSClientConfig{ServerName: c.ServerName, CAData: c.CAData, CertData: c.CertData, KeyData: c.KeyData}}
		if !reflect.DeepEqual(c, only) || !strings.HasPrefix(strings.ToLower(c.Host), "https://") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	return err
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
	argo := `{"bearerToken":"` + canary + `","tlsClientConfig":{"caData":"` + base64.StdEncoding.EncodeToString(authority(t)) + `"}}`
	for name, c := range map[string]struct {
		secret *corev1.Secret
		names  []string
		want   string
	}{
		"ours":                   {secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": own}), []string{"prod"}, ""},
		"ours, without a name":   {secret("a", map[string]string{Label: ""}, map[string]string{"value": own}), []string{"east"}, ""},
		"Cluster API's":          {secret("prod-kubeconfig", map[string]string{clusterAPI: "prod"}, map[string]string{"value": own}), []string{"prod"}, ""},
		"Argo CD's":              {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "server": "https://prod", "config": argo}), []string{"prod"}, ""},
		"Argo CD's with exec":    {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "server": "https://prod", "config": `{"bearerToken":"x","execProviderConfig":{"command":"sh"}}`}), nil, "execProviderConfig runs a program"},
		"Argo CD's without TLS":  {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "server": "https://prod", "config": `{"bearerToken":"x","tlsClientConfig":{"insecure":true}}`}), nil, "insecure-skip-tls-verify"},
		"Argo CD's, not JSON":    {secret("a", map[string]string{argoCD: "cluster"}, map[string]string{"name": "prod", "config": canary}), nil, "cannot be read"},
		"an empty one":           {secret("a", map[string]string{Label: ""}, nil), nil, "neither the key kubeconfig nor the key value"},
		"one that runs programs": {secret("a", map[string]string{Label: ""}, map[string]string{"kubeconfig": string(kubeconfig("", "    exec: {command: sh}"))}), nil, "exec runs a program"},
	} {
		f := testFleet(false)
		if !Holds(c.secret) {
			t.Errorf("%s: it is not taken for one of clusters", name)
		}
		err := f.Learn(c.secret)
		if c.want != "" {
			_, found := f.Find("prod", "uid")
			says(t, name, err, c.want)
			says(t, name+", for who looks for it", found, c.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.names {
			if got, err := f.Find(want, "uid"); err != nil || got.wire.now.Load().token != canary || got.config.RateLimiter == nil || got.config.BearerToken != "" {
				t.Errorf("%s: %s: %+v, %v", name, want, got, err)
			}
		}
	}
	if Holds(secret("a", map[string]string{"app": "web"}, map[string]string{"kubeconfig": own})) {
		t.Error("a Secret without a label is taken for one of clusters")
	}
}

// says checks that an error contains certain words, and nothing of the Secret's content.
func says(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
		t.Errorf("%s: %v, expected %q", name, err, want)
	}
}

// Accepted content is used until it is replaced or deleted.
func TestASecretThatIsSpoiltTakesNoClusterAway(t *testing.T) {
	f := testFleet(false)
	s := secret("a", map[string]string{Label: "prod"}, map[string]string{"kubeconfig": string(kubeconfig("", ""))})
	if err := f.Learn(s); err != nil {
		t.Fatal(err)
	}
	first, err := f.Find("prod", "uid")
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"garbage": canary, "nothing": "", "one that runs a program": string(kubeconfig("", "    exec: {command: sh}")),
		"no certificate": string(kubeconfig("    certificate-authority-data: R0FSQkFHRQ==", "")),
		"no pair":        string(kubeconfig("", "    client-certificate-data: R0FSQkFHRQ==\n    client-key-data: R0FSQkFHRQ==")),
	} {
		s.Data["kubeconfig"] = []byte(raw)
		says(t, name, f.Learn(s), "prod is reached as before")
		if c, err := f.Find("prod", "uid"); c != first || ended(first) {
			t.Errorf("%s: the plans of the cluster end: %v", name, err)
		}
		_, err := f.Find("other", "uid")
		says(t, name+", for who looks for another", err, "Secret stsmigrate/a holds no cluster")
	}
	s.Data["kubeconfig"] = kubeconfig("", "")
	if err := f.Learn(s); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Find("other", "uid"); err == nil || strings.Contains(err.Error(), "stsmigrate/a") {
		t.Errorf("it is good again: %v", err)
	}
	delete(s.Labels, Label)
	if err := f.Learn(s); err != nil || !ended(first) {
		t.Errorf("without its label it holds no cluster any more: %v", err)
	}
}

// No kubeconfig decides which plans use its clusters.
func TestWhoAClusterIsIsNotForKubeconfigsToSay(t *testing.T) {
	f := testFleet(false)
	learn := func(name, label string, contexts ...string) {
		t.Helper()
		raw := string(kubeconfig("", ""))
		for _, c := range contexts {
			raw = strings.Replace(raw, "contexts: [", "contexts: [{name: "+c+", context: {cluster: c, user: u}}, ", 1)
		}
		if err := f.Learn(secret(name, map[string]string{Label: label}, map[string]string{"kubeconfig": raw})); err != nil {
			t.Fatal(err)
		}
	}
	find := func(name string, uid types.UID) string {
		t.Helper()
		c, err := f.Find(name, uid)
		if err != nil {
			return err.Error()
		}
		for secret, h := range f.secrets {
			if h.clusters[name] == c {
				return secret
			}
		}
		return c.Name
	}
	learn("ours", "west")
	learn("tenant", "", "home", "west", "north", Home)
	learn("other", "", "north", "south")
	for _, c := range []struct {
		name string
		uid  types.UID
		want string
	}{
		{"home", "own", Home}, // the name in a user's kubeconfig
		{Home, "own", Home},
		{"west", "own", Home},
		{"west", "uid", "ours"}, // not the context of the tenant
		{"south", "uid", "other"},
		{"north", "uid", `the Secrets other and tenant all hold a cluster named "north": leave one of them`},
	} {
		if got := find(c.name, c.uid); got != c.want {
			t.Errorf("%s with the UID %s: %s, expected %s", c.name, c.uid, got, c.want)
		}
	}
	learn("second", "west")
	if got, want := find("west", "uid"), `the Secrets ours and second all hold a cluster named "west": leave one of them`; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if got := find("south", "uid"); got != "other" {
		t.Errorf("two of one name are in the way of another: %s", got)
	}
	if _, err := f.Find("east", "uid"); err == nil || !strings.Contains(err.Error(), "other and tenant") {
		t.Errorf("a Secret whose label has a name is known by its context too: %v", err)
	}
}
