package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
)

// NewToken returns a random token, and a function that accepts no other one.
func NewToken() (token string, accept Accept) {
	token = rand.Text() + rand.Text()
	return token, func(_ context.Context, got string) error {
		if subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
			return ErrWho{errors.New("the token is not the one that `stsmigrate dashboard` has printed")}
		}
		return nil
	}
}

// Accept returns nil if the bearer of a token may see the rows; an ErrWho or ErrMay if not; and another error if
// that cannot be found out now.
type Accept func(ctx context.Context, token string) error

// ErrWho reports that a token is unknown.
type ErrWho struct{ Why error }

func (e ErrWho) Error() string { return e.Why.Error() }

// ErrMay reports that a user is known and may not see the rows.
type ErrMay struct{ Why error }

func (e ErrMay) Error() string { return e.Why.Error() }
