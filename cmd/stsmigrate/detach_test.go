package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// What is wanted of a plan that an orchestrator carries out is declared, and its journal is left alone.
func TestWishesForADetachedPlanAreDeclared(t *testing.T) {
	underWay := func(j *plans.Journal) { j.Detached, j.Epoch, j.Done, j.Begun = true, 2, 1, 1 }
	moved := func(j *plans.Journal) {
		j.Detached, j.Epoch, j.Done, j.Begun, j.Outcome = true, 2, 33, 33, plans.Moved
		j.Done = j.Leg.First - 1
		j.Begun = j.Done
	}
	const resume = "resume web"
	for name, c := range map[string]struct {
		journal func(*plans.Journal)
		command string
		want    func(*plans.Declaration) bool
		refused string
	}{
		"a pause":          {underWay, "pause web", func(d *plans.Declaration) bool { return d.Paused && d.Ask == nil && d.Course == "" }, ""},
		"the way on":       {underWay, resume + " --yes", func(d *plans.Declaration) bool { return !d.Paused && d.Ask.Resume && d.Course == plans.ToMove }, ""},
		"a part of it":     {underWay, resume + " --yes --pause-after 1", func(d *plans.Declaration) bool { return d.Ask.PauseAfter == 1 && d.Ask.UntilOrdinal == nil }, ""},
		"as far as that":   {underWay, resume + " --yes --until-ordinal 2", func(d *plans.Declaration) bool { return *d.Ask.UntilOrdinal == 2 }, ""},
		"the way back":     {underWay, "abort web --yes --max-unavailable 2", func(d *plans.Declaration) bool { return d.Course == plans.ToAbort && d.Ask.MaxUnavailable == 2 }, ""},
		"more than all":    {underWay, "abort web --yes --max-unavailable 9", nil, "--max-unavailable 9: expected"},
		"a senseless word": {underWay, resume + " --yes --node-gone n", nil, "has no ordinals in flight"},
		"gates of no gate": {underWay, resume + " --yes --skip-gates", nil, "asks no gates"},
		"an early end":     {underWay, "finalize web --yes", nil, "is not complete"},
		"the end":          {moved, "finalize web --yes", func(d *plans.Declaration) bool { return d.Course == plans.ToFinalize && !d.KeepNames }, ""},
		"names of none":    {moved, "finalize web --yes --keep-names", nil, "bridges no names"},
		"a late pause":     {moved, "pause web", nil, "is not under way (Moved)"},
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "stsmigrate", c.journal)
		version := func() string {
			t.Helper()
			var cm corev1.ConfigMap
			if err := on.Get(t.Context(), client.ObjectKey{Namespace: "stsmigrate", Name: "stsmigrate-web-journal"}, &cm); err != nil {
				t.Fatal(err)
			}
			return cm.ResourceVersion
		}
		before := version()
		got := command(t, append(strings.Fields(c.command), "-n", "stsmigrate", "--kubeconfig", config)...)
		d, err := orchestrator.ReadDeclared(t.Context(), on, "stsmigrate", "web")
		if err != nil || version() != before {
			t.Fatalf("%s: %v; the journal was %s and is %s", name, err, before, version())
		}
		if c.refused != "" {
			if got.code != exitError || !strings.Contains(got.errOut, c.refused) || d != nil {
				t.Errorf("%s: %+v, expected %q, and nothing declared: %+v", name, got, c.refused, d)
			}
			continue
		}
		if got.code != exitDone || d == nil || d.Wrong != nil || d.Spec.ApprovedHash != p.Hash || !c.want(d.Spec) || p.Differs(d.Spec) != "" {
			t.Errorf("%s: %+v; declared is %+v", name, got, d)
		}
	}
}

// Two requests are two, though they say the same; what somebody else has declared meanwhile stays.
func TestARequestIsOneOfItsOwn(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "stsmigrate", func(j *plans.Journal) { j.Detached, j.Epoch = true, 2 })
	seen := map[string]bool{}
	for _, line := range []string{"pause web", "resume web --yes", "resume web --yes", "pause web"} {
		if got := command(t, append(strings.Fields(line), "-n", "stsmigrate", "--kubeconfig", config)...); got.code != exitDone {
			t.Fatalf("%s: %+v", line, got)
		}
		d, err := orchestrator.ReadDeclared(t.Context(), on, "stsmigrate", "web")
		if err != nil || d.Wrong != nil {
			t.Fatal(err, d.Wrong)
		}
		if d.Spec.Ask != nil {
			seen[d.Spec.Ask.ID] = true
		}
		if strings.HasPrefix(line, "pause") != d.Spec.Paused {
			t.Errorf("%s: paused is %t", line, d.Spec.Paused)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the requests are %v, expected two", seen)
	}
}

// Where there is no orchestrator to ask, nothing is stored for one.
func TestADetachedPlanNeedsTheKind(t *testing.T) {
	on, config := serve(t, []string{"home"})
	delete(on.kinds, "statefulsetmigrations")
	p := keep(t, on, "elsewhere", func(*plans.Journal) {})
	got := command(t, "apply", inFile(t, p), "--detach", "--yes", "--kubeconfig", config)
	if got.code != exitError || !strings.Contains(got.errOut, "has no kind StatefulSetMigration: install the orchestrator there") {
		t.Errorf("%+v", got)
	}
	if _, err := orchestrator.NewStore(on, "stsmigrate", "web").Plan(t.Context()); err == nil {
		t.Error("it is stored all the same")
	}
}
