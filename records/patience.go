package records

import (
	"context"
	"time"
)

// Attempts counts how often somebody else was faster (409). Two are nothing special; from then on the pauses
// grow, and after twelve, half a minute later, it was nobody who is faster.
type Attempts int

// Again waits before the next attempt, and is false when there is to be none.
func (n *Attempts) Again(ctx context.Context) bool {
	switch *n++; {
	case *n <= 2:
		return ctx.Err() == nil
	case *n <= 12:
		return sleep(ctx, 10*time.Millisecond<<*n) == nil
	}
	return false
}

// sleep waits, whatever else happens.
func sleep(ctx context.Context, d time.Duration) error {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
