package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/plans"
)

// every calls do with each command of the program.
func every(t *testing.T, do func(*cobra.Command)) {
	t.Helper()
	todo := []*cobra.Command{new(app).command("stsmigrate")}
	for len(todo) > 0 {
		do(todo[0])
		todo = append(todo[1:], todo[0].Commands()...)
	}
}

// Backquotes in a flag's usage mark the name of its value, which must be one word.
func TestTheHelpOfAFlagNamesItsValueWithOneWord(t *testing.T) {
	every(t, func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.ContainsAny(name, " -") {
				t.Errorf("%s: --%s %s", c.CommandPath(), f.Name, name)
			}
		})
	})
}

// Bad input gets one sentence with the command that helps, whichever command it is.
func TestAMissingArgumentIsNamed(t *testing.T) {
	every(t, func(c *cobra.Command) {
		if c.Args == nil || c.ValidateArgs(nil) == nil {
			return
		}
		_, what, _ := strings.Cut(c.Use, " ")
		err := c.ValidateArgs(nil)
		args, takes := []string{"a"}, "one "+what
		if strings.Contains(what, " ") {
			args, takes = []string{"a", "b"}, what
		}
		if c.ValidateArgs(args) != nil || !strings.Contains(err.Error(), c.CommandPath()+" takes "+takes+", and got none") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.CommandPath(), err)
		}
	})
}

// As a plugin, the program names itself as its user types it, in help, messages and hints, and not in documents.
func TestThePluginSaysKubectl(t *testing.T) {
	for _, c := range []struct {
		args      []string
		want, not string
	}{
		{[]string{"plan", "--help"}, "  kubectl stsmigrate plan web -n shop", "  stsmigrate"},
		{[]string{"explain", "Paused"}, "1. kubectl stsmigrate resume PLAN", "1. stsmigrate"},
		{[]string{"explain", "mounted"}, "`kubectl stsmigrate explain` lists them", "`stsmigrate"},
		{[]string{"explain", "Paused", "-o", "json"}, `"run": "stsmigrate resume PLAN"`, "kubectl"},
	} {
		var out bytes.Buffer
		run(append([]string{"/usr/bin/kubectl-stsmigrate"}, c.args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), c.not) {
			t.Errorf("%v: expected %q and no %q in:\n%s", c.args, c.want, c.not, out.String())
		}
	}
}

func TestTheVersionIsADocumentToo(t *testing.T) {
	if got := command(t, "version", "-o", "json"); got.code != exitDone || !strings.Contains(got.out, `"program": "stsmigrate"`) || !strings.Contains(got.out, `"writes": "`+plans.APIVersion+`"`) {
		t.Errorf("%+v", got)
	}
}

// A group of commands prints its help without one of them, and each of its shells has a completion.
func TestGroupsOfCommands(t *testing.T) {
	for args, want := range map[string]string{"rollout": "Usage:\n  stsmigrate rollout [command]\n", "completion": "stsmigrate completion [command]\n", "completion bash": "bash completion"} {
		if code, out, errs := said(t, strings.Fields(args)...); code != 0 || errs != "" || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %q, expected %q in %.300q", args, code, errs, want, out)
		}
	}
	if got := command(t, "plan", "web", "--ignore", "csi-drivr"); got.code != exitError || !strings.HasSuffix(got.errOut, "; did you mean csi-driver?\n") {
		t.Errorf("%+v", got)
	}
}

// A number that cannot be meant is refused before any cluster is asked.
func TestMaxUnavailableIsReadBeforeTheNetwork(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	for _, args := range [][]string{{"plan", "web", "--max-unavailable", "-3"}, {"check", "web", "--max-unavailable=0"}, {"abort", "web", "--max-unavailable", "110%"}} {
		if got := command(t, args...); got.code != exitError || !strings.Contains(got.errOut, "expected a number from 1, or a percentage from 1% to 100%") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestACommandThatIsNotUnderstoodIsAnsweredWithWhatToType(t *testing.T) {
	for args, want := range map[string]string{
		"aply web":                       `error: unknown command "aply" for "stsmigrate"; did you mean apply?`,
		"rollout statu web":              "error: unknown command \"statu\" for \"stsmigrate rollout\"; did you mean status? See `stsmigrate rollout --help`",
		"rollout frob":                   "error: unknown command \"frob\" for \"stsmigrate rollout\"; it has history, pause, restart, resume, status, undo. See `stsmigrate rollout --help`",
		"completion bsh":                 "error: unknown command \"bsh\" for \"stsmigrate completion\"; did you mean bash? See `stsmigrate completion --help`",
		"get web":                        "error: stsmigrate get lists plans, and takes none of their names: `stsmigrate status web` shows one plan",
		"version now":                    "error: stsmigrate version takes no argument, and got now: stsmigrate version --help shows how",
		"get -o jsn":                     "error: -o jsn: expected wide, name, json, yaml, jsonpath=TEMPLATE, go-template=TEMPLATE or custom-columns=HEADER:.FIELD,... instead of text; did you mean json?",
		"plan web --show-pod -o yaml":    "error: --show-pod belongs to the text of a plan, and -o yaml prints the plan itself, as apply reads it: leave one of them out",
		"plan web --show-writes -o json": "error: --show-writes belongs to the text of a plan, and -o json prints the plan itself, as apply reads it: leave one of them out",
		"rbac --user anna":               "error: name the set, or the file of its plan with --plan (`stsmigrate plan SET --out FILE` writes one)",
	} {
		if code, out, errs := said(t, strings.Fields(args)...); code != 1 || out != "" || strings.TrimSpace(errs) != want {
			t.Errorf("%s: exit code %d, expected %q, got %q %q", args, code, want, out, errs)
		}
	}
}

// Only what is a word, and not a path, could be the name of a stored plan.
func TestStandardInputIsNoFileOfThisDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("web", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"-": false, "web": true, "./web": false} {
		a := &app{IOStreams: genericiooptions.IOStreams{In: strings.NewReader("")}}
		_, _, err := a.fromFile(t.Context(), file, new(reach.HomeFlags))
		if err == nil || strings.Contains(err.Error(), "in this directory") != want {
			t.Errorf("%s: %v", file, err)
		}
		if file == "-" && !strings.HasPrefix(err.Error(), "standard input: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
