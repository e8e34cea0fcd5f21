package live

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/view"
)

// Mode is how a plan is shown.
type Mode int

const (
	// Lines is one line of text per event.
	Lines Mode = iota
	// JSON is one JSON object per event and line.
	JSON
	// Screen is a view that is drawn again and again.
	Screen
)

// EventsFlag adds --events to a command. The flag is refused, before anything is read, where the command has no events.
// With it standard output is for events alone, and what the user asked for beside it would not be there.
func EventsFlag(cmd *cobra.Command, to *string) {
	program.Choice(cmd.Flags(), to, "events", "print one line per event, also on a terminal: json (one object per line, docs/schemas/event.schema.json) or text", "json", "text")
	program.Before(cmd, func() error {
		if *to == "" {
			return nil
		}
		return eventless(cmd)
	})
}

// eventless returns why a command has no events, or nil.
func eventless(cmd *cobra.Command) error {
	is := func(flag string, values ...string) bool {
		f := cmd.Flags().Lookup(flag)
		return f != nil && slices.Contains(values, f.Value.String())
	}
	switch {
	case is("watch", "false"):
		return errors.New("--events is for the events of a plan that is watched: give -w too")
	case cmd.Flags().Changed("output"):
		return errors.New("--events and -o are two forms of one output: give one of them")
	case is("dry-run", "client", "server"):
		return errors.New("--events is for what is carried out, and --dry-run carries nothing out: give one of them")
	case is("detach", "true"):
		return errors.New("--events is for what this command carries out, and with --detach an orchestrator does that: leave it, and see the events with `stsmigrate status -w --events`")
	}
	return nil
}

// ModeOf returns how a plan is shown. events is the value of --events. The view needs a terminal that a person types at
// and that can move its cursor.
func ModeOf(events string, in, out *os.File, env func(string) string) (Mode, error) {
	switch events {
	case "json":
		return JSON, nil
	case "text":
		return Lines, nil
	case "":
	default:
		return Lines, fmt.Errorf("--events %s: expected json or text", events)
	}
	kind := env("TERM")
	if !isTerminal(in) || !isTerminal(out) || kind == "dumb" || kind == "" && runtime.GOOS != "windows" {
		return Lines, nil
	}
	return Screen, nil
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// styleOf returns what the terminal can show, by the usual variables: NO_COLOR, and the locale.
func styleOf(env func(string) string) view.Style {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale == "" {
			locale = env(name)
		}
	}
	unicode := strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8")
	return view.Style{Color: env("NO_COLOR") == "", ASCII: !unicode && runtime.GOOS != "windows"}
}
