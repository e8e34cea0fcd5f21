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
