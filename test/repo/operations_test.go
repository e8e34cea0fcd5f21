package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path"
	"slices"
	"testing"

	"github.com/stsmigrate/stsmigrate/plans"
)

// ownerOf returns the package of a part of a move.
func ownerOf(part plans.Part) string {
	return map[plans.Part]string{plans.Budgets: "pdb", plans.Gating: "gates", plans.Sets: "sets", plans.Volumes: "storage"}[part]
}

// mayName returns the files outside of a part that may name its operations, and why.
func mayName() map[string]string {
	return map[string]string{
		"internal/engine/engine.go":          "gives each operation its look",
		"internal/engine/fence.go":           "Thaw is the only step after Unshare",
		"internal/engine/verify/rules.go":    "the facts about a set and its volumes while they are given back",
		"internal/engine/verify/rollouts.go": "a set may be pinned until Retire",
		"plans/preview/writes.go":            "Freeze saves the old values of each set",
		"internal/dns/part.go":               "the bridge of names is made with Freeze, and taken away with Thaw",
		"internal/sets/copies/part.go":       "copies are made with Freeze, and given up with Thaw",
		"internal/placeholder/part.go":       "a placeholder goes when its ordinal has left, which Vacate proves",
		"pdb/part.go":                        "budgets are given back with Thaw",
		"cmd/stsmigrate/ends.go":             "the way back ends with Retire",
		"cmd/internal/live/changes.go":       "the event of an arrival is that of Grow",
	}
}

// What an operation is like is a column of the table in plans/operations.go. A question that is asked by naming operations
// elsewhere would be answered with a silent "no" for the next one that is added.
func TestOperationsAreNamedByTheirPartAlone(t *testing.T) {
	unused := map[string]bool{}
	for file := range mayName() {
		unused[file] = true
	}
	for file, parsed := range productFiles(t) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			op := plans.Op(s.Sel.Name)
			if from, ok := s.X.(*ast.Ident); !ok || from.Name != "plans" || !slices.Contains(plans.Ops(), op) {
				return true
			}
			owner := ownerOf(op.Part())
			if owner == "" {
				t.Fatalf("%s is an operation of the part %q, which has no package", op, op.Part())
			}
			if _, may := mayName()[file]; may {
				delete(unused, file)
			} else if short(path.Dir(file)) != owner {
				t.Errorf("%s names plans.%s, an operation of %s: ask a column of plans/operations.go", file, op, owner)
			}
			return true
		})
	}
	for file := range unused {
		t.Errorf("%s names no operation any more", file)
	}
}

// productFiles returns the hand-written Go files of the product, without tests, as they are parsed.
func productFiles(t *testing.T) iter.Seq2[string, *ast.File] {
	t.Helper()
	return func(yield func(string, *ast.File) bool) {
		more := true
		product(t, func(path string, raw []byte) {
			if !more {
				return
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, raw, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			more = yield(path, parsed)
		})
	}
}
