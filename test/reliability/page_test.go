package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

var update = flag.Bool("update", false, "write the pages and their picture anew, from the stored results")

const root = "../.."

func stores(t *testing.T) (results, known) {
	t.Helper()
	all, err := read(filepath.Join(root, stored))
	if err != nil {
		t.Fatal(err)
	}
	k, err := readTables(filepath.Join(root, tables))
	if err != nil {
		t.Fatal(err)
	}
	return all, k
}

// The pages say what the stored results and tables say.
func TestThePagesAreAsGenerated(t *testing.T) {
	all, k := stores(t)
	users, long := write(all, k)
	for name, want := range map[string]string{page: users, beside: long, matrix: draw(all).String()} {
		compareFile(t, filepath.Join(root, name), want)
	}
}

func compareFile(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("%s is stale: run go test ./test/reliability -update (-have +want):\n%s", file, diff)
	}
}

// The golden pages are made of fixed results: of each part one line that was played whole, in part, or failed.
func TestPagesOfFixedResults(t *testing.T) {
	var all results
	for _, l := range []tally.Line{
		{Part: writes, World: "reimport", Case: "a fault: answer lost", Played: "oooo", Seconds: 60, Commit: "aaaaaaa"},
		{Part: writes, World: "reimport", Case: "a fault: refused with 500", Played: "o.X.", Seconds: 120, Commit: "aaaaaaa"},
		{Part: planes, World: "rebind", Case: "is refused with 409", Played: "..o", Commit: "bbbbbbb"},
		{Part: states, Of: 3, Commit: "aaaaaaa"},
		{Part: states, World: "one ordinal, rebind", Number: 1234, Whole: true, Commit: "aaaaaaa"},
		{Part: states, World: "three ordinals, rebind", Number: 300000, Commit: "aaaaaaa"},
		{Part: schedules, World: "rebind", Seeds: []tally.Seeds{{First: 1, Last: 50}}, Of: 2500, Commit: "aaaaaaa"},
		{Part: pairs, World: "rebind", Seeds: []tally.Seeds{{First: 7, Last: 7}}, Of: 10, Failed: true, Commit: "aaaaaaa"},
		{Part: zoo, World: "storage", Of: 3, Commit: "aaaaaaa"},
		{Part: zoo, World: "storage", Case: "storage-01", Commit: "aaaaaaa"},
		{Part: zoo, World: "storage", Case: "storage-02", Failed: true, Commit: "aaaaaaa"},
		{Part: fuzzing, World: "pdb", Case: "FuzzBudgets", Number: 1234567, Commit: "aaaaaaa"},
	} {
		all = all.with(l)
	}
	k := known{
		Promises: []promise{{ID: "S1", Promise: "One identity", Tests: []string{"storage TestVacate"}}},
		World:    []happening{{What: "gates", How: "they answer no", Tests: []string{"internal/gates TestThem"}}},
		Bugs:     []bug{{Found: "zoo", What: "a guard without a test", Fix: "it has one", Decision: 109}},
	}
	users, long := write(all, k)
	compareFile(t, "testdata/page.md", users)
	compareFile(t, "testdata/tables.md", long)
	compareFile(t, "testdata/page.svg", draw(all).String())
}

