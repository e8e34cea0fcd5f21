package engine

import (
	"context"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

// tells records what this process waits for, so that a reader elsewhere sees it too. Nothing depends on
// it: where it cannot be written now, the next attempt tells it.
func (r *run) tells(ctx context.Context, id reasons.ID, why string) {
	if why = records.Brief(why); r.recall(ctx) != nil || r.journal.Epoch != r.epoch || r.journal.Waiting == why {
		return
	}
	r.journal.Tell(id, why)
	r.telling = true
	_ = r.save(ctx) // see above
}
