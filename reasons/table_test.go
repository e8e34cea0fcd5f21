package reasons_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/reasons"
)

var update = flag.Bool("update", false, "write docs/reasons.md anew") //nolint:gochecknoglobals // a flag of the test

func table(t *testing.T) []reasons.Explanation {
	t.Helper()
	all, err := reasons.Table()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// declared returns the IDs of ids.go.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "ids.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			value, ok := v.Values[0].(*ast.BasicLit)
			if !ok || value.Value != fmt.Sprintf("%q", v.Names[0].Name) {
				t.Errorf("the ID of %s is another word", v.Names[0].Name)
			}
			out[v.Names[0].Name] = true
		}
		return true
	})
	return out
}

// used returns the IDs that the program attaches to a reason.
func used(t *testing.T) map[string]bool {
	t.Helper()
	out, mention := map[string]bool{}, regexp.MustCompile(`\breasons\.([A-Z]\w+)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "test" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		for _, m := range mention.FindAllStringSubmatch(string(raw), -1) {
			out[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An ID without an explanation, or one that no code attaches, leaves a user alone at night.
func TestEveryIDIsExplainedAndUsed(t *testing.T) {
	ids, mentions, explained := declared(t), used(t), map[string]bool{}
	for _, e := range table(t) {
		if explained[string(e.ID)] {
			t.Errorf("%s is explained twice", e.ID)
		}
		explained[string(e.ID)] = true
		if !ids[string(e.ID)] {
			t.Errorf("table/%s.yaml explains %s, which is no ID", e.Topic, e.ID)
		}
	}
	for id := range ids {
		if !explained[id] {
			t.Errorf("no table explains %s", id)
		}
		if !mentions[id] {
			t.Errorf("no code attaches %s to a reason", id)
		}
	}
}

// Conditions and Events of Kubernetes accept these words as their reason.
func TestEveryExplanationIsComplete(t *testing.T) {
	word := regexp.MustCompile(`^[A-Z][A-Za-z]{3,40}$`)
	for _, e := range table(t) {
		if !word.MatchString(string(e.ID)) || !strings.HasSuffix(e.What, ".") || !strings.HasSuffix(e.Unchanged, ".") || len(e.Do) == 0 {
			t.Errorf("%+v: expected an ID of letters, two sentences, and a command", e)
		}
		for _, a := range e.Do {
			if a.Run == "" || a.Why == "" || !strings.HasPrefix(a.Run, "stsmigrate ") && !strings.HasPrefix(a.Run, "kubectl ") {
				t.Errorf("%s: %+v: expected a command of stsmigrate or kubectl, and what it is for", e.ID, a)
			}
		}
	}
}

func TestAReasonIsFoundInAnyCase(t *testing.T) {
	e, ok := reasons.Find(table(t), "claimmounted")
	if !ok || e.ID != reasons.ClaimMounted || !strings.Contains(e.Text(), "What is unchanged:") {
		t.Errorf("%v, %+v", ok, e)
	}
	if e, ok := reasons.Find(table(t), "claim"); ok {
		t.Errorf("a part of an ID finds %s", e.ID)
	}
}

func TestAnErrorKeepsItsIDWhenItIsWrapped(t *testing.T) {
	cause := errors.New("full")
	err := fmt.Errorf("writing: %w", reasons.Because(reasons.WaitsForRoom, cause))
	if reasons.Of(err) != reasons.WaitsForRoom || !errors.Is(err, cause) || err.Error() != "writing: full" {
		t.Errorf("%v with ID %q", err, reasons.Of(err))
	}
	if reasons.Of(cause) != "" || reasons.Because(reasons.WaitsForRoom, nil) != nil {
		t.Error("an error without an ID has one, or no error has become one")
	}
	if got := reasons.Tagged(reasons.Paused, "it rests"); got != "it rests [Paused]" {
		t.Error(got)
	}
	if got := reasons.Tagged("", "it rests"); got != "it rests" {
		t.Error(got)
	}
}

func TestThePageIsMadeOfTheTable(t *testing.T) {
	const page = "../docs/reasons.md"
	want := reasons.Page(table(t))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil || string(have) != want {
		t.Errorf("%s is not as generated (%v): go test ./reasons -update", page, err)
	}
}
