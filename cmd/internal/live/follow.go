package live

import (
	"context"
	"errors"
	"time"

	"github.com/stsmigrate/stsmigrate/internal/records"
)

const (
	// calm is the shortest time between two reads: clusters change all the time.
	calm = 300 * time.Millisecond
	// recheck is the longest time between two reads. A Lease that expires is no change.
	recheck = 10 * time.Second
)

// ErrLeft is the error of a watch that the user has left.
var ErrLeft = errors.New("left")

// Poll repeats a read whenever something may have changed.
type Poll struct {
	// Wake has a value when something may have changed.
	Wake <-chan struct{}
	// Leave, when closed, ends the watch.
	Leave <-chan struct{}
	// Complain receives errors after which the read is repeated.
	Complain func(error)
}

// Follow calls read until it reports that the watch is over, or ctx ends. If the first read fails, or what is read does
// not exist any more, it returns that error.
func (f Poll) Follow(ctx context.Context, read func(context.Context) (over bool, err error)) error {
	for first := true; ; first = false {
		over, err := read(ctx)
		switch {
		case over:
			return err
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case first || errors.As(err, new(records.ErrNoPlan)) || errors.As(err, new(records.ErrNoJournal)):
			return err
		default:
			f.Complain(err)
		}
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

// Feed is where the moments of a plan come from.
type Feed struct {
	Poll
	// Read reads one moment.
	Read func(context.Context) (Status, error)
}

// Follow calls each with the moments of a plan until it returns true.
func (f Feed) Follow(ctx context.Context, each func(Status) (over bool)) error {
	return f.Poll.Follow(ctx, func(ctx context.Context) (bool, error) {
		s, err := f.Read(ctx)
		return err == nil && each(s), err
	})
}

// wait returns when the next read is due.
func (f Poll) wait(ctx context.Context) error {
	soonest, latest := time.NewTimer(calm), time.NewTimer(recheck)
	defer soonest.Stop()
	defer latest.Stop()
	var wake <-chan struct{} // not before the soonest moment
	for {
		select {
		case <-soonest.C:
			wake = f.Wake
		case <-wake:
			return nil
		case <-latest.C:
			return nil
		case <-f.Leave:
			return ErrLeft
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
