package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// product finds declarations in the packages below root, whichever file they are in.
type product struct {
	root     string
	packages map[string][]source
}

// source is a file of a package.
type source struct {
	path string // below the root
	text string
	tree *ast.File
}

// place is a declaration in its file.
type place struct {
	source
	decl ast.Node
}

// cut returns the text between two positions.
func (s source) cut(from, to token.Pos) string {
	if !from.IsValid() {
		return ""
	}
	return s.text[from-1 : to-1]
}

// with returns the text with other text between two positions.
func (s source) with(from, to token.Pos, text string) string {
	return s.text[:from-1] + text + s.text[to-1:]
}

func newProduct(root string) *product {
	return &product{root, map[string][]source{}}
}

// places returns what has a name, such as "plans/journal Journal.Apply": the folder of a package, and a function, a
// method, a variable, a constant or a type in it. A name may be declared once for each platform. What belongs to
// another type now is found by its last part, if nothing else in the package ends in it.
func (p *product) places(in string) ([]place, error) {
	folder, name, _ := strings.Cut(in, " ")
	files, err := p.files(folder)
	if err != nil {
		return nil, err
	}
	all := map[string][]place{}
	for _, f := range files {
		for _, d := range f.tree.Decls {
			for decl, called := range declared(d) {
				all[called] = append(all[called], place{f, decl})
			}
		}
	}
	if all[name] != nil {
		return all[name], nil
	}
	var alike []string
	for called := range all {
		if last(called) == last(name) {
			alike = append(alike, called)
		}
	}
	if len(alike) != 1 {
		return nil, fmt.Errorf("package %s declares no %q, and %d others that end so", folder, name, len(alike))
	}
	return all[alike[0]], nil
}

// last returns a name without the type that it belongs to.
func last(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// files returns the files of a package, without its tests. Each is read once.
func (p *product) files(folder string) ([]source, error) {
	if files, have := p.packages[folder]; have {
		return files, nil
	}
	paths, err := filepath.Glob(filepath.Join(p.root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []source
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		// In a set of its own, a position is the offset in the file and one.
		tree, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		out = append(out, source{filepath.Join(folder, filepath.Base(path)), string(text), tree})
	}
	p.packages[folder] = out
	return out, nil
}

// declared returns the parts of a declaration by which something gets a name, and those names.
func declared(d ast.Decl) map[ast.Node]string {
	out := map[ast.Node]string{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		out[d] = d.Name.Name
		if d.Recv != nil {
			out[d] = receiver(d.Recv.List[0].Type) + "." + d.Name.Name
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				out[s] = s.Names[0].Name
			case *ast.TypeSpec:
				out[s] = s.Name.Name
			}
		}
	}
	return out
}

// receiver returns the name of the type of a receiver, without its pointer and its parameters.
func receiver(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
