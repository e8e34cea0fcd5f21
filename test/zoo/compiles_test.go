package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// A variant that does not compile would be found on the day on which it is played.
func TestEveryVariantCompiles(t *testing.T) {
	byFolder := inGo(t)
	var folders []string
	for folder := range byFolder {
		folders = append(folders, "./"+folder)
	}
	packages := compiled(t, folders)
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	product, fset := newProduct(root), token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})
	for _, p := range packages {
		folder, err := filepath.Rel(here, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]*ast.File{}
		for _, v := range byFolder[folder] {
			if len(files) == 0 {
				for _, name := range p.GoFiles {
					files[name] = parsed(t, fset, filepath.Join(p.Dir, name), nil)
				}
			}
			path, text, err := product.broken(v)
			if err != nil {
				t.Error(err)
				continue
			}
			name := filepath.Base(path)
			whole := []*ast.File{parsed(t, fset, v.ID+".go", text)}
			for other, f := range files {
				if other != name {
					whole = append(whole, f)
				}
			}
			conf := types.Config{Importer: imports}
			if _, err := conf.Check(p.ImportPath, fset, whole, nil); err != nil {
				t.Errorf("%s does not compile: %v", v.ID, err)
			}
		}
	}
}

// inGo returns the variants that change Go, by the folders of the packages. The others change a text that is embedded.
func inGo(t *testing.T) map[string][]variant {
	t.Helper()
	all, err := variants()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]variant{}
	for _, v := range all {
		if v.In != "" || filepath.Ext(v.File) == ".go" {
			out[v.folder()] = append(out[v.folder()], v)
		}
	}
	return out
}

func parsed(t *testing.T, fset *token.FileSet, name string, text any) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
	}
	return f
}

// listed is a package as the go command describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// compiled returns the packages of some folders, and all that they import, by import path.
func compiled(t *testing.T, folders []string) map[string]listed {
	t.Helper()
	slices.Sort(folders)
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, folders...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	packages := map[string]listed{}
	for from := json.NewDecoder(out); ; {
		var p listed
		err := from.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return packages
}
