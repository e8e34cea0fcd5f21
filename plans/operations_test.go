package plans

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"
)

// Every operation has a row, and every column of it that has no word for "none" is filled.
func TestEveryOperationAnswersEveryQuestion(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "operations.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for _, r := range operations {
		have[string(r.op)]++
		v := reflect.ValueOf(r)
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "span" && name != "gate" {
				t.Errorf("%s has no %s", r.op, name)
			}
		}
		if (r.position == NoWave) != (r.scope != OfWave) || (r.phase == Moves) != (r.scope == OfWave) {
			t.Errorf("%s %s for a %s and is at position %d of a wave: expected all of a wave, or nothing", r.op, r.phase, r.scope, r.position)
		}
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := c.Type.(*ast.Ident); ok && kind.Name == "Op" {
				declared++
				if name := c.Names[0].Name; have[name] != 1 {
					t.Errorf("%s has %d rows, expected one", name, have[name])
				}
			}
		}
		return true
	})
	if declared != len(operations) {
		t.Errorf("%d operations are declared, and the table has %d rows", declared, len(operations))
	}
}

// The rows of a wave are in the order of its way: it stays, leaves, is on neither side, arrives.
func TestTheOperationsOfAWaveAreInTheOrderOfItsWay(t *testing.T) {
	last := NoWave
	for _, op := range Moves.in() {
		if op.Position() < last {
			t.Errorf("%s is at position %d, after one at position %d", op, op.Position(), last)
		}
		last = op.Position()
		// S6: claims and pods are touched only while the ordinals are outside the ranges
		if between := last == WaveStops || last == WaveAway; op.Guarded() != between {
			t.Errorf("%s: guarded is %t, expected %t", op, op.Guarded(), between)
		}
		// a pause takes effect only where nothing is in flight
		if op.Boundary() != op.Tightens() {
			t.Errorf("%s: a pause takes effect before it: %t, expected it before the first operation of a wave alone", op, op.Boundary())
		}
	}
}
