package main

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// atRest are plans that stay as they are until a user acts, with the exit codes of `status -w` and `wait`.
func atRest() map[string]struct {
	change      func(*journal.Journal)
	state       string
	status, end int
} {
	return map[string]struct {
		change      func(*journal.Journal)
		state       string
		status, end int
	}{
		"blocked":   {func(j *journal.Journal) { j.Epoch = 1; j.Block(reasons.OrdinalsChanged, "replicas is 5, expected 3") }, "Blocked", exitBlocked, exitBlocked},
		"paused":    {func(j *journal.Journal) { j.Epoch, j.Paused = 1, true }, "Paused", exitDone, exitBlocked},
		"split":     {func(j *journal.Journal) { j.Epoch, j.Outcome, j.Leg.Lowest = 1, plans.Split, 1 }, "Split", exitDone, exitBlocked},
		"moved":     {func(j *journal.Journal) { j.Epoch, j.Outcome = 1, plans.Moved }, "Moved", exitDone, exitDone},
		"aborted":   {func(j *journal.Journal) { ended(j, plans.Abort) }, "Aborted", exitAborted, exitAborted},
		"finalized": {func(j *journal.Journal) { ended(j, plans.Finalize) }, "Finalized", exitDone, exitDone},
	}
}

// ended makes the journal one of a plan of three that has ended in a direction.
func ended(j *journal.Journal, d plans.Direction) {
	j.Epoch, j.Outcome = 1, d.Outcome()
	j.Leg = plans.Leg{Direction: d, First: 1, Lowest: 3, End: 3}
}

// objects checks that each line is an object.
func objects(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}\n") {
			t.Errorf("no object: %s", line)
		}
	}
}

// A watch ends when the plan needs the user, and its exit code reports how the plan stands.
func TestAWatchEndsWhereAPlanRests(t *testing.T) {
	for name, c := range atRest() {
		on, config := serve(t, []string{"home"})
		keep(t, on, "mall", c.change)
		reach := []string{"-n", "mall", "--kubeconfig", config}
		for _, form := range [][]string{nil, {"--events", "json"}, {"-o", "json"}, {"-o", "yaml"}, {"-o", "name"}} {
			got := command(t, append(append([]string{"status", "web", "-w"}, form...), reach...)...)
			if got.code != c.status || !strings.Contains(got.out, c.state) && form == nil {
				t.Errorf("%s %v: ended with %d, expected %d:\n%s%s", name, form, got.code, c.status, got.out, got.errOut)
			}
			if len(form) == 2 && form[1] == "json" {
				objects(t, got.out)
			}
		}
		got := command(t, append([]string{"wait", "web", "--for=" + c.state, "--timeout=1m"}, reach...)...)
		if got.code != exitDone || got.out != c.state+"\n" {
			t.Errorf("%s: a wait for it ended with %d: %s", name, got.code, got.out+got.errOut)
		}
		patience := "--timeout=1m"
		if c.end == exitTimeout { // then it is what ends the wait
			patience = "--timeout=3s"
		}
		got = command(t, append([]string{"wait", "web", patience}, reach...)...)
		if got.code != c.end || (got.out != "") != (c.end == exitDone) || c.state == "Blocked" && !strings.Contains(got.errOut, "replicas is 5") {
			t.Errorf("%s: a wait for Moved ended with %d, expected %d: %q, %s", name, got.code, c.end, got.out, got.errOut)
		}
	}
}

// A plan that is finalized is not waited for in vain, and a mistake is found before the network.
func TestWaitsThatCannotSucceed(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "mall", func(j *journal.Journal) { ended(j, plans.Finalize) })
	if got := command(t, "wait", "web", "--for", "Paused,Blocked", "-n", "mall", "--kubeconfig", config); got.code != exitError || !strings.Contains(got.errOut, "plan web is Finalized, and will not be Paused or Blocked any more") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "wait", "web", "--for", "Done", "--kubeconfig", "/nowhere"); got.code != exitError || !strings.Contains(got.errOut, "--for Done: expected one of Moved, ") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "wait", "web", "--for", "movd", "--kubeconfig", "/nowhere"); !strings.Contains(got.errOut, "; did you mean Moved?") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "status", "web", "-w", "--events", "xml", "-n", "mall", "--kubeconfig", config); got.code != exitError || !strings.Contains(got.errOut, "--events\" flag: expected json or text") {
		t.Errorf("%+v", got)
	}
}

// A plan is not told as where it rested before a request that the orchestrator has not taken yet.
func TestAWaitDoesNotAnswerFromBeforeARequest(t *testing.T) {
	for _, state := range []string{"paused", "blocked", "split"} {
		c := atRest()[state]
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "mall", func(j *journal.Journal) {
			c.change(j)
			j.Detached, j.Observed = true, plans.Observed{Direction: plans.Move, Request: "1"}
		})
		wait := func(patience string) outcome {
			return command(t, "wait", "web", "--for="+c.state, "--timeout="+patience, "-n", "mall", "--kubeconfig", config)
		}
		if got := wait("1m"); got.code != exitDone {
			t.Errorf("%s: %+v", state, got)
		}
		d := records.NewDeclared("mall", "web")
		d.Object["spec"] = map[string]any{
			"approvedHash": p.Hash, "direction": "Move", "request": map[string]any{"id": "2", "resume": true},
			"source": map[string]any{"namespace": "shop", "name": "web"}, "destination": map[string]any{"namespace": "mall"},
		}
		if err := on.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := wait("3s"); got.code != exitTimeout {
			t.Errorf("%s, with a request: %+v", state, got)
		}
	}
}

// Each sentence of a wait that ends too early is true for the state in which the plan is.
func TestAWaitSaysWhetherThePlanContinues(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*journal.Journal)
		args   string
		code   int
		want   string
	}{
		"paused":        {func(j *journal.Journal) { j.Epoch, j.Paused = 1, true }, "", exitBlocked, "plan web is paused, and does not continue by itself\nNext: `stsmigrate resume web -n mall"},
		"paused midway": {func(j *journal.Journal) { j.Epoch, j.Begun, j.Done, j.Paused, j.Resting = 1, 4, 4, true, true }, "", exitBlocked, "plan web is paused before web-2, and does not continue by itself\nNext: `stsmigrate resume web -n mall"},
		"split":         {func(j *journal.Journal) { j.Epoch, j.Outcome, j.Leg.Lowest = 1, plans.Split, 1 }, "", exitBlocked, "has the ordinals from 1 upwards\nNext: `stsmigrate resume web -n mall"},
		"not begun":     {func(*journal.Journal) {}, "--timeout=3s", exitTimeout, "plan web is Planned, and not Moved within 3s. No process carries it out now. Next: `stsmigrate apply web"},
		"not finalized": {func(j *journal.Journal) { j.Epoch, j.Outcome = 1, plans.Moved }, "--for=finalized --timeout=3s", exitTimeout, "No process carries it out now. Next: `stsmigrate finalize web"},
	} {
		on, config := serve(t, []string{"home"})
		keep(t, on, "mall", c.change)
		got := command(t, append([]string{"wait", "web", "-n", "mall", "--kubeconfig", config}, strings.Fields(c.args)...)...)
		if got.code != c.code || !strings.Contains(got.errOut, c.want) || strings.Contains(got.errOut, "whether it is waited for") {
			t.Errorf("%s: ended with %d, expected %d and %q:\n%s%s", name, got.code, c.code, c.want, got.out, got.errOut)
		}
	}
}
