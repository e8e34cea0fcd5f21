package live

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/stsmigrate/stsmigrate/internal/view"
)

// Terminal is what a view is drawn on.
type Terminal struct {
	In, Out *os.File
	Env     func(string) string
	Now     func() time.Time
}

// screen is a running view. Its methods may be called from any goroutine.
type screen struct {
	program *tea.Program
	out     *os.File
	in      int
	before  *term.State
	over    chan struct{}
	once    sync.Once
	stops   chan struct{} // has a value when a stop of this process is asked for
	drew    chan struct{} // has a value when something was drawn
}

// drawing is the terminal as the program draws on it.
type drawing struct {
	*os.File
	drew chan<- struct{}
}

// Write implements io.Writer.
func (d drawing) Write(p []byte) (int, error) {
	n, err := d.File.Write(p)
	select {
	case d.drew <- struct{}{}:
	default:
	}
	return n, err
}

// open draws a view until it is closed. What a signal that ends the process at once leaves behind is put back first.
func open(t Terminal, do Actions) (*screen, error) {
	s := &screen{in: int(t.In.Fd()), out: t.Out, over: make(chan struct{}), stops: make(chan struct{}, 1), drew: make(chan struct{}, 1)}
	before, err := term.GetState(s.in)
	if err != nil {
		return nil, err
	}
	s.before = before
	m := model{style: styleOf(t.Env), now: t.Now, do: do, suspend: s.suspend, size: view.Size{Width: 80, Height: 24}}
	if w, h, err := term.GetSize(int(t.Out.Fd())); err == nil && w > 0 && h > 0 {
		m.size = view.Size{Width: w, Height: h}
	}
	s.program = tea.NewProgram(m, tea.WithInput(t.In), tea.WithOutput(drawing{t.Out, s.drew}), tea.WithoutSignalHandler())
	go func() {
		defer close(s.over)
		if _, err := s.program.Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) {
			s.Restore()
		}
	}()
	go s.hangUp(do.Warning != nil)
	go s.jobs()
	return s, nil
}

// hangUp puts the terminal back BEFORE a signal ends this process that nothing else handles. A command that goes on
// without its terminal handles SIGHUP itself.
func (s *screen) hangUp(goesOn bool) {
	deadly := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(deadly, sig)
		}
	}
	defer signal.Stop(deadly)
	select {
	case sig := <-deadly:
		s.Restore()
		if !goesOn || sig != syscall.SIGHUP {
			os.Exit(130)
		}
	case <-s.over:
	}
}

// Restore puts the terminal back as it was, at once.
func (s *screen) Restore() {
	s.once.Do(func() {
		s.program.Kill()
		_ = term.Restore(s.in, s.before)
		_, _ = io.WriteString(s.out, "\x1b[?25h\r\n") // the cursor, below the frame
	})
}

// close draws the last frame, and returns when the terminal is as it was.
func (s *screen) close() {
	s.program.Send(overMsg{})
	<-s.over
}

// Write implements io.Writer: what a command says meanwhile becomes the notice below the frame.
func (s *screen) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSpace(line); line != "" {
			s.program.Send(noticeMsg(line))
		}
	}
	return len(p), nil
}
