package plans

import (
	"encoding/json"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"
)

// A plan or journal of a newer release may have fields that this release does not know. They are
// preserved when it is written again. If ignoring a field would do harm, its writer names it in the
// list requires, and a reader that does not know every entry refuses the document (decode).

// GateExpressions is required by a plan with a gate that has an expression: without it, the gate would pass too early.
const GateExpressions = "gate-expressions"

// Placeholders is required by a plan that takes places: without it, an ordinal would leave although nothing proves that its
// place is there, and a placeholder of another process would stay.
const Placeholders = "placeholders"

// Requirements returns what a reader of a plan with these gates and places must support.
func Requirements(gates []Gate, places Placeholder) (out []string) {
	if slices.ContainsFunc(gates, func(g Gate) bool { return g.Expression != "" }) {
		out = append(out, GateExpressions)
	}
	if places.Used() {
		out = append(out, Placeholders)
	}
	return out
}

// Supported returns what a plan may require of this release.
func Supported() []string { return []string{GateExpressions, Placeholders} }

// SupportedUntold returns what a plan may require of an orchestrator that does not tell what it supports. Nothing is
// ever added here.
func SupportedUntold() []string { return []string{GateExpressions, Placeholders} }

// supported reports whether this release has what a document requires.
func supported(kind, what string) bool {
	return kind == PlanKind && slices.Contains(Supported(), what)
}

// MarshalJSON implements json.Marshaler.
func (p Plan) MarshalJSON() ([]byte, error) {
	type known Plan
	return Beside(p.Read, known(p), &known{})
}

// Beside returns the JSON of a value that was read from a document with unknown fields: the document,
// with the changes of the known fields. before receives the value as it was read.
func Beside(read json.RawMessage, now, before any) ([]byte, error) {
	raw, err := json.Marshal(now)
	if err != nil || read == nil {
		return raw, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(read, before); err != nil {
		return nil, err
	}
	was, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	changes, err := jsonpatch.CreateMergePatch(was, raw)
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergePatch(read, changes)
}
