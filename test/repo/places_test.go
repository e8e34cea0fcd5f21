package repo

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"testing"
)

// places returns how often each package may ask whether both sides of a plan are in one cluster. That is a question about
// the place: which names there are, which lists and nodes are read, which mode a plan gets. What becomes of a volume is a
// question about its mode (plans.Mode, storage/handover.go). A figure may only fall.
func places() map[string]int {
	return map[string]int{
		"clusters":           3,
		"cmd/internal/live":  1,
		"cmd/internal/reach": 1,
		"cmd/stsmigrate":     1,
		"engine":             2,
		"engine/requests":    1,
		"engine/verify":      1,
		"engine/wavelimit":   1,
		"placeholder":        1,
		"plans":              5,
		"plans/journal":      3,
		"preflight":          2,
		"preflight/access":   4,
		"preflight/expanded": 1,
		"preflight/owners":   5,
		"preflight/pods":     6,
		"preflight/volumes":  14,
		"sets":               1,
		"sets/copies":        3,
		"storage":            6,
	}
}

func TestThePlaceIsAskedForWhereThePlaceIsMeant(t *testing.T) {
	found := map[string]int{}
	for file, parsed := range productFiles(t) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "OneCluster" {
				found[short(path.Dir(file))]++
			}
			return true
		})
	}
	may := places()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if have := found[name]; have > may[name] {
			t.Errorf("%s asks %d times whether both sides are in one cluster, expected at most %d: ask the mode of the volume, or name what about the place it is", name, have, may[name])
		}
	}
	for name, limit := range may {
		if found[name] < limit {
			t.Errorf("%s asks %d times whether both sides are in one cluster: lower its limit of %d", name, found[name], limit)
		}
	}
}
