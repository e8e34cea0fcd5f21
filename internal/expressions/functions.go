package expressions

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// maxText limits a text that a function returns, in bytes.
	maxText = 4 << 20
	// maxPattern limits a regular expression, in bytes.
	maxPattern = 1 << 10
	// maxRepeats limits the parts of a regular expression once its repetitions are written out.
	maxRepeats = 10_000
	// maxSums limits the additions of an expression, since each can make a list longer without any cost.
	maxSums = 16
)

// library returns what an expression may use. It is a choice: a call is only charged when it returns, so that only
// functions are in it whose own time and memory are in proportion to what they are given. With the macro map, a value
// could be made that has itself in it many times, which a comparison would take for ever to walk through.
func library() []cel.EnvOption {
	text := func(name string, of func(string) string) cel.EnvOption {
		return cel.Function(name, cel.MemberOverload("string_"+name, []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(of(string(v.(types.String)))) })))
	}
	two := []*cel.Type{cel.StringType, cel.StringType}
	without := env.NewLibrarySubset().AddExcludedMacros("map").AddExcludedFunctions(env.NewFunction(overloads.Matches))
	return []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(without)),
		text("trim", strings.TrimSpace), text("lowerAscii", shifted('A', 'Z', 'a'-'A')), text("upperAscii", shifted('a', 'z', 'A'-'a')),
		cel.Function("split", cel.MemberOverload("string_split", two, cel.ListType(cel.StringType), cel.BinaryBinding(split))),
		cel.Function("replace", cel.MemberOverload("string_replace", []*cel.Type{cel.StringType, cel.StringType, cel.StringType}, cel.StringType, cel.FunctionBinding(replace))),
		cel.Function("substring",
			cel.MemberOverload("string_substring_from", []*cel.Type{cel.StringType, cel.IntType}, cel.StringType, cel.FunctionBinding(substring)),
			cel.MemberOverload("string_substring_between", []*cel.Type{cel.StringType, cel.IntType, cel.IntType}, cel.StringType, cel.FunctionBinding(substring))),
	}
}

// shifted returns what moves the characters from first to last by some places: the letters of ASCII alone change their
// case, as in the extension of CEL.
func shifted(first, last, by rune) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if first <= r && r <= last {
				return r + by
			}
			return r
		}, s)
	}
}

func split(text, by ref.Val) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, strings.Split(string(text.(types.String)), string(by.(types.String))))
}

func replace(args ...ref.Val) ref.Val {
	text, old, by := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	if n := strings.Count(text, old); len(text)+n*(len(by)-len(old)) > maxText {
		return types.NewErr("the text that replace would return is longer than %d bytes: cost limit", maxText)
	}
	return types.String(strings.ReplaceAll(text, old, by))
}

// substring counts in characters, as CEL does.
func substring(args ...ref.Val) ref.Val {
	text, from := string(args[0].(types.String)), int64(args[1].(types.Int))
	length := int64(utf8.RuneCountInString(text))
	to := length
	if len(args) == 3 {
		to = int64(args[2].(types.Int))
	}
	if from < 0 || to < from || to > length {
		return types.NewErr("substring(%d, %d) of a text of %d characters", from, to, length)
	}
	return types.String(string([]rune(text)[from:to]))
}

// patterns has the regular expressions of one evaluation.
type patterns map[string]pattern

type pattern struct {
	*regexp.Regexp
	// parts is the number of instructions. A search takes time in proportion to it and to the length of the text.
	parts int
}

// function returns matches, which refuses what would take long before it begins.
func (p patterns) function() cel.EnvOption {
	two := []*cel.Type{cel.StringType, cel.StringType}
	return cel.Function(overloads.Matches,
		cel.Overload("matches_string_string", two, cel.BoolType), cel.MemberOverload("string_matches_string", two, cel.BoolType),
		cel.SingletonBinaryBinding(p.matches))
}

func (p patterns) matches(text, pattern ref.Val) ref.Val {
	in, is := string(text.(types.String)), string(pattern.(types.String))
	re, known := p[is]
	if !known {
		var err error
		if re, err = compilePattern(is); err != nil {
			return types.NewErrFromString(err.Error())
		}
		p[is] = re
	}
	if p.cost(in, is) > costLimit {
		return types.NewErr("the text is too long for the regular expression: cost limit")
	}
	return types.Bool(re.MatchString(in))
}

