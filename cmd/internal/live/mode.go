package live

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"

	"github.com/stsmigrate/stsmigrate/view"
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
