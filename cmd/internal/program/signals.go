package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// Signals decides what Ctrl-C and SIGTERM do to a command.
type Signals struct {
	// To is where it is said that a command stops.
	To io.Writer
	// Ended is closed when the command has to end.
	Ended <-chan struct{}
	// Exit ends the process at once, with what it has to put in order first.
	Exit func()

	carries atomic.Bool
	stop    chan struct{}
	raised  chan os.Signal
	// unread takes the signal that a reader of the output has ended. It is never read: taking it is enough.
	unread chan os.Signal
}

// Carries says that from now on the command carries out what a journal or a record of the clusters continues. The first
// signal then ends it after the current write. Before that, and in every other command, a signal ends the command at
// once: the next request is not sent.
//
// A reader that ends, as `head` does, ends other commands, as it ends other tools. What is carried out does not depend on
// who reads about it: a write to that reader is then an error, which is ignored. The signal is taken and not ignored,
// because the programs that this one starts would inherit that.
func (s *Signals) Carries() {
	s.carries.Store(true)
	signal.Notify(s.unread, syscall.SIGPIPE)
}

// Stop is closed when what is carried out has to end after the current write.
func (s *Signals) Stop() <-chan struct{} { return s.stop }

// Raise does what a signal does, for a key of a terminal that sends none while a view is drawn.
func (s *Signals) Raise() {
	select {
	case s.raised <- os.Interrupt:
	default:
	}
}

// Listen handles signals until the function that it returns is called. cancel ends the command. A second signal ends the
// process at once. That is as safe as a power cut, because the journal records what has begun.
func (s *Signals) Listen(cancel context.CancelFunc) (end func()) {
	s.raised, s.unread, s.stop = make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(s.raised, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		defer signal.Stop(s.raised)
		if !s.next(over) {
			return
		}
		if s.carries.Load() {
			fmt.Fprintln(s.To, "stopping after the current write (once more to stop at once)")
			close(s.stop)
		} else {
			cancel()
		}
		if s.next(over) {
			cancel()
			s.Exit()
		}
	}()
	return func() { signal.Stop(s.unread); close(over) }
}

// next reports whether a signal has come before the command was over.
func (s *Signals) next(over <-chan struct{}) bool {
	select {
	case <-s.raised:
		return true
	case <-over:
		return false
	}
}
