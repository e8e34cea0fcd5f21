//go:build unix

package live

import (
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
)

// jobs keeps the terminal usable while this process is stopped by job control: by Ctrl-Z, which arrives as a key, or by
// `kill -TSTP`. The terminal is put back BEFORE the process stops, and the view comes back when it continues. After
// SIGSTOP, which no process can catch, the view at least takes the terminal again.
func (s *screen) jobs() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	signal.Notify(s.stopped, syscall.SIGTSTP)
	defer func() { signal.Stop(continued); signal.Stop(s.stopped) }()
	for {
		select {
		case <-s.stopped:
			s.suspend()
			s.program.Send(tea.SuspendMsg{})
		case <-s.resumed:
			s.suspended.Store(false)
			signal.Notify(s.stopped, syscall.SIGTSTP)
		case <-continued:
			if !s.suspended.Load() && s.program.ReleaseTerminal() == nil {
				_ = s.program.RestoreTerminal() // a terminal that is gone ends the program by itself
			}
		case <-s.over:
			return
		}
	}
}

// suspend lets the signal that is about to be sent stop this process.
func (s *screen) suspend() {
	s.suspended.Store(true)
	signal.Stop(s.stopped)
}
