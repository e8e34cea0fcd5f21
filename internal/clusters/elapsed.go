package clusters

import "time"

// Elapsed returns how long ago a time was, by the clock that shows more. The monotonic clock stops while
// the machine sleeps, and the wall clock may be set back.
func Elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), wall(then, now))
}

// Within reports whether a time is no longer ago than limit. A clock that was set back counts as long ago.
func Within(limit time.Duration, then, now time.Time) bool {
	return wall(then, now) >= 0 && Elapsed(then, now) <= limit
}

func wall(then, now time.Time) time.Duration { return now.Round(0).Sub(then.Round(0)) }
