package program

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Shown is a stream for a terminal. Much of the output was written by others: reasons in journals, names, and
// errors of API servers. None of it can control the terminal.
type Shown struct {
	To io.Writer
	mu sync.Mutex
	// Named, if not nil, changes how the text names the program's commands.
	Named func(string) string
	// begun is the beginning of a character whose end has not been written yet.
	begun []byte
}

// Write implements io.Writer.
func (s *Shown) Write(p []byte) (int, error) {
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
	out := harmless(string(text[:end]))
	if s.Named != nil {
		out = s.Named(out)
	}
	if _, err := io.WriteString(s.To, out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Divert sends what is written to some streams to another writer, if there is one, until undo is called.
func Divert(to io.Writer, streams ...io.Writer) (undo func()) {
	var undone []func()
	for _, stream := range streams {
		if s, ok := stream.(*Shown); ok && to != nil {
			was := s.swap(to)
			undone = append(undone, func() { s.swap(was) })
		}
	}
	return func() {
		for _, f := range undone {
			f()
		}
	}
}

func (s *Shown) swap(to io.Writer) (was io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.To = s.To, to
	return was
}

// harmless makes text harmless for a terminal and keeps its lines. Characters that cannot be shown
// become the escapes \uXXXX, two of them above U+FFFF, so that a document in JSON stays one.
func harmless(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "?") {
		switch {
		case r == '\n', r == '\t', unicode.IsPrint(r), unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
