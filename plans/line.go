package plans

import (
	"fmt"
	"strings"
	"unicode"
)

// Line makes one line of text that strangers wrote, such as the error of an API server: no control
// characters, which a terminal obeys, nothing that turns the direction of reading, and no bytes that are
// no text. It is for what is recorded and told.
func Line(s string) string {
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.Join(strings.Fields(printable), " ")
}

// Shown makes text harmless for a terminal and leaves its lines as they are. What cannot be shown is
// written as in JSON, where it means the same.
func Shown(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "?") {
		switch {
		case r == '\n', r == '\t', unicode.IsPrint(r), unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
