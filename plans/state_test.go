package plans

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Every state has a row, so that no reader falls into a default.
func TestEveryStateHasARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "state.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for _, r := range stateRows {
		rows["State"+string(r.state)]++
		if r.tone == "" || r.course == "" || r.text == "" {
			t.Errorf("%s has an empty column: %+v", r.state, r)
		}
		if r.rests && r.course != CourseUser && r.course != CourseAnswer && r.course != CourseNone {
			t.Errorf("%s rests, and %s changes it next", r.state, r.course)
		}
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(c.Names[0].Name, "State") {
			declared++
			if name := c.Names[0].Name; rows[name] != 1 {
				t.Errorf("%s has %d rows, expected one", name, rows[name])
			}
		}
		return true
	})
	if declared != len(stateRows) {
		t.Errorf("%d states are declared, and the table has %d rows", declared, len(stateRows))
	}
}

func TestAPlanRestsAtAnOutcome(t *testing.T) {
	for _, o := range []Outcome{Moved, Split, Finalized, Aborted} {
		if !State(o).Rests() {
			t.Errorf("the outcome %s is no state at which a plan rests", o)
		}
	}
}
