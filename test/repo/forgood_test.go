package repo

import (
	"go/ast"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Whoever deletes what cannot be recreated must have read what its deletion depends on live (package reads). To forget it
// does not compile: neither with a kept object, nor with none, nor with the proof of another kind.
func TestToForgetALiveReadDoesNotCompile(t *testing.T) {
	source, err := os.ReadFile("test/repo/testdata/forgets/forgets.go")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "forgets", "-gcflags=-e", "./test/repo/testdata/forgets").CombinedOutput()
	if err == nil {
		t.Fatal("it compiles")
	}
	for _, m := range regexp.MustCompile(`(?m)forgets\.go:(\d+):`).FindAllStringSubmatch(string(out), -1) {
		refused[m[1]] = true
	}
	n := 0
	for k, line := range strings.Split(string(source), "\n") {
		at := k + 1
		switch want := strings.Contains(line, "// does not compile"); {
		case want && !refused[strconv.Itoa(at)]:
			t.Errorf("this compiles: %s", strings.TrimSpace(line))
		case !want && refused[strconv.Itoa(at)]:
			t.Errorf("this does not compile: %s\n%s", strings.TrimSpace(line), out)
		case want:
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d lines are refused, expected 10", n)
	}
}

// mayDelete returns the files that may delete an object themselves, and why. All others do it with package writes.
func mayDelete() map[string]string {
	return map[string]string{
		"internal/writes/delete.go":    "the deletion of exactly one object",
		"internal/clusters/recent.go":  "a layer passes it on",
		"internal/clusters/slices.go":  "a layer passes it on",
		"internal/dns/syncer.go":       "EndpointSlices of this program, in the exact version",
		"internal/records/declared.go": "the object of a plan that is over, whatever its version",
		"orchestrator/draft.go":        "a Store deletes its ConfigMaps",
	}
}

func TestObjectsAreDeletedByPackageWritesAlone(t *testing.T) {
	unused := map[string]bool{}
	for file := range mayDelete() {
		unused[file] = true
	}
	for file, parsed := range productFiles(t) {
		if strings.HasPrefix(file, "slicecontroller/") {
			continue // its pods are its own
		}
		if !deletes(parsed) {
			continue
		}
		if _, may := mayDelete()[file]; !may {
			t.Errorf("%s deletes an object itself: use package writes", file)
		}
		delete(unused, file)
	}
	for file := range unused {
		t.Errorf("%s deletes nothing any more", file)
	}
}

// deletes reports whether a file calls Delete or DeleteAllOf with a context, and not those of package writes.
func deletes(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "Delete" && s.Sel.Name != "DeleteAllOf" {
			return true
		}
		first, _ := call.Args[0].(*ast.Ident)
		of, _ := s.X.(*ast.Ident)
		found = found || first != nil && first.Name == "ctx" && (of == nil || of.Name != "writes")
		return true
	})
	return found
}
