package clusters

import (
	"testing"
	"time"
)

func TestWithinCountsTheClockThatShowsMore(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		then time.Time
		want bool
	}{
		"a moment ago":                {now.Add(-time.Second), true},
		"long ago":                    {now.Add(-time.Minute), false},
		"long ago, by the wall clock": {now.Add(-time.Minute).Round(0), false},
		"at a later time, before the clock was set": {now.Add(time.Minute).Round(0), false},
	} {
		if got := Within(10*time.Second, c.then, now); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
