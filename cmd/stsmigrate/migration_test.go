package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// migrationFile writes a Migration of the set of keep.
func migrationFile(t *testing.T, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "migration.yaml")
	text := "apiVersion: " + plans.APIVersion + "\nkind: Migration\nmetadata: {name: web}\nspec:\n  source: {namespace: shop, name: web}\n  destination: {namespace: mall}\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A Migration whose plan is stored continues that plan, and a Migration that asks for something else is refused.
func TestApplyContinuesThePlanOfAMigration(t *testing.T) {
	on, config := serve(t, []string{"home"})
	p := keep(t, on, "mall", func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 })
	for _, file := range [][]string{{"-f", migrationFile(t, "")}, {migrationFile(t, "")}} {
		got := command(t, append([]string{"apply", "--kubeconfig", config, "--dry-run=client"}, file...)...)
		if got.code != exitDone || !strings.HasPrefix(got.out, "move of plan web would do this, in this order:") || !strings.Contains(got.errOut, "dry run: nothing was written") {
			t.Errorf("%v: %+v", file, got)
		}
	}
	got := command(t, "apply", "-f", migrationFile(t, "  maxUnavailable: 2\n"), "--kubeconfig", config, "--dry-run=client")
	if got.code != exitError || !strings.Contains(got.errOut, "the file asks for another spec.maxUnavailable") {
		t.Errorf("%+v", got)
	}
	if j, _, err := records.NewStore(on, "mall", "web").Journal(t.Context(), p); err != nil || j.Epoch != 1 {
		t.Errorf("a dry run has written: %+v, %v", j, err)
	}
	got = command(t, "apply", "web", "-f", migrationFile(t, ""), "--kubeconfig", config)
	if got.code != exitError || !strings.Contains(got.errOut, "named twice") {
		t.Errorf("%+v", got)
	}
}

// A dry run asks nothing, writes nothing, and says so.
func TestADryRunOnTheClientStopsBeforeTheFirstWrite(t *testing.T) {
	order := map[string]string{
		"abort":    "abort of plan web would do this, in this order: 1. stop web-1, start web-1: from mall/web in home to shop/web in home, as far as it has left 2. stop web-2, start web-2: from mall/web in home to shop/web in home 3. delete StatefulSet mall/web on the destination: it has no ordinals and no pods 4. ",
		"finalize": "finalize of plan web would do this, in this order: 1. delete StatefulSet shop/web on the source: it has no ordinals and no pods 2. ",
	}
	for verb, change := range map[string]func(*journal.Journal){
		"abort": func(j *journal.Journal) { j.Epoch, j.Begun, j.Done = 1, 1+3+8+2, 1+3+8+1 }, "resume": func(j *journal.Journal) { j.Epoch, j.Begun, j.Paused = 1, 1, true },
		"finalize": func(j *journal.Journal) { j.Epoch, j.Outcome = 1, plans.Moved },
		"pause":    func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 },
		"forget":   func(j *journal.Journal) { j.Epoch, j.Leg.Direction, j.Outcome = 1, plans.Abort, plans.Aborted },
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "mall", change)
		before, _, err := records.NewStore(on, "mall", "web").Journal(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		got := command(t, verb, "web", "-n", "mall", "--kubeconfig", config, "--dry-run=client")
		if got.code != exitDone || !strings.Contains(got.errOut, "dry run: nothing was written") || !strings.Contains(got.out, "plan web") {
			t.Errorf("%s: %+v", verb, got)
		}
		if !strings.HasPrefix(oneLine(got.out), order[verb]) || order[verb] != "" && strings.Contains(got.out, "?") {
			t.Errorf("%s: expected %q in\n%s", verb, order[verb], got.out)
		}
		after, _, err := records.NewStore(on, "mall", "web").Journal(t.Context(), p)
		if err != nil || after.Epoch != before.Epoch || after.Paused != before.Paused || after.Leg != before.Leg {
			t.Errorf("%s has written: %+v, %v", verb, after, err)
		}
		if got := command(t, verb, "web", "-n", "mall", "--kubeconfig", config, "--dry-run=maybe"); got.code != exitError || !strings.Contains(got.errOut, "--dry-run=maybe: expected one of none, client") {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

// The record of a new plan is sent as a dry run.
func TestADryRunOnTheServerStoresNothing(t *testing.T) {
	on, _ := serve(t, []string{"home"})
	p := keep(t, on, "elsewhere", func(*journal.Journal) {})
	if err := records.NewStore(on, "mall", p.Name).Try(t.Context(), p, journal.New(p)); err != nil {
		t.Error(err)
	}
	if _, err := records.NewStore(on, "mall", "web").Plan(t.Context()); !errors.As(err, new(records.ErrNoPlan)) {
		t.Errorf("a dry run has stored the plan: %v", err)
	}
	other := *p
	other.ID = "web-other"
	if err := records.NewStore(on, "elsewhere", p.Name).Try(t.Context(), &other, journal.New(&other)); err == nil || !strings.Contains(err.Error(), "has another plan named web") {
		t.Errorf("in the place of another plan: %v", err)
	}
}
