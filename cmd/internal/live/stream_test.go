package live_test

import (
	"bytes"
	"testing"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
)

// A character that is written in parts is one character.
func TestCharactersMayComeInParts(t *testing.T) {
	const text = "schön \u202e文字\n"
	var whole, parts bytes.Buffer
	w, p := live.NewStream(&whole), live.NewStream(&parts)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte(text) {
		if n, err := p.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if whole.String() != parts.String() || whole.String() != "schön \\u202e文字\n" {
		t.Errorf("%q, in parts %q", whole.String(), parts.String())
	}
}

// While a view is drawn, what a command says goes there, and to the terminal again afterwards.
func TestMessagesAreDivertedForAWhile(t *testing.T) {
	var terminal, notices bytes.Buffer
	out := live.NewStream(&terminal)
	undo := live.DivertAll(&notices, out, &bytes.Buffer{})
	for _, text := range []string{"one ", "two"} {
		if _, err := out.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		undo()
	}
	if notices.String() != "one " || terminal.String() != "two" {
		t.Errorf("notices %q, terminal %q", notices.String(), terminal.String())
	}
	if live.DivertAll(nil, out); live.File(out) != nil {
		t.Error("a buffer is no file")
	}
}
