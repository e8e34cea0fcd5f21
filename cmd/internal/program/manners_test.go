package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree returns a small program.
func tree() (*cobra.Command, *bytes.Buffer) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "stsmigrate", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().String("context", "", "the cluster")
	for _, name := range []string{"plan", "get", "odd"} {
		c := &cobra.Command{Use: name, Short: "What " + name + " does", Run: func(*cobra.Command, []string) {}}
		c.Flags().String("max-unavailable", "", "d")
		c.Flags().IntP("count", "c", 0, "how many")
		root.AddCommand(c)
	}
	Mannered(root, []Group{{"Everyday:", []string{"plan"}}, {"Lists:", []string{"get"}}, {"Other:", nil}})
	root.SetOut(&out)
	root.SetErr(&out)
	return root, &out
}

func TestHelpHasGroupsAndLeavesTheGlobalFlagsToOptions(t *testing.T) {
	for _, c := range []struct {
		args      string
		want, not []string
	}{
		{"--help", []string{"Everyday:\n  plan", "Lists:\n  get", "Other:", "  odd "}, []string{"--context string"}},
		{"plan --help", []string{"--max-unavailable string", `Use "stsmigrate options"`}, []string{"--context string"}},
		{"options", []string{"--context string"}, nil},
	} {
		root, out := tree()
		root.SetArgs(strings.Fields(c.args))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: expected %q in:\n%s", c.args, want, out)
			}
		}
		for _, not := range c.not {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: %q stands in:\n%s", c.args, not, out)
			}
		}
	}
}

func TestAMistypedFlagIsAnsweredWithTheOneThatIsMeant(t *testing.T) {
	for args, want := range map[string]string{
		"plan --max-unavalable 3": "unknown flag: --max-unavalable; did you mean --max-unavailable? See `stsmigrate plan --help`",
		"plan --contxt a":         "did you mean --context?",
		"plan --nothing-like-it":  "unknown flag: --nothing-like-it. See `stsmigrate plan --help`",
		"plan -x":                 "See `stsmigrate plan --help`",
		"plan --count many":       "invalid argument \"many\"",
	} {
		root, _ := tree()
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(want, "nothing-like") && strings.Contains(err.Error(), "mean") {
			t.Errorf("%s: %v, expected %q", args, err, want)
		}
	}
}

func TestThePluginNamesItsCommandsAsTheyAreTyped(t *testing.T) {
	root, _ := tree()
	named := AsPlugin(root)
	for text, want := range map[string]string{
		"next: `stsmigrate plan web`":                "next: `kubectl stsmigrate plan web`",
		"kubectl stsmigrate get":                     "kubectl stsmigrate get",
		"kubectl -n stsmigrate get pods":             "kubectl -n stsmigrate get pods",
		"in namespace stsmigrate plan web waits":     "in namespace stsmigrate plan web waits",
		"stsmigrate planned it; stsmigrate.dev/plan": "stsmigrate planned it; stsmigrate.dev/plan",
		"`stsmigrate get -n stsmigrate`":             "`kubectl stsmigrate get -n stsmigrate`",
	} {
		if got := named(text); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
