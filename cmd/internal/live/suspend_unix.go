//go:build unix

package live

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// jobs takes the terminal again when this process continues after a signal has stopped it. SIGTSTP keeps its default
// action, because Go cannot give it back once it was asked for; the shell puts the modes of its terminal back. Ctrl-Z
// is a key (suspend): the view releases the terminal BEFORE the process stops.
func (s *screen) jobs() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	for {
		select {
		case <-s.resumed:
			s.suspended.Store(false)
		case <-continued:
			if !s.suspended.Load() {
				s.redraw()
			}
		case <-s.over:
			return
		}
	}
}

// maxRedraws is how often the terminal is taken again until something is drawn.
const maxRedraws = 10

// redraw takes the terminal again. What draws the frames stops its ticker some time after the terminal is released, and
// may so stop the ticker of what draws them next. Then nothing is drawn, and the terminal is taken once more.
func (s *screen) redraw() {
	for range maxRedraws {
		if s.program.ReleaseTerminal() != nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.over:
			return
		}
		if s.program.RestoreTerminal() != nil {
			return // a terminal that is gone ends the program by itself
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
	}
}

// suspend reports whether this process can be stopped now. The kernel stops no process that no shell could continue (an
// orphaned process group, as in a container or below `ssh -t`): its group is that of the session itself, because no
// shell has made it a job, or the shell that has made it one is gone, and its parent is of another session.
func (s *screen) suspend() bool {
	ours, err := unix.Getsid(0)
	if err != nil || unix.Getpgrp() == ours {
		return false
	}
	theirs, err := unix.Getsid(os.Getppid())
	if err != nil || theirs != ours {
		return false
	}
	s.suspended.Store(true)
	return true
}
