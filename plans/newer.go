package plans

import (
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"
)

// A plan or journal of a newer release may have fields that this one does not know. They are kept when it is written
// again. Where a reader that does not know of them would do harm, the writer names them in the list requires, and whoever
// does not know all of that refuses the whole (decode). There is nothing yet that has to be known.

// MarshalJSON implements json.Marshaler.
func (p Plan) MarshalJSON() ([]byte, error) {
	type known Plan
	return beside(p.Read, known(p), &known{})
}

// beside gives the JSON of a value that was read from a document with unknown fields: the document with what has changed
// of the known ones. before takes the value as it was.
func beside(read json.RawMessage, now, before any) ([]byte, error) {
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
