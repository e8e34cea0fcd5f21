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

// Requirements returns what a reader of a plan with these gates must support.
func Requirements(gates []Gate) []string {
	if slices.ContainsFunc(gates, func(g Gate) bool { return g.Expression != "" }) {
		return []string{GateExpressions}
	}
	return nil
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
