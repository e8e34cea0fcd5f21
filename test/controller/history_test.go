package controller_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// 961-37: the history of a slice can be listed and rolled back, which kubectl does for StatefulSets only.
// The same holds for a StatefulSet.
func TestAnEarlierRevisionIsRestored(t *testing.T) {
	t.Parallel()
	h := native3(t)
	slice := h.written(t, "  replicas: 2\n  ordinals: {start: 5}")
	slice.SetName("slice")
	if err := h.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	for set, pods := range map[string]string{"web": "3", "stss/slice": "2"} {
		h.goBack(set, pods)
	}
	if said := h.run(1, "history", "stss/none"); !strings.Contains(said, "StatefulSetSlice "+h.namespace+"/none does not exist") {
		t.Error(said)
	}
}

// goBack changes the template of a set and rolls the change back.
func (h *hands) goBack(set, pods string) {
	h.t.Helper()
	var before [][]string
	h.until(h.t, set+" has its pods", func(context.Context) bool {
		before = columns(h.run(0, "history", set))
		return len(before) == 1 && before[0][0] == "1" && before[0][2] == pods
	})
	if said := h.run(1, "undo", set, "--yes"); !strings.Contains(said, "has had no other pod template") {
		h.t.Error(said)
	}
	h.change(set)
	after := columns(h.run(0, "history", set))
	if len(after) != 2 || after[0][1] != before[0][1] || after[1][1] == before[0][1] {
		h.t.Fatalf("%s: %v became %v", set, before, after)
	}
	if said := h.run(1, "undo", set, "--yes", "--to-revision", "7"); !strings.Contains(said, "has no revision 7: expected one of 2, 1") {
		h.t.Error(said)
	}
	if said := h.run(1, "undo", set); !strings.Contains(said, "--yes") {
		h.t.Error(said)
	}
	if said := h.run(0, "undo", set, "--dry-run"); !strings.Contains(said, "nothing was stored") {
		h.t.Error(said)
	}
	if said := h.run(0, "undo", set, "--to-revision", "2", "--yes"); !strings.Contains(said, "nothing to do") {
		h.t.Error(said)
	}
	h.run(0, "undo", set, "--yes")
	h.until(h.t, set+" is back", func(context.Context) bool {
		now := columns(h.run(0, "history", set))
		// The old revision is the newest again, under its name (RV-3), and the pods have it.
		return len(now) == 2 && now[1][0] == "3" && now[1][1] == before[0][1] && now[1][2] == before[0][2]
	})
}

// change gives a set another template, and waits for its revision.
func (h *hands) change(set string) {
	h.t.Helper()
	var o client.Object = &appsv1.StatefulSet{}
	name, slice := strings.CutPrefix(set, "stss/")
	if slice {
		o = h.slice.DeepCopy()
	}
	o.SetNamespace(h.namespace)
	o.SetName(name)
	if err := h.Patch(h.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`))); err != nil {
		h.t.Fatal(err)
	}
	h.until(h.t, set+" is updated", func(context.Context) bool {
		rows := columns(h.run(0, "history", set))
		return len(rows) == 2 && rows[0][2] == "0" && rows[1][2] != "0"
	})
}

// run runs a command in the namespace, without a terminal.
func (h *hands) run(code int, args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), mover, append(args, "-n", h.namespace, "--kubeconfig", bed.West.Kubeconfig)...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		h.t.Fatalf("stsmigrate %s: exit code %d, expected %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

// columns returns the fields of the rows of a table.
func columns(table string) [][]string {
	var out [][]string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "REVISION") {
			out = append(out, strings.Fields(line))
		}
	}
	return out
}
