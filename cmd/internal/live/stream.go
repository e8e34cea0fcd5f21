package live

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Stream is a stream for a terminal. Much of the output was written by others: reasons in journals, names, and
// errors of API servers. None of it can control the terminal.
type Stream struct {
	mu sync.Mutex
	to io.Writer
	// begun is the beginning of a character whose end has not been written yet.
	begun []byte
}

// NewStream returns a stream to a writer.
func NewStream(to io.Writer) *Stream { return &Stream{to: to} }

// File returns the file that a stream writes to, or nil.
func File(stream io.Writer) *os.File {
	s, ok := stream.(*Stream)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, _ := s.to.(*os.File)
	return f
}

// DivertAll sends what is written to some streams to another writer, if there is one, until undo is called.
func DivertAll(to io.Writer, streams ...io.Writer) (undo func()) {
	var undone []func()
	for _, stream := range streams {
		if s, ok := stream.(*Stream); ok && to != nil {
			undone = append(undone, s.Divert(to))
		}
	}
	return func() {
		for _, f := range undone {
			f()
		}
	}
}

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.begun, p...)
	end := len(text)
	for k := 1; k < utf8.UTFMax && k <= len(text); k++ {
		if at := len(text) - k; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				end = at
			}
			break
		}
	}
	s.begun = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(s.to, plans.Shown(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Divert sends everything to another writer until undo is called.
func (s *Stream) Divert(to io.Writer) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.to
	s.to = to
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.to = was
	}
}
