package plans

import (
	"fmt"
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

// Shown makes text harmless for a terminal and keeps its lines. Characters that cannot be shown
// become the escapes \uXXXX, as in JSON, or \UXXXXXXXX above U+FFFF, as in YAML.
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
