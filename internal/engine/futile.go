package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
)

// sent counts the writes of one step by what they do. The look after an effective write finds another write
// or a wait, so a write that repeats has no effect.
type sent struct {
	seq   int
	times map[string]int
}

const (
	// promptResends is how often the same write is sent without a pause: another writer may be faster (409).
	promptResends = 2
	// maxResends is how often the same write is sent before the plan is blocked (L1, L3).
	maxResends = 10
)

// wrote pauses between writes that change nothing, and blocks the plan after maxResends of them.
func (r *run) wrote(ctx context.Context, p Progress) (Progress, error) {
	if p.Step.Op.Gated() {
		return p, nil // a gate that is run again is not a write
	}
	if r.sent.times == nil || r.sent.seq != p.Step.Seq {
		r.sent = sent{p.Step.Seq, map[string]int{}}
	}
	r.sent.times[p.Reason]++
	n := r.sent.times[p.Reason]
	if n <= promptResends {
		return p, nil
	}
	why := r.ineffective()
	if n >= maxResends && p.Kind == Wrote && p.Reason != journalMoved {
		return r.Block(ctx, p.Step, reasons.WriteWithoutEffect, fmt.Sprintf("%s: this write was sent %d times without effect: %v; stop the writer that reverts it, then `resume`, or `abort`", p.Reason, n, why))
	}
	r.Report(p, fmt.Errorf("%s: sent repeatedly without effect: %w", cmp.Or(p.Reason, "writing the journal"), why))
	pause := time.NewTimer(min(100*time.Millisecond<<min(n-promptResends-1, 10), 10*time.Second))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-r.Stop:
	case <-ctx.Done():
		return p, ctx.Err()
	}
	return p, nil
}

// ineffective returns why a write changes nothing, as far as that is known.
func (r *run) ineffective() error {
	if r.answered != nil {
		return fmt.Errorf("the API server answers: %w", r.answered)
	}
	if by := r.observer.reads.OtherWriters(r.plan.ID); by != "" {
		return fmt.Errorf("the write is accepted and reverted at once, by a webhook or by one of %s", by)
	}
	return errors.New("the write is accepted and reverted at once, most likely by a webhook")
}
