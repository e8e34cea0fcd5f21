package program

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Duration adds a flag for a time of at least that length. A value that is out of its range is refused before the
// command begins.
func Duration(flags *pflag.FlagSet, to *time.Duration, name string, value, least time.Duration, usage string) {
	*to = value
	flags.Var(duration{to, least}, name, usage)
}

type duration struct {
	*time.Duration
	least time.Duration
}

// Set implements pflag.Value.
func (d duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil || v < d.least {
		return fmt.Errorf("expected a time of at least %s, such as 90s, 10m or 1h30m", d.least)
	}
	*d.Duration = v
	return nil
}

// Type implements pflag.Value.
func (duration) Type() string { return "duration" }
