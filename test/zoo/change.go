package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// arrow separates what a change looks for from what it puts there.
var arrow = regexp.MustCompile(`\s->(\s+|$)`)

// broken returns the file that a variant changes, below the root, and its new text.
func (p *product) broken(v variant) (path, text string, err error) {
	if v.In == "" {
		path, text, err = p.literal(v)
	} else {
		path, text, err = p.broke(v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", v.ID, err)
	}
	return path, text, err
}

// literal changes a text that is not Go, or that no pattern describes.
func (p *product) literal(v variant) (path, text string, err error) {
	raw, err := os.ReadFile(filepath.Join(p.root, v.File))
	if err != nil {
		return "", "", err
	}
	if n := strings.Count(string(raw), v.Old); n != 1 || v.Old == v.New {
		return "", "", fmt.Errorf("its old text occurs %d times in %s, expected once, and to change", n, v.File)
	}
	return v.File, strings.Replace(string(raw), v.Old, v.New, 1), nil
}

// broke changes a declaration where a pattern matches.
func (p *product) broke(v variant) (path, text string, err error) {
	looked, with := v.Drop, ""
	if v.Drop == "" {
		at := arrow.FindStringIndex(v.Change)
		if at == nil {
			return "", "", errors.New("its change has no arrow")
		}
		looked, with = v.Change[:at[0]], v.Change[at[1]:]
	}
	in, h, err := p.found(v, looked)
	if err != nil {
		return "", "", err
	}
	if v.Drop != "" {
		text, err = h.dropped(in)
	} else {
		text, err = h.changed(in, with)
	}
	if err == nil && text == in.text {
		err = errors.New("it changes nothing")
	}
	return in.path, text, err
}

// found returns the one place of a declaration that a variant means.
func (p *product) found(v variant, looked string) (source, hit, error) {
	pat, err := parsePattern(looked)
	if err != nil {
		return source{}, hit{}, err
	}
	places, err := p.places(v.In)
	if err != nil {
		return source{}, hit{}, err
	}
	var in []source
	var hits []hit
	for _, at := range places {
		for _, h := range pat.find(at.decl) {
			in, hits = append(in, at.source), append(hits, h)
		}
	}
	k := max(v.Nth-1, 0)
	if k >= len(hits) || (v.Nth == 0) != (len(hits) == 1) {
		return source{}, hit{}, fmt.Errorf("what it looks for is %d times in %s, expected once (or nth to say which): %s", len(hits), v.In, looked)
	}
	return in[k], hits[k], nil
}

// changed returns the file with Go in the place of a hit, in which the free parts of the pattern mean what they mean
// there.
func (h hit) changed(in source, with string) (string, error) {
	gaps, used := h.gaps, 0
	text := rewritten(with, func(tok token.Token, lit string) string {
		switch {
		case tok == token.IDENT:
			if now, have := h.names[lit]; have {
				return now
			}
		case tok == token.ELLIPSIS || lit == `"..."`:
			if used++; used <= len(gaps) {
				return in.cut(gaps[used-1][0], gaps[used-1][1])
			}
		}
		return lit
	})
	if used > 0 && used != len(gaps) {
		return "", fmt.Errorf("%q has %d times ..., expected as many as what is looked for, or none", with, used)
	}
	if h.binds(with) {
		text = "(" + text + ")"
	}
	return in.with(h.from, h.to, text), nil
}

// binds reports whether what is around a hit would take a part of an expression that is put there.
func (h hit) binds(with string) bool {
	pat, err := parsePattern(with)
	if err != nil || len(pat) != 1 || h.listed {
		return false
	}
	x, ok := pat[0].Interface().(*ast.BinaryExpr)
	if !ok {
		return false
	}
	switch around := h.parent.(type) {
	case *ast.BinaryExpr:
		return around.Op.Precedence() > x.Op.Precedence() || around.Op.Precedence() == x.Op.Precedence() && around.Y.Pos() == h.from
	case *ast.UnaryExpr, *ast.StarExpr, *ast.SelectorExpr, *ast.TypeAssertExpr:
		return true
	case *ast.CallExpr:
		return around.Fun.Pos() == h.from
	}
	return false
}

// dropped returns the file without a hit: statements, elements of a list, or one side of an operator.
func (h hit) dropped(in source) (string, error) {
	if x, ok := h.parent.(*ast.BinaryExpr); ok {
		other := x.X
		if other.Pos() == h.from {
			other = x.Y
		}
		return in.with(x.Pos(), x.End(), in.cut(other.Pos(), other.End())), nil
	}
	if _, statement := h.parent.(*ast.ExprStmt); !statement && !h.listed {
		return "", fmt.Errorf("nothing is left without %q", in.cut(h.from, h.to))
	}
	before, after := in.text[:h.from-1], in.text[h.to-1:]
	if rest, comma := strings.CutPrefix(strings.TrimLeft(after, " \t\n"), ","); comma {
		after = rest
	} else if rest, comma := strings.CutSuffix(strings.TrimRight(before, " \t\n"), ","); comma {
		before = rest
	}
	return before + after, nil
}