func TestLinesOfOneCommitAreOne(t *testing.T) {
	var r results
	for _, l := range []tally.Line{
		{Part: writes, World: "w", Case: "c", Played: "o...", Seconds: 1, Commit: "a"},
		{Part: writes, World: "w", Case: "c", Played: ".oX.", Seconds: 1, Commit: "a"},
		{Part: writes, World: "w", Case: "c", Played: "..o.", Seconds: 1, Commit: "a"},
		{Part: schedules, World: "w", Seeds: []tally.Seeds{{First: 11, Last: 20}}, Commit: "a"},
		{Part: schedules, World: "w", Seeds: []tally.Seeds{{First: 1, Last: 10}}, Commit: "a"},
		{Part: schedules, World: "w", Seeds: []tally.Seeds{{First: 31, Last: 40}}, Failed: true, Commit: "a"},
		{Part: states, World: "old", Number: 5, Failed: true, Commit: "a"},
		{Part: states, World: "old", Number: 3, Commit: "b"},
	} {
		r = r.with(l)
	}
	want := results{
		{Part: schedules, World: "w", Seeds: []tally.Seeds{{First: 1, Last: 20}, {First: 31, Last: 40}}, Failed: true, Commit: "a"},
		{Part: states, World: "old", Number: 3, Commit: "b"},
		{Part: writes, World: "w", Case: "c", Played: "ooX.", Seconds: 3, Commit: "a"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	file := filepath.Join(t.TempDir(), "results.json")
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	again, err := read(file)
	if diff := cmp.Diff(r, again); diff != "" || err != nil {
		t.Errorf("read again: %v\n%s", err, diff)
	}
}

// Every sentence of the README about what this program does, and every invariant, has a test that fails for it.
func TestEveryPromiseHasATest(t *testing.T) {
	_, k := stores(t)
	readme, invariants := text(t, "README.md"), text(t, "docs/invariants.md")
	var promised []string
	for _, p := range k.Promises {
		switch row := regexp.MustCompile(`(?m)^\| ` + p.ID + `\b.*$`).FindString(invariants); {
		case p.ID == "" && !strings.Contains(readme, p.Promise):
			t.Errorf("README.md does not say %q", p.Promise)
		case p.ID != "" && !strings.Contains(row, p.Promise):
			t.Errorf("docs/invariants.md does not promise %q as %s", p.Promise, p.ID)
		}
		if p.ID == "" {
			promised = append(promised, p.Promise)
		} else {
			promised = append(promised, p.ID)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([SL]\d+)\b`).FindAllStringSubmatch(invariants, -1) {
		if !slices.Contains(promised, m[1]) {
			t.Errorf("nothing fails when %s is broken: give it a row in %s/promises.yaml", m[1], tables)
		}
	}
	_, does, _ := strings.Cut(readme, "## What it does, and what not ")
	does, _, _ = strings.Cut(does, " ## ")
	for _, sentence := range strings.Split(does, "- ")[1:] {
		if !slices.ContainsFunc(k.Promises, func(p promise) bool { return p.ID == "" && strings.Contains(sentence, p.Promise) }) {
			t.Errorf("nothing fails when README.md is wrong about %q: give it a row in %s/promises.yaml", sentence, tables)
		}
	}
}

// text returns a page on one line, so that a sentence may be wrapped in it.
func text(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(name, "docs/") {
		return string(raw)
	}
	return strings.Join(strings.Fields(string(raw)), " ")
}

// A test that was renamed shows nothing any more.
func TestEveryNamedTestIsThere(t *testing.T) {
	_, k := stores(t)
	var names []string
	for _, p := range k.Promises {
		names = append(names, p.Tests...)
	}
	for _, h := range k.World {
		names = append(names, h.Tests...)
	}
	for _, n := range names {
		folder, name, _ := strings.Cut(n, " ")
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(f string) bool {
			raw, err := os.ReadFile(f)
			return err == nil && strings.Contains(string(raw), "func "+name+"(t *testing.T)")
		}) {
			t.Errorf("folder %s has no test %s", folder, name)
		}
	}
	for _, h := range k.World {
		if h.What == "" || h.How == "" || len(h.Tests) == 0 {
			t.Errorf("%+v: expected what happens, how, and its tests", h)
		}
	}
	for _, b := range k.Bugs {
		if b.Found == "" || b.What == "" || b.Fix == "" {
			t.Errorf("%+v: expected who found it, what it was, and what was done", b)
		}
	}
}

// What the Makefile fuzzes is what the page counts.
func TestTheFuzzTestsOfTheMakefileAreFound(t *testing.T) {
	t.Chdir(root)
	all, err := targets()
	if err != nil || len(all) < 5 || all[0] != [2]string{"./plans/journal", "FuzzJournal"} {
		t.Errorf("found %v, %v", all, err)
	}
}
