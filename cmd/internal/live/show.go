package live

import (
	"io"
	"sync"
	"time"

	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/view/event"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Show shows one plan in one mode.
type Show struct {
	Mode Mode
	Plan *plans.Plan
	// Out receives the events, unless the mode is Screen.
	Out io.Writer
	Now func() time.Time

	mu      sync.Mutex
	screen  *screen
	history *History
	before  *moment
	says    said
}

// Open begins to draw, if the mode is Screen. The Show must be closed.
func (s *Show) Open(t Terminal, do Actions) (err error) {
	if s.Mode == Screen {
		s.screen, err = open(t, do)
	}
	return err
}

// Close puts the terminal back. The last frame stays.
func (s *Show) Close() {
	if s.screen != nil {
		s.screen.close()
	}
}

// Restore puts the terminal back at once, for a process that ends.
func (s *Show) Restore() {
	if s.screen != nil {
		s.screen.Restore()
	}
}

// Notices is where messages of the command go while the view is drawn; nil in any other mode.
func (s *Show) Notices() io.Writer {
	if s.screen == nil {
		return nil
	}
	return s.screen
}

// Report takes in one moment and reports what has changed: as events, or in the view.
func (s *Show) Report(st Status) {
	before := s.before
	now := s.learn(st)
	if s.screen != nil {
		s.screen.program.Send(showMsg(now.Migration))
		return
	}
	for _, e := range changes(s.Plan, before, now) {
		s.Event(e)
	}
}

func (s *Show) learn(st Status) moment {
	if s.history == nil {
		s.history = NewHistory()
	}
	s.history.Learn(st)
	now := moment{Status: st, Migration: Migration(s.Plan, st, s.history), phases: lastRead(s.before, st.View)}
	s.before = &now
	return now
}

// Progress reports the progress of a run of this process.
func (s *Show) Progress(_ *engine.Engine, p engine.Progress, err error) {
	s.hear(p, err)
	if e, news := OfProgress(s.Plan, p, err, s.Now()); news {
		s.Event(e)
	}
}

// Complain reports an error that will be retried.
func (s *Show) Complain(err error) { s.Event(OfError(s.Plan, err, s.Now())) }

// End reports the end of a run, and what it has left in flight, to programs. A person reads it from what the command says.
func (s *Show) End(p engine.Progress, left stops.Remains, err error) {
	if s.Mode == JSON {
		s.Event(OfEnd(s.Plan, p, left, err, s.Now()))
	}
}

// Stopping reports to programs that the run is to end. A person reads it where the signal is answered.
func (s *Show) Stopping(what string) {
	if s.Mode == JSON {
		s.Event(event.New(event.Stopping, s.Now(), s.Plan.Name, what))
	}
}

// Event shows one event. An error to do so is no error of the plan.
func (s *Show) Event(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.Mode {
	case Screen:
		s.screen.program.Send(lastMsg(e.Short()))
	case JSON:
		if raw, err := e.JSON(); err == nil {
			_, _ = s.Out.Write(raw)
		}
	case Lines:
		_, _ = io.WriteString(s.Out, e.String()+"\n")
	}
}
