package core

import (
	"errors"
	"fmt"
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
	return fmt.Sprintf("%s, and %d more", all[0], len(all)-1)
}
