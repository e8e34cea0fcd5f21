package clusters

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The order of the layers is explained in one file, and is as it says as long as no other one makes a layer.
func TestLayersAreStackedInOnePlace(t *testing.T) {
	wraps, makes := layers(t)
	for _, layer := range []string{"Connection", "Gone", "sliceClient", "rehearsalClient", "listedClient", "keepingClient", "manyClient", "lenientClient"} {
		if !wraps[layer] {
			t.Errorf("%s is no client around a client: say so in layers.go", layer)
		}
		delete(wraps, layer)
		in := slices.DeleteFunc(makes[layer], func(file string) bool { return file == "layers.go" || file == "connect.go" && layer == "Connection" })
		if len(in) > 0 {
			t.Errorf("%v make a %s: do it in layers.go", in, layer)
		}
	}
	for other := range wraps {
		t.Errorf("%s is a client around a client: give it its place in layers.go", other)
	}
}

// isClient reports whether a field embeds a client.
func isClient(f *ast.Field) bool {
	of, ok := f.Type.(*ast.SelectorExpr)
	return ok && len(f.Names) == 0 && of.Sel.Name == "Client"
}

// layers returns the types that are a client around another one, and the files that make a value of each type.
func layers(t *testing.T) (wraps map[string]bool, makes map[string][]string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	wraps, makes = map[string]bool{}, map[string][]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if of, ok := n.Type.(*ast.StructType); ok && slices.ContainsFunc(of.Fields.List, isClient) {
					wraps[n.Name.Name] = true
				}
			case *ast.CompositeLit:
				if of, ok := n.Type.(*ast.Ident); ok {
					makes[of.Name] = append(makes[of.Name], file)
				}
			}
			return true
		})
	}
	return wraps, makes
}
