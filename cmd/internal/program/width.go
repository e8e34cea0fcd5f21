package program

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// unknownWidth is the width of a terminal that does not tell it, and of what is no terminal.
const unknownWidth = 80

// Width returns how many columns a stream shows: COLUMNS if the user has set it, or what the terminal says.
func Width(to io.Writer) int {
	return width(os.Getenv("COLUMNS"), func() (int, bool) {
		f := terminal(to)
		if f == nil {
			return 0, false
		}
		n, _, err := term.GetSize(int(f.Fd()))
		return n, err == nil
	})
}

func width(set string, ask func() (int, bool)) int {
	if n, err := strconv.Atoi(set); err == nil && n > 0 {
		return n
	}
	if n, ok := ask(); ok && n > 0 {
		return n
	}
	return unknownWidth
}

// terminal returns the terminal that a stream writes to, or nil.
func terminal(to io.Writer) *os.File {
	if s, ok := to.(*Shown); ok {
		to = s.To
	}
	if f, ok := to.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Wrap breaks a line between words so that it fits the width. The lines after the first are indented. A word that is
// longer than a line is not broken, because it may be a name to copy.
func Wrap(line string, width, indent int) string {
	text := strings.TrimLeft(line, " ")
	var b strings.Builder
	b.WriteString(line[:len(line)-len(text)])
	at, empty := len(line)-len(text), true
	for _, word := range strings.SplitAfter(text, " ") {
		n := utf8.RuneCountInString(strings.TrimRight(word, " "))
		if !empty && at+n > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		}
		b.WriteString(word)
		at, empty = at+utf8.RuneCountInString(word), false
	}
	lines := strings.Split(b.String(), "\n")
	for k := range lines {
		lines[k] = strings.TrimRight(lines[k], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
