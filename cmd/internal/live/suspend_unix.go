//go:build unix

package live

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// jobs does all that has to do with stops of this process, one after the other: it is asked for one (Ctrl-Z), or it
// continues after a signal has stopped it. SIGTSTP keeps its default action, because Go cannot give it back once it was
// asked for; the shell puts the modes of its terminal back.
func (s *screen) jobs() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	for {
		select {
		case <-s.stops:
			// The terminal is released BEFORE the process stops.
			if s.program.ReleaseTerminal() != nil {
				return // a terminal that is gone ends the program by itself
			}
			if unix.Kill(0, unix.SIGTSTP) == nil {
				select {
				case <-continued:
				case <-s.over:
					return
				}
			}
		case <-continued:
			if s.program.ReleaseTerminal() != nil {
				return
			}
		case <-s.over:
			return
		}
		s.redraw()
	}
}

// redraw takes the terminal, which is released, again. What draws the frames stops its ticker some time after the
// terminal is released, and may so stop the ticker of what draws them next. Then nothing is drawn, and the terminal is
// released and taken once more.
func (s *screen) redraw() {
	for {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.over:
			return
		}
		if s.program.RestoreTerminal() != nil {
			return
		}
		select { // what was drawn before does not count
		case <-s.drew:
		default:
		}
		select {
		case <-s.drew:
			return
		case <-time.After(time.Second):
		case <-s.over:
			return
		}
		if s.program.ReleaseTerminal() != nil {
			return
		}
	}
}

// suspend asks for a stop of this process, and reports whether it can be stopped now. The kernel stops no process that no
// shell could continue (an orphaned process group, as in a container or below `ssh -t`): its group is that of the session
// itself, because no shell has made it a job, or the shell that has made it one is gone, and its parent is of another
// session.
func (s *screen) suspend() bool {
	ours, err := unix.Getsid(0)
	if err != nil || unix.Getpgrp() == ours {
		return false
	}
	theirs, err := unix.Getsid(os.Getppid())
	if err != nil || theirs != ours {
		return false
	}
	select {
	case s.stops <- struct{}{}:
	default: // it is asked for already
	}
	return true
}
