package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// Signals decides what Ctrl-C, SIGTERM and SIGHUP do to a command.
type Signals struct {
	// To is where it is said that a command stops.
	To io.Writer
	// Ended is closed when the command has to end.
	Ended <-chan struct{}
	// Exit ends the process at once, with what it has to put in order first.
	Exit func()

	carries atomic.Bool
	waves   atomic.Pointer[func(Stage) string]
	finish  chan struct{}
	stop    chan struct{}
	raised  chan os.Signal
	pressed chan struct{}
	// unread takes the signal that a reader of the output has ended. It is never read: taking it is enough.
	unread chan os.Signal
}

// Stage is how soon a command ends that carries waves.
type Stage int

const (
	// Finishes means that the wave in flight is finished first.
	Finishes Stage = iota + 1
	// Stops means that it ends after the current write.
	Stops
)

// Carries says that from now on the command carries out what a journal or a record of the clusters continues. The first
// signal then ends it after the current write. Before that, and in every other command, a signal ends the command at
// once: the next request is not sent.
//
// A terminal that is closed is a signal too: without its Lease released, no other process could go on for a while.
//
// A reader that ends, as `head` does, ends other commands, as it ends other tools. What is carried out does not depend on
// who reads about it: a write to that reader is then an error, which is ignored. The signal is taken and not ignored,
// because the programs that this one starts would inherit that.
func (s *Signals) Carries() {
	s.carries.Store(true)
	signal.Notify(s.unread, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // else the user has asked for that, with nohup
		signal.Notify(s.raised, syscall.SIGHUP)
	}
}

// CarriesWaves is Carries for a command that moves ordinals: the first signal closes Finish, the second one Stop. says
// returns what the user is told at each.
func (s *Signals) CarriesWaves(says func(Stage) string) {
	s.waves.Store(&says)
	s.Carries()
}

// Finish is closed when what is carried out has to end as soon as no ordinal is in flight.
func (s *Signals) Finish() <-chan struct{} { return s.finish }

// Stop is closed when what is carried out has to end after the current write.
func (s *Signals) Stop() <-chan struct{} { return s.stop }

// Raise does what a signal does, for a key of a terminal that sends none while a view is drawn.
func (s *Signals) Raise() {
	select {
	case s.pressed <- struct{}{}:
	default:
	}
}

// Listen handles signals until the function that it returns is called. cancel ends the command. The last signal ends the
// process at once. That is as safe as a power cut, because the journal records what has begun.
func (s *Signals) Listen(cancel context.CancelFunc) (end func()) {
	s.raised, s.unread, s.pressed = make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{}, 2)
	s.finish, s.stop = make(chan struct{}), make(chan struct{})
	signal.Notify(s.raised, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		defer signal.Stop(s.raised)
		var heard hearing
		for stage := Stage(0); stage != ended; {
			var from origin
			select {
			case one := <-s.raised:
				from = process
				if one == syscall.SIGHUP {
					from = hangUp
				}
			case <-s.pressed:
				from = key
			case <-over:
				return
			}
			if heard.counts(from, time.Now()) {
				stage = s.after(stage, cancel)
			}
		}
	}()
	return func() { signal.Stop(s.unread); close(over) }
}

// after does what a signal that counts asks for, and returns how soon the command ends now.
func (s *Signals) after(stage Stage, cancel context.CancelFunc) Stage {
	says := s.waves.Load()
	switch {
	case stage == 0 && says != nil:
		close(s.finish) // BEFORE it is said: a reader may be stuck
		s.tell((*says)(Finishes))
		return Finishes
	case stage == Finishes:
		close(s.stop)
		s.tell((*says)(Stops))
		return Stops
	case stage == 0 && s.carries.Load():
		s.tell("stopping after the current write (once more to stop at once)")
		close(s.stop)
		return Stops
	case stage == 0:
		cancel()
		return Stops
	}
	cancel()
	s.Exit()
	return ended
}

func (s *Signals) tell(what string) { fmt.Fprintln(s.To, what) }

// ended is the stage of a process that ends at once.
const ended = Stops + 1

// origin is where a signal comes from.
type origin int

const (
	// process is a signal that another process or the terminal's driver sends.
	process origin = iota
	// hangUp is sent when a terminal is closed.
	hangUp
	// key is a key that this process has read from its terminal.
	key
)

const (
	// settled is how long after a signal another one counts. One request often arrives twice: `timeout`, make, npm and
	// runners of CI signal their child and its group, and systemd sends SIGTERM with SIGHUP.
	settled = time.Second
	// repeats is how long no key is heard before another one counts, since a key that is not let go repeats itself.
	repeats = 200 * time.Millisecond
)

// hearing decides which signals count. A key is forwarded by no other program, so each one that is pressed counts. A closed
// terminal is no request to hurry: it counts once, if nothing came before.
type hearing struct {
	counted, pressed time.Time
}

func (h *hearing) counts(from origin, at time.Time) bool {
	first, held := h.counted.IsZero(), from == key && at.Sub(h.pressed) < repeats
	if from == key {
		h.pressed = at
	}
	switch {
	case first:
	case held, from == hangUp, from == process && at.Sub(h.counted) < settled:
		return false
	}
	h.counted = at
	return true
}
