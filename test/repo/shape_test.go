package repo

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"testing"
)

// The limits of what a reader has to keep in mind: the methods of a type, the files over which they are spread, the
// fields of a struct, the parameters of a function.
const (
	maxMethods    = 40
	maxSpread     = 6
	maxFields     = 16
	maxParameters = 5
)

// figures are those of a type.
type figures struct{ methods, spread, fields int }

// seams lists what is above these limits, with the figures that it must not exceed. Each line is a concept that is not
// carved out yet. A line goes as soon as it is no longer needed.
func seams() map[string]figures {
	return map[string]figures{
		"api/v1alpha1.StatefulSetMigrationSpec": {0, 0, 17}, // a choice of the user is one
		"cmd/internal/reach.Flags":              {34, 7, 6},
		"cmd/stsmigrate.app":                    {101, 31, 20}, // a method per command
		"engine.View":                           {9, 3, 41},    // one of the read models of a plan
		"engine.run":                            {28, 8, 12},   // beside Engine, what a run does around its steps
		"engine/runner.Runner":                  {16, 2, 22},
		"orchestrator.Options":                  {0, 0, 20},
		"orchestrator.Setup":                    {0, 0, 17},
		"orchestrator/notify.State":             {0, 0, 17},   // one of the read models of a plan
		"plans.Plan":                            {40, 11, 27}, // what it is asked, and the fields of its file: a choice of the user is one
		"plans.StepContext":                     {2, 1, 19},
		"plans/build.Inputs":                    {6, 2, 20},  // and one of these
		"plans/journal.Journal":                 {57, 8, 36}, // what is saved, and what is reported
		"report.Report":                         {7, 1, 30},  // one of the read models of a plan
		"report.drawing":                        {1, 1, 22},  // one of the read models of a plan
		"view.Migration":                        {12, 3, 24}, // one of the read models of a plan
	}
}

// crowded lists the functions with more parameters than the limit, and how many they have.
func crowded() map[string]int {
	return map[string]int{
		"cmd/internal/rehearsal.Turn":   6,
		"report.New":                    6,
		"cmd/internal/live.WatchList":   6,
		"cmd/internal/program.Duration": 6,
		"cmd/stsmigrate.app.conclude":   6,
		"engine.Status":                 6,
		"preflight.Survey":              6,
		"records.NewHeartbeat":          6,
	}
}

func TestTypesAreOfASizeThatOneKeepsInMind(t *testing.T) {
	found, _ := measured(t)
	listed := seams()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		have, most := found[name], figures{maxMethods, maxSpread, maxFields}
		limit := listed[name]
		if over := have.methods > most.methods || have.spread > most.spread || have.fields > most.fields; !over {
			if limit != (figures{}) {
				t.Errorf("%s is within the limits now: take it out of seams", name)
			}
			continue
		}
		most = figures{max(most.methods, limit.methods), max(most.spread, limit.spread), max(most.fields, limit.fields)}
		if have.methods > most.methods || have.spread > most.spread || have.fields > most.fields {
			t.Errorf("%s has %d methods in %d files, and %d fields; expected at most %d in %d, and %d: name the concept that is missing", name, have.methods, have.spread, have.fields, most.methods, most.spread, most.fields)
		}
	}
	for name := range listed {
		if _, there := found[name]; !there {
			t.Errorf("%s does not exist any more: take it out of seams", name)
		}
	}
}

func TestFunctionsHaveFewParameters(t *testing.T) {
	_, parameters := measured(t)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		have, most := parameters[name], max(maxParameters, crowded()[name])
		if have > most {
			t.Errorf("%s has %d parameters, expected at most %d: name what they are together", name, have, most)
		}
	}
	for name, limit := range crowded() {
		if parameters[name] <= maxParameters || parameters[name] < limit {
			t.Errorf("%s has %d parameters: take it out of crowded, or lower its limit", name, parameters[name])
		}
	}
}

// measured returns the figures of every type of the product, and the parameters of every function.
func measured(t *testing.T) (map[string]figures, map[string]int) {
	t.Helper()
	types, parameters, files := map[string]figures{}, map[string]int{}, map[string]map[string]bool{}
	for file, parsed := range productFiles(t) {
		if ast.IsGenerated(parsed) {
			continue
		}
		in := short(path.Dir(file)) + "."
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if one, ok := s.(*ast.TypeSpec); ok {
						if of, ok := one.Type.(*ast.StructType); ok {
							f := types[in+one.Name.Name]
							f.fields = of.Fields.NumFields()
							types[in+one.Name.Name] = f
						}
					}
				}
			case *ast.FuncDecl:
				name := in + d.Name.Name
				if d.Recv != nil {
					receiver := in + receiverOf(d.Recv.List[0].Type)
					f := types[receiver]
					f.methods++
					if files[receiver] == nil {
						files[receiver] = map[string]bool{}
					}
					files[receiver][file] = true
					f.spread = len(files[receiver])
					types[receiver], name = f, receiver+"."+d.Name.Name
				}
				parameters[name] = d.Type.Params.NumFields()
				if n := len(d.Type.Params.List); n > 0 && fmt.Sprint(d.Type.Params.List[0].Type) == "&{context Context}" {
					parameters[name]-- // every read has one
				}
			}
		}
	}
	return types, parameters
}

// receiverOf returns the name of the type of a receiver.
func receiverOf(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiverOf(of.X)
	case *ast.IndexExpr:
		return receiverOf(of.X)
	case *ast.IndexListExpr:
		return receiverOf(of.X)
	case *ast.Ident:
		return of.Name
	}
	return fmt.Sprintf("%T", of)
}
