package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// terminal lets several speakers write lines to one screen without tearing them.
type terminal struct {
	mu  sync.Mutex
	out io.Writer
}

// say writes one line that nobody in particular says.
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

// speaker is a writer whose lines carry a name in front.
type speaker struct {
	*terminal
	name string
	rest []byte
}

func (t *terminal) as(name string) *speaker { return &speaker{terminal: t, name: name} }

// Write says the lines that are complete and keeps the beginning of the next.
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

// flush says what is left without an end of line: a killed process leaves it.
func (s *speaker) flush() {
	if len(s.rest) > 0 {
		s.line(s.name, string(s.rest))
		s.rest = nil
	}
}
