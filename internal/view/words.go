package view

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/stsmigrate/stsmigrate/plans"
)

// cell returns text in exactly so many columns.
func cell(text string, width int) string {
	text = ansi.Truncate(text, width, "")
	for n := ansi.StringWidth(text); n < width; n++ {
		text += " "
	}
	return text
}

// plain makes text from a cluster harmless: one line, without control characters.
func plain(text string) string { return plans.Line(text) }

// flow puts pieces one after the other, and begins a new line where the next one does not fit.
func flow(pieces []string, width int) []string {
	var lines []string
	line := ""
	for _, p := range pieces {
		switch {
		case p == "":
		case line == "":
			line = p
		case ansi.StringWidth(line)+2+ansi.StringWidth(p) > width:
			lines, line = append(lines, line), p
		default:
			line += "  " + p
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Note returns a text on at most so many lines of a width.
func Note(text string, width, most int) []string {
	lines := wrap(plain(text), max(width, 1))
	return lines[:min(len(lines), most)]
}

// wrap divides text into lines at its spaces, so that a flag of a command stays whole. Only a word that is wider than a
// line is cut.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && ansi.StringWidth(line)+1+ansi.StringWidth(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		parts := strings.Split(ansi.Hardwrap(word, width, true), "\n")
		lines, line = append(lines, parts[:len(parts)-1]...), parts[len(parts)-1]
	}
	return append(lines, line)
}
