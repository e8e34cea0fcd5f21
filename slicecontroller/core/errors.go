package core

import "errors"

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
