package orchestrator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// backoff is how the pauses grow between attempts: ten of them are twenty seconds.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2.5, Jitter: 0.2, Steps: 10, Cap: 10 * time.Second}
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
