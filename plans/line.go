package plans

import (
	"strings"
	"unicode"
)

// Line turns untrusted text, such as the error of an API server, into one line. It removes control
// characters, which a terminal obeys, characters that change the reading direction, and invalid
// UTF-8. It is for text that is recorded or reported.
func Line(s string) string {
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.Join(strings.Fields(printable), " ")
}
