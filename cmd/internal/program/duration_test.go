package program

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestADurationHasARange(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1s": time.Second, "": 0, "-3s": 0, "0": 0, "999ms": 0, "10": 0, "soon": 0} {
		var got time.Duration
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		Duration(flags, &got, "timeout", 5*time.Minute, time.Second, "how long")
		err := flags.Parse([]string{"--timeout=" + text})
		if want == 0 {
			if err == nil || !strings.Contains(err.Error(), "--timeout") || !strings.Contains(err.Error(), "at least 1s") || got != 5*time.Minute {
				t.Errorf("%q: %v, %s", text, err, got)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %v, %s", text, err, got)
		}
	}
}
