package live

import (
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// said is what the run of this process waits for, in its own words.
type said struct {
	id  reasons.ID
	why string
}

// hear takes notice of what the run of this process says.
func (s *Show) hear(p engine.Progress, err error) {
	now := said{}
	switch {
	case err != nil:
		now = said{reasons.Of(err), "will try again: " + err.Error()}
	case p.Kind == engine.Waiting:
		now = said{p.ID, p.Reason}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = now
}

// fromInside returns the status of a plan that this process carries out. The run knows what it waits for. What can be
// seen from outside is a guess beside it, and one that names the output of this very process is none.
func (s *Show) fromInside(st Status) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := *st.View
	switch {
	case s.says.why != "":
		v.ReasonID, v.Reason = s.says.id, s.says.why
	case v.ReasonID == reasons.WriteNotTaken:
		v.ReasonID, v.Reason = "", ""
	}
	st.View = &v
	return st
}
