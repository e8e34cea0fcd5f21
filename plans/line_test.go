package plans

import (
	"testing"
)

func TestTextOfStrangersIsHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain, and schön: 文字":              "plain, and schön: 文字",
		"two\nlines\tand  more ":            "two lines and more",
		"\x1b]0;owned\a\x1b[2K\x1b[1A":      "]0;owned [2K [1A",
		"over\rwritten\b":                   "over written",
		"\u202egnp.exe\u2066x\u2069\u200b.": "gnp.exe x .",
		"C1 \u009b2J \x9b and \xff":         "C1 2J ? and ?",
		"tag \U000e0041":                    "tag",
	} {
		if got := Line(text); got != want {
			t.Errorf("the line of %q is %q, expected %q", text, got, want)
		}
	}
}
