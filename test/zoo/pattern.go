package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// pattern is a piece of Go: an expression, or elements, statements or cases that follow one another. It is compared as
// a syntax tree, so layout and comments do not count. In it
//
//   - ... stands for anything: in a list for any number of elements, elsewhere for one expression
//   - "..." stands for any string
//   - a name that the declaration has not stands for any one name, the same one everywhere.
//
// The last is for names that were changed after the pattern was written.
type pattern []reflect.Value

// anything is what ... is while a pattern is parsed.
const anything = "anything_"

// readings are what a piece of Go can be: what is put around it, and where it stands in that.
func readings() []reading {
	body := func(x ast.Expr) []ast.Stmt { return x.(*ast.FuncLit).Body.List }
	return []reading{
		{"_{", "}", func(x ast.Expr) any { return x.(*ast.CompositeLit).Elts }},
		{"func() {\n", "\n}", func(x ast.Expr) any { return body(x) }},
		{"func() { switch {\n", "\n}}", func(x ast.Expr) any { return body(x)[0].(*ast.SwitchStmt).Body.List }},
		{"func() { select {\n", "\n}}", func(x ast.Expr) any { return body(x)[0].(*ast.SelectStmt).Body.List }},
	}
}

type reading struct {
	before, after string
	inside        func(ast.Expr) any
}

// parsePattern reads a piece of Go as the first that it can be.
func parsePattern(text string) (pattern, error) {
	text = rewritten(text, func(tok token.Token, lit string) string {
		if tok == token.ELLIPSIS {
			return anything
		}
		return lit
	})
	var errs []error
	for _, r := range readings() {
		x, err := parser.ParseExpr(r.before + text + r.after)
		if err == nil {
			return elements(reflect.ValueOf(r.inside(x))), nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("%q is no piece of Go: %w", text, errors.Join(errs[:2]...))
}

// rewritten returns Go with f of its names, of its strings, and of the ... that stand for anything.
func rewritten(text string, f func(token.Token, string) string) string {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	var out strings.Builder
	done := 0
	for {
		pos, tok, lit := s.Scan()
		at := file.Offset(pos)
		switch {
		case tok == token.EOF:
			return out.String() + text[done:]
		case tok == token.ELLIPSIS && standsAlone(text, at):
			lit = "..."
		case tok != token.IDENT && tok != token.STRING:
			continue
		}
		out.WriteString(text[done:at])
		out.WriteString(f(tok, lit))
		done = at + len(lit)
	}
}

// standsAlone tells the ... of a pattern from that of f(list...), func(list ...string) and [...]string.
func standsAlone(text string, at int) bool {
	before, after := text[:at], text[at+len("..."):]
	return (before == "" || strings.ContainsAny(before[at-1:], " \t\n({,;!")) && (after == "" || strings.ContainsAny(after[:1], " \t\n)},;:."))
}

// hit is a place that matches a pattern.
type hit struct {
	from, to token.Pos
	parent   ast.Node
	listed   bool // it is a part of a list
	meaning
}

// meaning is what the free parts of a pattern stand for in a hit.
type meaning struct {
	known map[string]bool   // the names in the declaration
	names map[string]string // by the names of the pattern that the declaration has not
	gaps  [][2]token.Pos    // in the order of the text. An empty list has no positions.
}

// find returns where a pattern matches in a declaration.
func (p pattern) find(decl ast.Node) []hit {
	known := map[string]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			known[id.Name] = true
		}
		return true
	})
	var out []hit
	visit(decl, func(list []reflect.Value, parent ast.Node, listed bool) {
		for from := range list {
			for to := from + 1; to <= len(list); to++ {
				m := meaning{known, map[string]string{}, nil}
				if m.list(p, list[from:to]) {
					at := span(list[from:to])
					out = append(out, hit{at[0], at[1], parent, listed, m})
					break
				}
			}
		}
	})
	return out
}

