package core

import (
	"errors"
	"fmt"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// parts splits an error into the errors that were joined into it.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, parts(e)...)
	}
	return out
}

// brief shortens an error: it returns the first of the joined errors, and how many more there are. Hundreds
// of pods may fail for one reason.
func brief(err error) string {
	all := parts(err)
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0].Error()
	}
	more := fmt.Sprintf(", and %d more", len(all)-1)
	return Cut(all[0].Error(), maxMessageBytes-len(more)) + more
}

// maxMessageBytes is the maximum length of a condition's message. The API server refuses a status with a
// message that is longer than 32 KiB.
const maxMessageBytes = 1024

// Cut shortens a text to at most so many bytes, without splitting a character.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "..."
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// lasting returns the errors that a user has to act on: retries would fail in the same way (ST-9).
func lasting(err error) error {
	var out []error
	for _, e := range parts(err) {
		if apierrors.IsForbidden(e) || apierrors.IsInvalid(e) {
			out = append(out, e)
		}
	}
	return errors.Join(out...)
}
