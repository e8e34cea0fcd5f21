package main

import (
	"path/filepath"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A pipeline tells plans that differ from a file that cannot be read by the exit code, as with kubectl diff.
func TestPlansThatDifferHaveAnExitCode(t *testing.T) {
	_, one := between(t)
	_, other := planTo(t, plans.Ref{Cluster: "uid-of-the-cluster", Context: "east", Namespace: "mall", Name: "web"})
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{one, one}, 0},
		{[]string{one, other}, 1},
		{[]string{one, other, "-o", "json"}, 1},
		{[]string{one, filepath.Join(t.TempDir(), "absent.yaml")}, 2},
		{[]string{one}, 2},
		{[]string{one, other, "-o", "tree"}, 2},
	} {
		if got := command(t, append([]string{"diff"}, c.args...)...); got.code != c.code || (c.code == 2) != (got.errOut != "") {
			t.Errorf("diff %v ends with %d, expected %d:\n%s%s", c.args, got.code, c.code, got.out, got.errOut)
		}
	}
}
