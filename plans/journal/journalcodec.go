package journal

import (
	"encoding/json"
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// MarshalJSON implements json.Marshaler.
func (j Journal) MarshalJSON() ([]byte, error) {
	type known Journal
	return plans.Beside(j.Read, known(j), &known{})
}

// ErrOtherPlan reports that a journal belongs to another plan.
type ErrOtherPlan struct{ its, asked string }

func (e ErrOtherPlan) Error() string {
	return fmt.Sprintf("the journal belongs to plan %s, not to %s: it was left by an earlier plan of the same name", e.its, e.asked)
}

// Decode reads the journal of the given plan.
func Decode(raw []byte, p *plans.Plan) (*Journal, error) {
	var j Journal
	var err error
	if j.Read, err = plans.DecodeKind(raw, plans.JournalKind, &j); err != nil {
		return nil, err
	}
	if j.Plan != p.ID {
		return nil, ErrOtherPlan{j.Plan, p.ID}
	}
	if j.Hash == "" || early(j.Read) {
		return nil, fmt.Errorf("the journal of plan %s was written by stsmigrate 0.1, whose records this release cannot continue: end the plan with that release (finalize or abort)", p.Name)
	}
	if j.Hash != p.Hash {
		return nil, fmt.Errorf("the journal belongs to plan %s as it was (hash %s), and the plan there has the same ID and another content (hash %s): restore the plan from a backup, or the file that was applied", p.ID, j.Hash, p.Hash)
	}
	if err := j.validate(p); err != nil {
		return nil, err
	}
	if j.Timeline.Validate(p) != nil {
		j.Timeline = Timeline{Omitted: 1} // it decides nothing, and must not stop a plan that has a wave in flight
	}
	return &j, nil
}

// early reports whether a journal has a field of release 0.1, which this release calls otherwise or reads from the
// Declaration. To pass over such a field would lose it. unknown is a journal with fields that this release does not
// know, in its JSON form, or nil.
func early(unknown json.RawMessage) bool {
	var was struct {
		Wish json.RawMessage `json:"wish"`
		Leg  struct {
			Course json.RawMessage `json:"course"`
		} `json:"leg"`
	}
	return unknown != nil && json.Unmarshal(unknown, &was) == nil && (was.Wish != nil || was.Leg.Course != nil)
}
