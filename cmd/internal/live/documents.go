package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/stsmigrate/stsmigrate/internal/engine"
)

// Documents prints the status whenever it has changed, until the plan rests, and returns the last one.
func (f Feed) Documents(ctx context.Context, print func(*engine.View) error) (last *engine.View, err error) {
	var before []byte
	var failed error
	err = f.Follow(ctx, func(st Status) bool {
		last = st.View
		raw, err := json.Marshal(last)
		if err == nil && !bytes.Equal(raw, before) {
			before = raw
			err = print(last)
		}
		failed = err
		return failed != nil || last.Rests()
	})
	return last, cmp.Or(err, failed)
}
