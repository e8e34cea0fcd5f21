package plans

import (
	"testing"
)

func TestTextOfStrangersIsHarmless(t *testing.T) {
	for text, want := range map[string]struct{ line, shown string }{
		"plain, and schön: 文字":              {"plain, and schön: 文字", "plain, and schön: 文字"},
		"two\nlines\tand  more ":            {"two lines and more", "two\nlines\tand  more "},
		"\x1b]0;owned\a\x1b[2K\x1b[1A":      {"]0;owned [2K [1A", `\u001b]0;owned\u0007\u001b[2K\u001b[1A`},
		"over\rwritten\b":                   {"over written", `over\u000dwritten\u0008`},
		"\u202egnp.exe\u2066x\u2069\u200b.": {"gnp.exe x .", `\u202egnp.exe\u2066x\u2069\u200b.`},
		"C1 \u009b2J \x9b and \xff":         {"C1 2J ? and ?", `C1 \u009b2J ? and ?`},
		"tag \U000e0041":                    {"tag", `tag \U000e0041`},
	} {
		if got := Line(text); got != want.line {
			t.Errorf("the line of %q is %q, expected %q", text, got, want.line)
		}
		if got := Shown(text); got != want.shown {
			t.Errorf("%q is shown as %q, expected %q", text, got, want.shown)
		}
	}
}
