package plans

import (
	"testing"
	"time"
)

func TestDurationsAreBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 5100 * time.Millisecond: "5.1s", 42 * time.Second: "42s", 372 * time.Second: "6m12s",
		125 * time.Minute: "2h05m", 76 * time.Hour: "3d04h",
	} {
		if got := Brief(d); got != want {
			t.Errorf("%s: got %q, expected %q", d, got, want)
		}
	}
}
