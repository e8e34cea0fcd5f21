package core

import (
	"errors"
	"fmt"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// parts takes an error apart into those that were joined to it.
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

// brief says an error in few words: the first of those that were joined to it, and how many more
// there are. Hundreds of pods may fail for one reason.
func brief(err error) string {
	all := parts(err)
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0].Error()
	}
	more := fmt.Sprintf(", and %d more", len(all)-1)
	return cut(all[0].Error(), maxMessageBytes-len(more)) + more
}

// maxMessageBytes is how many bytes the message of a condition has at most: the API server refuses a status
// with one that is longer than 32 KiB.
const maxMessageBytes = 1024

// cut gives no more of a text than so many bytes, and whole letters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "..."
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// lasting are the errors that somebody has to do something about: trying again meets them again
// (ST-9).
func lasting(err error) error {
	var out []error
	for _, e := range parts(err) {
		if apierrors.IsForbidden(e) || apierrors.IsInvalid(e) {
			out = append(out, e)
		}
	}
	return errors.Join(out...)
}
