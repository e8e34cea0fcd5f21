package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/programtest"
)

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
	for _, manage := range []string{slice, native} {
		code, said := programtest.Run(t, command(), server.URL, "--manage="+manage)
		if code != 1 || !strings.Contains(said, "redirects are not followed") || strings.Contains(said, "secret") {
			t.Errorf("--manage=%s: exit code %d, %q", manage, code, said)
		}
	}
}

// A server that is away is reported as such, with what to do.
func TestAServerThatIsAwayIsReportedWithWhatToDo(t *testing.T) {
	for _, manage := range []string{slice, native} {
		programtest.SaysThatTheServerIsAway(t, command(), "--manage="+manage)
	}
}
