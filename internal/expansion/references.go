package expansion

import (
	"regexp"
	"strings"
)

// Filled returns a text with the references $(NAME) replaced, as the kubelet does it: one that nothing defines stays as it
// is written, and $$ is one $.
func Filled(text string, by map[string]string) string { return filled(text, by) }

// Settled returns a text in which the references with another value elsewhere are replaced by the value that they have
// here. Written in the place of the text, it means the same on both sides.
func Settled(text string, here, elsewhere map[string]string) string {
	return parse(text, func(name string) string {
		if v := here[name]; v != elsewhere[name] {
			return strings.ReplaceAll(v, "$", "$$")
		}
		return "$(" + name + ")"
	}, "$$")
}

func filled(text string, by ...map[string]string) string {
	return parse(text, func(name string) string {
		for _, m := range by {
			if v, defined := m[name]; defined {
				return v
			}
		}
		return "$(" + name + ")"
	}, "$")
}

// Shell returns a text in which a shell has replaced $NAME and ${NAME}, for the names that are given. A name that a
// script defines itself is not known here.
func Shell(text string, by map[string]string) string {
	return ofShell.ReplaceAllStringFunc(text, func(ref string) string {
		if v, defined := by[ofName.FindString(ref)]; defined {
			return v
		}
		return ref
	})
}

// ofShell matches $NAME, ${NAME}, and ${NAME:-WORD} with what else a shell does where a variable is not defined. ofName is
// the name in one of them.
var (
	ofShell = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:?[-=?][^}]*)?\}|\$[A-Za-z_][A-Za-z0-9_]*`)
	ofName  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// Other returns the variables that have another value elsewhere.
func Other(here, elsewhere map[string]string) map[string]string {
	out := map[string]string{}
	for name, v := range here {
		if elsewhere[name] != v {
			out[name] = v
		}
	}
	return out
}

// parse replaces the references of a text, and its escaped signs by escaped.
func parse(text string, value func(name string) string, escaped string) string {
	var b strings.Builder
	for k := 0; k < len(text); k++ {
		if text[k] != '$' || k+1 == len(text) {
			b.WriteByte(text[k])
			continue
		}
		switch end := strings.IndexByte(text[k:], ')'); {
		case text[k+1] == '$':
			b.WriteString(escaped)
			k++
		case text[k+1] == '(' && end > 0:
			b.WriteString(value(text[k+2 : k+end]))
			k += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}
