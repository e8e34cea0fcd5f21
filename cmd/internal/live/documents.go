package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"

	"github.com/stsmigrate/stsmigrate/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Documents writes the status whenever it has changed, until the plan rests, and returns the last one: as YAML, or as
// JSON with one document per line.
func (f Feed) Documents(ctx context.Context, out io.Writer, yaml bool) (last *engine.View, err error) {
	var before []byte
	var failed error
	err = f.Follow(ctx, func(st Status) bool {
		last = st.View
		raw, err := document(last, yaml)
		if err == nil && !bytes.Equal(raw, before) {
			before = raw
			_, err = out.Write(raw)
		}
		failed = err
		return failed != nil || last.Rests()
	})
	return last, cmp.Or(err, failed)
}

func document(v any, yaml bool) ([]byte, error) {
	if yaml {
		raw, err := plans.Encode(v)
		return append([]byte("---\n"), raw...), err
	}
	raw, err := json.Marshal(v)
	return append(raw, '\n'), err
}
