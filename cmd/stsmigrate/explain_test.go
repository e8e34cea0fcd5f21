package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// said runs the program without any kubeconfig, and returns its exit code and both outputs.
func said(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/does/not/exist")
	var o, e bytes.Buffer
	code = run(append([]string{"stsmigrate"}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e})
	return code, o.String(), e.String()
}

func TestReasonsAndChecksAreExplainedWithoutAnyCluster(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"explain", "ordinalschanged"}, []string{"OrdinalsChanged\n", "What is unchanged:", "1. kubectl", "stsmigrate resume PLAN", "On the web: https://github.com/stsmigrate/stsmigrate/blob/main/docs/reasons.md#ordinalschanged\n"}},
		{[]string{"explain", "csi-driver"}, []string{"csi-driver (check, Storage)", "Why:\n  Of most drivers", "--ignore csi-driver", "More: docs/drivers.md", "/docs/checks.md#csi-driver\n"}},
		{[]string{"explain"}, []string{"PodNotReady", "name-free"}},
		{[]string{"explain", "Paused", "-o", "json"}, []string{`"id": "Paused"`, `"unchanged":`}},
	} {
		code, out, errs := said(t, c.args...)
		for _, want := range c.want {
			if code != 0 || errs != "" || !strings.Contains(out, want) {
				t.Errorf("%v: exit code %d, expected %q in:\n%s%s", c.args, code, want, out, errs)
			}
		}
	}
	if code, out, errs := said(t, "explain", "csi-drivr"); code != 1 || out != "" || !strings.Contains(errs, "(did you mean csi-driver?)") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if code, out, errs := said(t, "explain", "mounted"); code != 1 || out != "" || !strings.Contains(errs, "did you mean ClaimMounted") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
