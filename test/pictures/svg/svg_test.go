package svg

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// A picture is XML, whatever its words are.
func TestWordsAreEscaped(t *testing.T) {
	p := New(100, 50, "a < b & c")
	p.Box(0, 0, 10, 10, Plain, "<b>", "d = \"1\"")
	p.Small(1, 2, "& so on")
	p.Arrow(0, 0, 1, 1)
	got := p.String()
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
	}
	if !strings.Contains(got, "a &lt; b &amp; c") || strings.Contains(got, "<b>") {
		t.Errorf("the words are not escaped:\n%s", got)
	}
}
