package program

import (
	"bytes"
	"testing"
)

// While a view is drawn, what a command says goes there, and to the terminal again afterwards.
func TestMessagesAreDivertedForAWhile(t *testing.T) {
	var terminal, notices bytes.Buffer
	out := &Shown{To: &terminal}
	undo := Divert(&notices, out, &bytes.Buffer{})
	for _, text := range []string{"one ", "two"} {
		if _, err := out.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		undo()
	}
	if notices.String() != "one " || terminal.String() != "two" {
		t.Errorf("notices %q, terminal %q", notices.String(), terminal.String())
	}
}

func TestTextOfStrangersIsHarmlessForATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain, and schön: 文字":              "plain, and schön: 文字",
		"two\nlines\tand  more ":            "two\nlines\tand  more ",
		"\x1b]0;owned\a\x1b[2K\x1b[1A":      `\u001b]0;owned\u0007\u001b[2K\u001b[1A`,
		"over\rwritten\b":                   `over\u000dwritten\u0008`,
		"\u202egnp.exe\u2066x\u2069\u200b.": `\u202egnp.exe\u2066x\u2069\u200b.`,
		"C1 \u009b2J \x9b and \xff":         `C1 \u009b2J ? and ?`,
		"tag \U000e0041":                    `tag \udb40\udc41`,
	} {
		if got := harmless(text); got != want {
			t.Errorf("%q is shown as %q, expected %q", text, got, want)
		}
	}
}
