// Package expressions judges the answer of an application by an expression in CEL, the language of Kubernetes' own
// validation rules. An expression is checked when it is read, and its evaluation is limited in cost: neither a plan
// nor an answer can keep a process busy. No error contains a part of an answer.
package expressions

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// MaxBytes limits the text of an expression.
const MaxBytes = 4 << 10

// costLimit limits an evaluation, in CEL's own unit. A comparison costs one, and so does each character that a search
// passes ten of: enough for one pass over an answer of two MiB, and for a loop over ten thousand items.
const costLimit = 1_000_000

// Answer is what an application has answered.
type Answer struct {
	// Code is the exit code or the HTTP status.
	Code int
	// Text is the standard output or the body.
	Text string
}

// Expression is an expression that has been checked.
type Expression struct{ program cel.Program }

// Compile checks an expression. It may use code (an int), text (a string) and body (the text read as JSON, or null), and
// its value is true or false.
func Compile(text string) (*Expression, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, expected at most %d", len(text), MaxBytes)
	}
	env, err := cel.NewEnv(
		cel.Variable("code", cel.IntType), cel.Variable("text", cel.StringType), cel.Variable("body", cel.DynType),
		cel.CrossTypeNumericComparisons(true), ext.Strings(), ext.Lists(),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, errors.New(firstLine(issues.Err().Error()))
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("its value is of type %s, expected true or false", t)
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	return &Expression{program}, nil
}

// Judge describes what is wrong with an answer, or returns "".
func (e *Expression) Judge(a Answer) string {
	var body any
	isJSON := json.Unmarshal([]byte(a.Text), &body) == nil
	out, _, err := e.program.Eval(map[string]any{"code": a.Code, "text": a.Text, "body": body})
	what := fmt.Sprintf("the %d bytes of the answer", len(a.Text))
	switch {
	case err != nil && strings.Contains(err.Error(), "cost limit"):
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