// visit calls f for every child and every list of children in a tree.
func visit(top ast.Node, f func(list []reflect.Value, parent ast.Node, listed bool)) {
	ast.Inspect(top, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		of := reflect.ValueOf(n).Elem()
		for k := range of.NumField() {
			field := of.Field(k)
			if field.Kind() == reflect.Slice {
				f(elements(field), n, true)
			} else if _, ok := field.Interface().(ast.Node); ok && !field.IsNil() {
				f([]reflect.Value{field}, n, false)
			}
		}
		return true
	})
}

func elements(list reflect.Value) []reflect.Value {
	out := make([]reflect.Value, list.Len())
	for k := range out {
		out[k] = list.Index(k)
	}
	return out
}

// span returns from where to where some nodes reach.
func span(nodes []reflect.Value) [2]token.Pos {
	if len(nodes) == 0 {
		return [2]token.Pos{}
	}
	return [2]token.Pos{nodes[0].Interface().(ast.Node).Pos(), nodes[len(nodes)-1].Interface().(ast.Node).End()}
}

// list reports whether a list matches one of a pattern.
func (m *meaning) list(p, list []reflect.Value) bool {
	if len(p) == 0 {
		return len(list) == 0
	}
	if isAnything(p[0].Interface()) {
		for n := range len(list) + 1 {
			try := meaning{m.known, maps.Clone(m.names), append(slices.Clone(m.gaps), span(list[:n]))}
			if try.list(p[1:], list[n:]) {
				*m = try
				return true
			}
		}
		return false
	}
	return len(list) > 0 && m.same(p[0], list[0]) && m.list(p[1:], list[1:])
}

// same reports whether a part of a tree matches one of a pattern.
func (m *meaning) same(p, x reflect.Value) bool {
	switch kind := p.Kind(); {
	case kind == reflect.Slice:
		return m.list(elements(p), elements(x))
	case kind == reflect.Struct:
		return m.fields(p, x)
	case kind != reflect.Interface && kind != reflect.Pointer:
		return p.Equal(x)
	case p.IsNil() || x.IsNil():
		return p.IsNil() && x.IsNil()
	}
	return m.node(p, x)
}

func (m *meaning) fields(p, x reflect.Value) bool {
	for k := range p.NumField() {
		a, b := p.Field(k), x.Field(k)
		if _, position := a.Interface().(token.Pos); position {
			// Where it stands does not count, except that f(list...) is not f(list).
			if p.Type().Field(k).Name == "Ellipsis" && a.IsZero() != b.IsZero() {
				return false
			}
		} else if !m.same(a, b) {
			return false
		}
	}
	return true
}

func (m *meaning) node(p, x reflect.Value) bool {
	if isAnything(p.Interface()) {
		m.gaps = append(m.gaps, span([]reflect.Value{x}))
		return true
	}
	if p.Kind() == reflect.Interface {
		p, x = p.Elem(), x.Elem()
	}
	if p.Type() != x.Type() {
		return false
	}
	switch n := x.Interface().(type) {
	case *ast.Ident:
		return m.name(p.Interface().(*ast.Ident).Name, n.Name)
	case *ast.BasicLit:
		if n.Kind == token.STRING && p.Interface().(*ast.BasicLit).Value == `"..."` {
			m.gaps = append(m.gaps, span([]reflect.Value{x}))
			return true
		}
	}
	return m.same(p.Elem(), x.Elem())
}

// name reports whether a name may stand for another one.
func (m *meaning) name(of, is string) bool {
	if of == is || m.known[of] || types.Universe.Lookup(of) != nil || types.Universe.Lookup(is) != nil {
		return of == is
	}
	if now, have := m.names[of]; have {
		return now == is
	}
	if slices.Contains(slices.Collect(maps.Values(m.names)), is) {
		return false
	}
	m.names[of] = is
	return true
}

// isAnything reports whether a node of a pattern is three dots.
func isAnything(n any) bool {
	switch n := n.(type) {
	case *ast.Ident:
		return n != nil && n.Name == anything
	case *ast.ExprStmt:
		return isAnything(n.X)
	case *ast.Field:
		return len(n.Names) == 0 && isAnything(n.Type)
	}
	return false
}
