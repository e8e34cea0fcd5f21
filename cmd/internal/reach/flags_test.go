package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/stsmigrate/stsmigrate/plans"
)

// kubeconfig has two clusters, east and west, each with a context of its name.
const twoClusters = `apiVersion: v1
kind: Config
clusters:
- {name: east, cluster: {server: https://east}}
- {name: west, cluster: {server: https://west}}
contexts:
- {name: east, context: {cluster: east, namespace: shop}}
- {name: west, context: {cluster: west, namespace: mall}}
current-context: east
`

// flagged returns the flags of a command line.
func flagged(t *testing.T, line string) *Flags {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(twoClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Flags{}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	r.AddFlags(set)
	if err := set.Parse(append(strings.Fields(line), "--kubeconfig", file)); err != nil {
		t.Fatal(err)
	}
	return r
}

// How the source is reached holds for a destination in the same cluster, and for no other.
func TestTheDestinationIsReachedLikeTheSourceIfItIsItsCluster(t *testing.T) {
	for line, want := range map[string]string{
		"--to-namespace new": "https://east//",
		"--server https://other --token a --to-namespace new":   "https://other/a/",
		"--token a --as anna --to-context west":                 "https://west//",
		"--token a --to-context west --to-token b --to-as otto": "https://west/b/otto",
		"--to-server https://third --to-token c":                "https://third/c/",
		"--as anna --to-namespace new":                          "https://east//anna",
		"--as anna --to-as otto --to-namespace new":             "https://east//otto",
	} {
		r := flagged(t, line)
		r.inherit()
		c, err := r.destination.ToRESTConfig()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := c.Host + "/" + c.BearerToken + "/" + c.Impersonate.UserName; got != want {
			t.Errorf("%s: %s, expected %s", line, got, want)
		}
	}
}

// The --home flags name one place, and leave the meaning of all others as it is.
func TestTheHomeFlagsSayWherePlansAreLookedFor(t *testing.T) {
	for line, want := range map[string]string{
		"":                                       "east/shop",
		"-n a":                                   "east/a",
		"--to-context west":                      "west/mall",
		"--home-namespace stsmigrate":            "east/stsmigrate",
		"--context east --home-context west":     "west/mall",
		"--home-context west --home-namespace h": "west/h",
		"--to-context west --home-namespace h":   "west/h",
		"-n a --to-namespace b --home-context west": "west/b",
	} {
		r := flagged(t, line)
		before := *r.source.Context + "/" + *r.destination.Context
		at, err := r.Home()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := at.Context + "/" + at.Namespace; got != want {
			t.Errorf("%s: %s, expected %s", line, got, want)
		}
		if after := *r.source.Context + "/" + *r.destination.Context; r.named() && after != before {
			t.Errorf("%s: the contexts of the sides became %s", line, after)
		}
	}
}

// A context may have another name on this machine than where the plan was made, or its name may mean another cluster: the
// next command says so again.
func TestTheNextCommandNamesTheContextsThatTheRecordedOnesAreNot(t *testing.T) {
	p := &plans.Plan{Source: plans.Ref{Context: "east"}, Destination: plans.Ref{Context: "west"}}
	for _, c := range []struct{ source, destination, home, want string }{
		{"east", "west", "west", " -n mall --context west"},
		{"", "west", "west", " -n mall --context west"},
		{"east", "there", "there", " -n mall --context there"},
		{"west", "east", "east", " -n mall --context west --to-context east"},
		{"here", "west", "west", " -n mall --context here --to-context west"},
		{"east", "west", "hub", " -n mall --context hub"},
		{"here", "west", "hub", " --context here --to-context west --home-context hub --home-namespace mall"},
		{"east", "there", "hub", " --context east --to-context there --home-context hub --home-namespace mall"},
	} {
		r := flagged(t, "")
		*r.source.KubeConfig, *r.source.Context, *r.destination.Context = "", c.source, c.destination
		if got := r.found(p, &End{Context: c.home, Namespace: "mall"}); got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}
