package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
)

// kubeconfig returns the name of a kubeconfig of a server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
		"clusters": [{"name": "a", "cluster": {"server": %q}}], "users": [{"name": "a"}]}`, server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Bad input yields one line of error and exit code 1, before any request to a cluster.
func TestRefusesWhatItDoesNotUnderstand(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(nowhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--manage=apps/v2":                                  `error: --manage is "apps/v2": expected apps.stsmigrate.dev/v1alpha1 or apps/v1`,
		"--manage=apps/v1 --namespaces=a,b":                 "error: --namespaces is for apps.stsmigrate.dev/v1alpha1: with apps/v1 no controller would reconcile the StatefulSets of other namespaces",
		"--namespaces=a,":                                   "error: --namespaces has a name that is empty",
		"--workers=0":                                       "error: --workers is 0: expected 1 or more",
		"--emulated-version=1.37":                           "error: --emulated-version is for --manage=apps/v1: slices have rules of their own",
		"--feature-gates=Nonsense=true":                     `error: --feature-gates: there is no feature "Nonsense": expected EnforcedRollingUpdateInStatefulSet or MaxUnavailableStatefulSet`,
		"--feature-gates=MaxUnavailableStatefulSet=perhaps": `error: --feature-gates: MaxUnavailableStatefulSet is "perhaps": expected true or false`,
		"--kubeconfig=/nowhere":                             "error: reading /nowhere: ",
		"--kubeconfig=" + nowhere + " --leader-elect=false": "error: reading " + nowhere,
		"serve": "error: unknown command",
		"":      "error: --kubeconfig is missing, and this process is not in a pod",
	} {
		var out, errOut bytes.Buffer
		if code := program.Run(t.Context(), command(), strings.Fields(args), &out, &errOut); code != 1 || !strings.HasPrefix(errOut.String(), want) || strings.Count(errOut.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, expected %q", args, code, errOut.String(), want)
		}
	}
}

// What answers in the API server's place is neither followed nor quoted.
func TestFollowsNoRedirect(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("http://elsewhere.invalid/login?code=secret", http.StatusFound))
	t.Cleanup(server.Close)
	file := kubeconfig(t, server.URL)
	for _, manage := range []string{slice, native} {
		var out, errOut bytes.Buffer
		args := []string{"--manage=" + manage, "--kubeconfig=" + file, "--namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
		code := program.Run(t.Context(), command(), args, &out, &errOut)
		if text := errOut.String(); code != 1 || !strings.Contains(text, "redirects are not followed") || strings.Contains(text, "secret") {
			t.Errorf("--manage=%s: exit code %d, %q", manage, code, text)
		}
	}
}

// A server that is away is reported as such, with what to do.
func TestAServerThatIsAwayIsReportedWithWhatToDo(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	file := kubeconfig(t, server.URL)
	for _, manage := range []string{slice, native} {
		var out, errOut bytes.Buffer
		args := []string{"--manage=" + manage, "--kubeconfig=" + file, "--namespace=default", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
		code := program.Run(t.Context(), command(), args, &out, &errOut)
		if text := errOut.String(); code != 1 || !strings.Contains(text, "error: asking the API server for its version: ") || !strings.Contains(text, "then start it again") {
			t.Errorf("--manage=%s: exit code %d, %q", manage, code, text)
		}
	}
}