// cost returns what a search costs.
func (p patterns) cost(text, pattern string) uint64 {
	return uint64(1 + len(text)*p[pattern].parts/100) //nolint:gosec // neither is negative
}

func compilePattern(text string) (out pattern, err error) {
	if len(text) > maxPattern {
		return out, fmt.Errorf("a regular expression has %d bytes, expected at most %d", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return out, errors.New("a regular expression is not valid: " + firstLine(err.Error()))
	}
	if repeats(parsed) > maxRepeats {
		return out, errors.New("a regular expression repeats too much")
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return out, err
	}
	out.parts = len(program.Inst)
	out.Regexp, err = regexp.Compile(text)
	return out, err
}

// repeats returns the number of parts of a regular expression whose repetitions are written out.
func repeats(re *syntax.Regexp) int {
	out := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		out = min(out+repeats(sub), maxRepeats+1)
	}
	if re.Op == syntax.OpRepeat {
		out *= max(re.Min, re.Max, 1)
	}
	return min(out, maxRepeats+1)
}

// costs charges each call for the length of what it is given.
type costs struct {
	patterns patterns
	// answer is the length of the answer. A comparison of two of its values may walk through all of it.
	answer uint64
}

// CallCost implements interpreter.ActualCostEstimator.
func (c costs) CallCost(function, overload string, args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	deep := overload == overloads.Equals || overload == overloads.NotEquals || overload == overloads.InList
	for _, a := range args {
		switch v := a.(type) {
		case types.String:
			cost += uint64(len(v)) / 10
		case types.Bytes:
			cost += uint64(len(v)) / 10
		case types.Int, types.Uint, types.Double, types.Bool, types.Null:
		default:
			if deep {
				cost += c.answer / 10
			}
		}
	}
	if len(args) == 2 && function == overloads.Matches {
		text, _ := args[0].(types.String)
		is, _ := args[1].(types.String)
		cost += c.patterns.cost(string(text), string(is))
	}
	return &cost
}

// accumulator is the variable in which the macros of CEL collect. No user can write its name.
const accumulator = "@result"

// plain refuses values that are made of others, and too many additions: both could stand for far more than an answer.
func plain(root ast.Expr) error {
	sums, bad := 0, ""
	visit(root, func(e ast.Expr) {
		switch {
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Add:
			sums++
		case e.Kind() == ast.ListKind && slices.ContainsFunc(e.AsList().Elements(), func(of ast.Expr) bool { return of.Kind() != ast.LiteralKind }):
			bad = "a list may have only constants in it"
		case e.Kind() == ast.MapKind || e.Kind() == ast.StructKind:
			bad = "an expression may not make a map or a message"
		}
	})
	switch {
	case bad != "":
		return errors.New(bad)
	case sums > maxSums:
		return fmt.Errorf("it has %d additions, expected at most %d", sums, maxSums)
	}
	return nil
}

// visit calls a function with each part of an expression, save those with which the macro filter collects: what it
// collects is in the list already.
func visit(e ast.Expr, with func(ast.Expr)) {
	var parts []ast.Expr
	switch e.Kind() { //nolint:exhaustive // the others have no parts, or with refuses them
	case ast.CallKind:
		parts = e.AsCall().Args()
		if e.AsCall().FunctionName() == operators.Add && parts[0].Kind() == ast.IdentKind && parts[0].AsIdent() == accumulator {
			return
		}
		if e.AsCall().IsMemberFunction() {
			parts = append([]ast.Expr{e.AsCall().Target()}, parts...)
		}
	case ast.ComprehensionKind:
		loop := e.AsComprehension()
		parts = []ast.Expr{loop.IterRange(), loop.LoopCondition(), loop.LoopStep(), loop.Result()}
	case ast.SelectKind:
		parts = []ast.Expr{e.AsSelect().Operand()}
	}
	with(e)
	for _, part := range parts {
		visit(part, with)
	}
}
