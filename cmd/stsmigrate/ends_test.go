package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/cmd/internal/hints"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func ending(mode plans.NameMode) *reach.Target {
	p := &plans.Plan{
		Name: "web", Count: 3, Names: plans.Names{Mode: mode, Service: "web"},
		Source:      plans.Ref{Cluster: "a", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "b", Context: "west", Namespace: "mall", Name: "web"},
	}
	return &reach.Target{Plan: p, Home: &reach.End{Context: "west", Namespace: "stsmigrate"}, Flags: " -n stsmigrate --context west"}
}

// The process that carried out the plan kept its names until now. The user must learn that no process does so
// from here on.
func TestTheEndOfARunSaysThatNamesHaveToBeKept(t *testing.T) {
	const keep = "`stsmigrate names web -n stsmigrate --context west -w`"
	for name, c := range map[string]struct {
		how  engine.Progress
		said bool
	}{
		"moved":     {engine.Progress{Kind: engine.Finished, Outcome: plans.Moved}, true},
		"split":     {engine.Progress{Kind: engine.Finished, Outcome: plans.Split}, true},
		"paused":    {engine.Progress{Kind: engine.Paused, Reason: "paused"}, true},
		"aborted":   {engine.Progress{Kind: engine.Finished, Outcome: plans.Aborted}, false},
		"finalized": {engine.Progress{Kind: engine.Finished, Outcome: plans.Finalized}, false},
	} {
		for _, mode := range []plans.NameMode{plans.Bridge, plans.NoNames} {
			var out bytes.Buffer
			a := &app{IOStreams: genericiooptions.IOStreams{Out: &out}}
			if err := a.conclude(ending(mode), plans.Move, c.how, nil); err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(out.String(), keep); said != (c.said && mode == plans.Bridge) {
				t.Errorf("%s, names %s: it says %s", name, mode, out.String())
			}
		}
	}
}

// The objects that stay after the end are named, with the commands that delete them.
func TestTheEndOfAPlanNamesWhatStays(t *testing.T) {
	web := ending(plans.NoNames)
	if got, want := hints.Record(web, &journal.Journal{}), "`stsmigrate forget web -n stsmigrate --context west`\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := hints.Record(web, &journal.Journal{KeepNames: true}); got != "" {
		t.Errorf("names are kept by the record, and it says %q", got)
	}
	for gone, flag := range map[bool]string{false: "", true: " --side destination"} {
		want := "When `stsmigrate status web -n stsmigrate --context west` says Finalized, revoke what the orchestrator was granted for it: `stsmigrate revoke web -n stsmigrate --context west" + flag + "`\n"
		if got := hints.Granted(web, plans.Finalize, gone); got != want {
			t.Errorf("got\n%sexpected\n%s", got, want)
		}
	}
}
