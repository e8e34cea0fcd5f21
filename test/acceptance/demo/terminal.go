package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// terminal lets several speakers write whole lines to one screen.
type terminal struct {
	mu  sync.Mutex
	out io.Writer
}

// say writes one line without the name of a speaker.
func (t *terminal) say(format string, args ...any) {
	t.line("", fmt.Sprintf(format, args...))
}

func (t *terminal) line(speaker, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if speaker != "" {
		text = fmt.Sprintf("%-8s | %s", speaker, text)
	}
	fmt.Fprintln(t.out, text)
}

// speaker is a writer that puts its name before each line.
type speaker struct {
	*terminal
	name string
	rest []byte
}

func (t *terminal) as(name string) *speaker { return &speaker{terminal: t, name: name} }

// Write prints the complete lines and keeps the beginning of the next line.
func (s *speaker) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, complete := bytes.Cut(s.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		s.line(s.name, string(line))
		s.rest = rest
	}
}

// flush prints the rest that has no end of line, as a killed process leaves it.
func (s *speaker) flush() {
	if len(s.rest) > 0 {
		s.line(s.name, string(s.rest))
		s.rest = nil
	}
}
