package view

import (
	"charm.land/lipgloss/v2"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Size is the size of a frame in columns and lines.
type Size struct{ Width, Height int }

// Style is what the terminal can show. Without Color no escape code is used, and with ASCII no character beyond ASCII.
// Words say everything that colours and signs repeat.
type Style struct{ Color, ASCII bool }

// tint is the role of a coloured text.
type tint int

const (
	dim tint = iota
	strong
	good
	busy
	bad
)

// paint colours text, if the style has colours.
func (s Style) paint(text string, t tint) string {
	if !s.Color || text == "" {
		return text
	}
	style := lipgloss.NewStyle()
	switch t {
	case dim:
		style = style.Foreground(lipgloss.Color("8"))
	case strong:
		style = style.Bold(true)
	case good:
		style = style.Foreground(lipgloss.Color("2"))
	case busy:
		style = style.Foreground(lipgloss.Color("3"))
	case bad:
		style = style.Foreground(lipgloss.Color("1")).Bold(true)
	}
	return style.Render(text)
}

// paintSpan colours the part of a bar that belongs to the span at a position.
func (s Style) paintSpan(text string, at int) string {
	if !s.Color {
		return text
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color([]string{"3", "5", "4", "6", "2"}[at%len(plans.Spans())])).Render(text)
}

// pick returns the first text where the terminal shows only ASCII, and else the second.
func (s Style) pick(ascii, other string) string {
	if s.ASCII {
		return ascii
	}
	return other
}

// tintOf returns the role of the word for a plan's state.
func tintOf(state plans.State) tint {
	switch state.Tone() {
	case plans.ToneBad:
		return bad
	case plans.ToneBusy:
		return busy
	case plans.ToneGood:
		return good
	case plans.TonePlain:
	}
	return strong
}

// pod returns the sign and the word for a pod on one side.
func (s Style) pod(word string) (string, tint) {
	switch word {
	case "-", "":
		return "  -", dim
	case "Ready":
		return s.pick("*", "●") + " " + word, good
	case "Terminating":
		return s.pick("x", "◌") + " " + word, busy
	case "missing", "?", "Failed":
		return s.pick("!", "✗") + " " + word, bad
	}
	return s.pick("~", "◐") + " " + word, busy
}
