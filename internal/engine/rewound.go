package engine

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Rewound reports that the journal says less than what has been done: the etcd of its cluster was restored from a
// backup, or an old copy was put in its place. Steps would be done twice, and epochs would be given out again, so
// that the write of a process which sleeps could no longer be told from ours (S9, S10).
type Rewound struct {
	plan string
	seen string // what shows it
}

func (e *Rewound) Error() string {
	return fmt.Sprintf("the journal of plan %s is older than what has been done: %s. Its cluster was restored from a backup, or an old copy of the journal was put in its place. No step is taken: what to do is in docs/ways-out.md, \"A cluster was restored from a backup\"", e.plan, e.seen)
}

// ReasonID implements reasons.Reasoned.
func (e *Rewound) ReasonID() reasons.ID { return reasons.JournalRewound }

// goneBack returns an error if the journal as read is older than the one that this process has read or written.
func (e *memory) goneBack(j *journal.Journal) error {
	if j.Epoch < e.epoch || j.Epoch == e.epoch && j.Begun < e.begun {
		return &Rewound{e.plan.Name, fmt.Sprintf("this process has recorded step %d of epoch %d, and the journal ends with step %d of epoch %d", e.begun, e.epoch, j.Begun, j.Epoch)}
	}
	return nil
}
