package reasons

import "errors"

// Reasoned is an error that knows its ID.
type Reasoned interface {
	error
	ReasonID() ID
}

// Of returns the ID of an error, or of an error that it wraps. It returns "" if there is none.
func Of(err error) ID {
	var r Reasoned
	if errors.As(err, &r) {
		return r.ReasonID()
	}
	return ""
}

// Because gives an error an ID. It returns nil for nil.
func Because(id ID, err error) error {
	if err == nil {
		return nil
	}
	return identified{err, id}
}

// Tagged returns a text with the ID of its reason behind it, for users who read only the text.
func Tagged(id ID, text string) string {
	if id == "" || text == "" {
		return text
	}
	return text + " [" + string(id) + "]"
}

// identified is an error with an ID.
type identified struct {
	error
	id ID
}

// ReasonID implements Reasoned.
func (e identified) ReasonID() ID { return e.id }

// Unwrap returns the error without its ID.
func (e identified) Unwrap() error { return e.error }
