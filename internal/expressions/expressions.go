// Package expressions judges the answer of an application by an expression in CEL, the language of Kubernetes' own
// validation rules. An expression is checked when it is read, and its evaluation is limited in time and memory: neither
// a plan nor an answer can keep a process busy. No error contains a part of an answer.
package expressions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
)

// MaxBytes limits the text of an expression.
const MaxBytes = 4 << 10

// costLimit limits an evaluation, in CEL's own unit. A comparison costs one, and so does each character that a search
// passes ten of: enough for one pass over an answer of two MiB, and for a loop over ten thousand items.
const costLimit = 1_000_000

// maxTime limits an evaluation too. The library keeps account of loops within loops in time that is quadratic in their
// turns, so that they would take a minute to reach the limit in cost.
const maxTime = 2 * time.Second

// Answer is what an application has answered.
type Answer struct {
	// Code is the exit code or the HTTP status.
	Code int
	// Text is the standard output or the body.
	Text string
}

// Expression is an expression that has been checked.
type Expression struct {
	env      *cel.Env
	ast      *cel.Ast
	patterns patterns
}

// Compile checks an expression. It may use code (an int), text (a string) and body (the text read as JSON, or null), and
// its value is true or false.
func Compile(text string) (*Expression, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, expected at most %d", len(text), MaxBytes)
	}
	e := &Expression{patterns: patterns{}}
	var err error
	e.env, err = cel.NewCustomEnv(append(library(), e.patterns.function(), cel.CrossTypeNumericComparisons(true),
		cel.Variable("code", cel.IntType), cel.Variable("text", cel.StringType), cel.Variable("body", cel.DynType))...)
	if err != nil {
		return nil, err
	}
	ast, issues := e.env.Compile(text)
	if issues.Err() != nil {
		return nil, errors.New(firstLine(issues.Err().Error()))
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("its value is of type %s, expected true or false", t)
	}
	if err := plain(ast.NativeRep().Expr()); err != nil {
		return nil, err
	}
	e.ast = ast
	if _, err := e.program(0); err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	return e, nil
}

// program returns the expression for an answer of some bytes.
func (e *Expression) program(answer uint64) (cel.Program, error) {
	return e.env.Program(e.ast, cel.CostLimit(costLimit), cel.CostTracking(costs{e.patterns, answer}), cel.InterruptCheckFrequency(100))
}

// Judge describes what is wrong with an answer, or returns "". It ends soon after its context, and within maxTime. An
// expression judges one answer at a time.
func (e *Expression) Judge(ctx context.Context, a Answer) string {
	var body any
	isJSON := json.Unmarshal([]byte(a.Text), &body) == nil
	program, err := e.program(uint64(len(a.Text)))
	if err != nil { // Compile has made one of the same
		return firstLine(err.Error())
	}
	ctx, stop := context.WithTimeout(ctx, maxTime)
	defer stop()
	out, _, err := program.ContextEval(ctx, map[string]any{"code": a.Code, "text": a.Text, "body": body})
	what := fmt.Sprintf("the %d bytes of the answer", len(a.Text))
	switch {
	case err != nil && (strings.Contains(err.Error(), "cost limit") || ctx.Err() != nil):
		return "the expression takes too long over " + what
	case err != nil && !isJSON: // the error itself may have a part of the answer in it
		return "the expression has no value over " + what + ", which are not JSON"
	case err != nil:
		return "the expression has no value over " + what + ": a field is missing, or is of another type"
	}
	switch is, ok := out.Value().(bool); {
	case !ok:
		return "the value of the expression over " + what + " is neither true nor false"
	case !is:
		return "the expression is false over " + what
	}
	return ""
}

// firstLine returns the first line of a compiler's message, which names the place.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(s, "ERROR: "), "\n")
	return strings.TrimPrefix(line, "<input>:")
}
