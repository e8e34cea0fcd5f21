package program

import (
	"io"
	"unicode/utf8"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Shown is a stream for a terminal. Much of the output was written by others: reasons in journals, names, and
// errors of API servers. None of it can control the terminal.
type Shown struct {
	To io.Writer
	// Named, if not nil, changes how the text names the program's commands.
	Named func(string) string
	// begun is the beginning of a character whose end has not been written yet.
	begun []byte
}

// Write implements io.Writer.
func (s *Shown) Write(p []byte) (int, error) {
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
	out := plans.Shown(string(text[:end]))
	if s.Named != nil {
		out = s.Named(out)
	}
	if _, err := io.WriteString(s.To, out); err != nil {
		return 0, err
	}
	return len(p), nil
}
