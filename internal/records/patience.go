package records

import (
	"context"
	"time"
)

// Attempts counts conflicts with other writers (409). Two are normal. From then on the pauses grow.
// After twelve, about half a minute later, the cause is not another writer.
type Attempts int

// Again waits before the next attempt. It returns false when no further attempt is allowed.
func (n *Attempts) Again(ctx context.Context) bool {
	switch *n++; {
	case *n <= 2:
		return ctx.Err() == nil
	case *n <= 12:
		return sleep(ctx, 10*time.Millisecond<<*n) == nil
	}
	return false
}

// sleep waits for d, or until ctx ends.
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
