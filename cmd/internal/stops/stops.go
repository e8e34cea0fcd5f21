// Package stops says what a signal does to a plan that is carried out, and how a run has left its plan.
package stops

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Watch knows what a run of this process was last seen to do. Its methods may be called from any goroutine.
type Watch struct {
	Plan *plans.Plan
	// Resume is the command that goes on.
	Resume string
	Now    func() time.Time
	// Tell, if set, also receives what the user is told when a signal comes.
	Tell func(string)

	mu   sync.Mutex
	last engine.Progress
	at   program.Stage // the last signal
}

// New returns the Watch of a run that goes on from a journal. resume is the command that goes on after it.
func New(p *plans.Plan, j *journal.Journal, resume string, now func() time.Time) *Watch {
	w := &Watch{Plan: p, Resume: resume, Now: now}
	if _, flying := j.Places(p); flying > 0 {
		w.last.Step, _, _ = j.Next(p)
		if w.last.Left = j.Left(); w.last.Left.IsZero() {
			w.last.Left = now() // it is not known since when
		}
	}
	return w
}

// Last returns what the run was last seen to do.
func (w *Watch) Last() engine.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Learn takes in a progress of the run.
func (w *Watch) Learn(p engine.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = p
}

// aloft returns the pods of the wave in flight, or "".
func (w *Watch) aloft() string {
	if w.last.Left.IsZero() || !w.last.Step.Moves() {
		return ""
	}
	return w.Plan.Pods(w.last.Step.Ordinals)
}

// Says returns what the user is told when a signal comes.
func (w *Watch) Says(at program.Stage) string {
	w.mu.Lock()
	w.at = at
	what := w.says()
	w.mu.Unlock()
	if w.Tell != nil {
		w.Tell(what)
	}
	return what
}

// Asks returns what the user is asked before they leave a view that is drawn meanwhile.
func (w *Watch) Asks() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.aloft() == "":
		return "Stop? Nothing is in flight, and it can be continued later."
	case w.at == 0:
		return "Stop as soon as " + w.aloft() + " has arrived? It can be continued later."
	}
	return "Stop now, and leave " + w.aloft() + " down? It can be continued later."
}

func (w *Watch) says() string {
	at, pods := w.at, w.aloft()
	switch {
	case at == program.Stops && pods != "":
		return fmt.Sprintf("stopping after the current write, with %s on neither side; one more signal stops at once", pods)
	case at == program.Stops:
		return "stopping after the current write; one more signal stops at once"
	case pods == "":
		return "stopping: no ordinal is in flight"
	}
	waits := ""
	if w.last.Kind == engine.Waiting {
		waits = "; it waits: " + reasons.Tagged(w.last.ID, w.last.Reason)
	}
	return fmt.Sprintf("stopping as soon as %s has arrived, on neither side for %s now%s (one more signal stops after the current write, with %s down)",
		pods, plans.Brief(w.Now().Sub(w.last.Left)), waits, pods)
}

// AtOnce returns what a process leaves in flight that ends at once, as far as it knows, or "".
func (w *Watch) AtOnce() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pods := w.aloft(); pods != "" {
		return fmt.Sprintf("stopped at once: %s, on neither side since %s, may stay down until %s", pods, plans.Clock(w.last.Left, w.Now()), w.Resume)
	}
	return ""
}

// Remains is what a run that has ended has left in flight.
type Remains struct {
	InFlight *engine.InFlight
	// Unread is the reason why that is not known.
	Unread error
}

// After returns what a run has left in flight. v is the status of the plan after it, or unread the reason why it is not
// known. Then what the run last knew counts.
func After(p *plans.Plan, v *engine.View, unread error, last engine.Progress, now time.Time) Remains {
	switch {
	case unread == nil:
		return Remains{InFlight: v.InFlight}
	case last.Left.IsZero() || !last.Step.Moves():
		return Remains{Unread: unread}
	}
	left, pods := metav1.NewTime(last.Left), p.Pods(last.Step.Ordinals)
	return Remains{Unread: unread, InFlight: &engine.InFlight{
		Pods: pods, Since: &left, Message: fmt.Sprintf("%s was on neither side since %s when this process last looked", pods, plans.Clock(last.Left, now)),
	}}
}

// Sentence returns a line about what is in flight, or "".
func (r Remains) Sentence() string {
	if r.InFlight == nil {
		return ""
	}
	return "Meanwhile " + r.InFlight.Message + ".\n"
}
