package main

import (
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/orchestrator"
	"github.com/stsmigrate/stsmigrate/plans"
)

// A plan that is stored for commands stays theirs: it is kept elsewhere than an orchestrator looks, and what it
// finds there may be under way.
func TestAPlanOfCommandsIsNotDetached(t *testing.T) {
	for name, change := range map[string]func(*plans.Journal){
		"stored":    func(*plans.Journal) {},
		"under way": func(j *plans.Journal) { j.Epoch, j.Begun = 1, 3 },
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "mall", change)
		for _, what := range []string{"web", inFile(t, p)} {
			got := command(t, "apply", what, "--detach", "--yes", "-n", "mall", "--kubeconfig", config)
			if got.code != exitError || !strings.Contains(got.errOut, "where it is carried out by commands, and not by an orchestrator") || !strings.Contains(got.errOut, "`stsmigrate apply web -n mall --context home --kubeconfig "+config+"`") {
				t.Errorf("%s, apply %s: %+v", name, what, got)
			}
		}
		if _, err := orchestrator.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
			t.Errorf("%s: it is stored twice", name)
		}
	}
}
