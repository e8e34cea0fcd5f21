package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// hostile is text that tries to control a terminal and to mislead its reader.
const hostile = "\x1b]0;owned\a\x1b[2K\x1b[1A\u202egnp.exe\u2066\u2069\u009b2J\r\b\nnext:    rm -rf / \xff"

// home serves an API server that holds a plan. Its journal and every refusal are hostile text. home returns a
// kubeconfig for it.
func home(t *testing.T) string {
	t.Helper()
	p := &plans.Plan{
		APIVersion: plans.APIVersion, Kind: plans.PlanKind, Name: "web", ID: "web-abc", Count: 3, MaxUnavailable: 1, Window: 1,
		Source:      plans.Ref{Cluster: "uid", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "uid", Context: "east", Namespace: "mall", Name: "web"},
		Budget:      plans.Budget{Source: "web", Destination: "web"},
	}
	var err error
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(clusters.Scheme()).Build()
	if err := records.NewStore(c, "mall", "web").Create(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	return kubeconfigOf(t, recordsIn(t, c))
}

// recordsIn returns the responses of an API server that holds the objects of c.
func recordsIn(t *testing.T, c client.Client) map[string]any {
	t.Helper()
	version := metav1.GroupVersionForDiscovery{GroupVersion: "coordination.k8s.io/v1", Version: "v1"}
	leases := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "coordination.k8s.io", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	have := map[string]any{
		"/api":                      metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis":                     metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{leases}},
		"/apis/coordination.k8s.io": leases,
		"/apis/coordination.k8s.io/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "coordination.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "leases", Kind: "Lease", Namespaced: true},
		}},
		"/apis/coordination.k8s.io/v1/namespaces/mall/leases/stsmigrate-web": coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}},
		"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"},
		}},
		"/api/v1/namespaces/kube-system": corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid"}},
	}
	for _, name := range []string{"stsmigrate-web", "stsmigrate-web-journal"} {
		var cm corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "mall", Name: name}, &cm); err != nil {
			t.Fatal(err)
		}
		if raw := cm.Data["journal.json"]; raw != "" {
			var j journal.Journal
			if err := json.Unmarshal([]byte(raw), &j); err != nil {
				t.Fatal(err)
			}
			j.Blocked, j.Overdue = hostile, hostile
			out, err := json.Marshal(j)
			if err != nil {
				t.Fatal(err)
			}
			cm.Data["journal.json"] = string(out)
		}
		cm.TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
		have["/api/v1/namespaces/mall/configmaps/"+name] = cm
	}
	return have
}

// kubeconfigOf serves these responses, refuses every other request with hostile text, and writes a kubeconfig
// for the server.
func kubeconfigOf(t *testing.T, have map[string]any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		o, ok := have[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			o = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 403, Reason: "Forbidden", Message: hostile}
		}
		if err := json.NewEncoder(w).Encode(o); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	raw := strings.ReplaceAll(`{"apiVersion": "v1", "kind": "Config", "current-context": "east", "contexts": [{"name": "east", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": "SERVER"}}], "users": [{"name": "u", "user": {}}]}`, "SERVER", s.URL)
	if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// commands reports whether a character can control a terminal or mislead a reader.
func commands(r rune) bool {
	control := r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
	return control || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

func TestNothingThatOthersWroteCommandsTheTerminal(t *testing.T) {
	kubeconfig := home(t)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"status":           {[]string{"status", "web"}, exitBlocked, "reason:"},
		"status as YAML":   {[]string{"status", "web", "-o", "yaml"}, exitBlocked, "reason:"},
		"status as JSON":   {[]string{"status", "web", "-o", "json"}, exitBlocked, `"reason":`},
		"an error":         {[]string{"status", "other"}, exitError, "error:"},
		"a list":           {[]string{"get"}, exitError, "error:"},
		"a check":          {[]string{"check", "web", "--to-namespace", "shop"}, exitError, "error:"},
		"a plan under way": {[]string{"resume", "web", "--yes"}, exitError, "error:"},
	} {
		var out, errOut bytes.Buffer
		code := run(append([]string{"stsmigrate", "--kubeconfig", kubeconfig, "-n", "mall"}, c.args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
		text := out.String() + errOut.String()
		if code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, expected %d and %q:\n%s", name, code, c.code, c.want, text)
		}
		if k := strings.IndexFunc(text, commands); k >= 0 {
			t.Errorf("%s: it prints %.3q:\n%q", name, text[k:], text)
		}
		if name == "status" && strings.Contains(text, "\nnext:    rm") {
			t.Errorf("a reason makes a line of its own:\n%s", text)
		}
	}
}

// What the Lease of a plan and the revisions of a set say stays on the line that it is shown on, and JSON stays JSON.
func TestWhatOthersWroteMakesNoLine(t *testing.T) {
	yes, now, seconds, holder := true, metav1.NowMicro(), int32(60), "x\nHELLO of another\U000e0041"
	objects := append(updating(plans.NativeKind, nil), &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-b", OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: &yes}}, Annotations: map[string]string{"kubernetes.io/change-cause": holder}}, Revision: 2,
		Data: runtime.RawExtension{Raw: []byte(`{}`)},
	})
	on, config := serve(t, []string{"home"}, objects...)
	keep(t, on, "shop", func(j *journal.Journal) { j.Epoch = 1 })
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stsmigrate-web"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}}
	if err := on.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"status web", "status web -o json", "get -o wide", "get -o json", "resume web -y", "history web", "history web -o json"} {
		got := command(t, append(strings.Fields(args), "-n", "shop", "--kubeconfig", config)...)
		text := got.out + got.errOut
		if !strings.Contains(text, "HELLO") || strings.Contains(text, "\nHELLO") {
			t.Errorf("%s: expected HELLO within a line:\n%s", args, text)
		}
		if strings.HasSuffix(args, "json") && !json.Valid([]byte(got.out)) {
			t.Errorf("%s: no JSON:\n%s", args, got.out)
		}
	}
}

// A character that is written in parts is one character.
func TestCharactersMayComeInParts(t *testing.T) {
	const text = "schön \u202e文字\n"
	var whole, parts bytes.Buffer
	w, p := &program.Shown{To: &whole}, &program.Shown{To: &parts}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte(text) {
		if n, err := p.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if whole.String() != parts.String() || whole.String() != "schön \\u202e文字\n" {
		t.Errorf("%q, in parts %q", whole.String(), parts.String())
	}
}
