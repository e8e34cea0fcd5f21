package live

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"

	"github.com/stsmigrate/stsmigrate/internal/view"
)

// typed is a model on which keys are pressed, and what they did.
type typed struct {
	model
	did []string
}

func newTyped(warning string, paused error) *typed {
	k := &typed{}
	did := func(what string) func() { return func() { k.did = append(k.did, what) } }
	k.model = model{
		known: true, size: view.Size{Width: 80, Height: 24}, now: noon, migration: view.Migration{Plan: "web", Active: true},
		do: Actions{Pause: func() error { did("pause")(); return paused }, Leave: did("leave"), Interrupt: did("interrupt")},
	}
	if warning != "" {
		k.model.do.Warning = func() string { return warning }
	}
	return k
}

// press presses keys one after the other, and delivers what they cause.
func (k *typed) press(keys string) {
	for _, r := range keys {
		key := tea.KeyPressMsg{Code: r, Text: string(r)}
		if r == 3 {
			key = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		next, cmd := k.Update(key)
		k.model = next.(model)
		if cmd != nil {
			next, _ = k.Update(cmd())
			k.model = next.(model)
		}
	}
}

func TestKeys(t *testing.T) {
	for keys, c := range map[string]struct{ did, sees string }{
		"p":     {"", "Pause web when the ordinal under way has arrived? y/n"},
		"pn":    {"", "p pause   e explain   q leave"},
		"py":    {"pause", "the plan pauses when"},
		"pq":    {"", "p pause"}, // q is no answer, and no key then
		"e":     {"", "until its pod is available"},
		"ee":    {"", "e explain"},
		"q":     {"", "Stop web? y/n"},
		"qy":    {"leave", ""},
		"qn":    {"", "q leave"},
		"\x03":  {"interrupt", ""},
		"p\x03": {"interrupt", ""},
	} {
		k := newTyped("Stop web?", nil)
		k.press(keys)
		content, last := k.frame()
		if got := strings.Join(k.did, " "); got != c.did || !strings.Contains(content, c.sees) {
			t.Errorf("%q: did %q, expected %q; it shows\n%s", keys, got, c.did, content)
		}
		if n := strings.Count(content, "\n"); last != n {
			t.Errorf("%q: the cursor is in line %d of %d", keys, last, n)
		}
	}
	k := newTyped("", errors.New("forbidden"))
	k.press("pyq")
	if content, _ := k.frame(); strings.Join(k.did, " ") != "pause leave" || !strings.Contains(content, "not paused: forbidden") {
		t.Errorf("did %v:\n%s", k.did, content)
	}
}

// The clock of the view runs while a process works on the plan, and stands still otherwise.
func TestTheClockOfTheView(t *testing.T) {
	k := newTyped("", nil)
	for _, active := range []bool{true, false} {
		k.migration = view.Migration{Active: active}
		next, _ := k.Update(tickMsg{})
		if ran := !next.(model).migration.Now.IsZero(); ran != active {
			t.Errorf("active %t: it ran: %t", active, ran)
		}
	}
}

// A view needs a terminal on both ends that can be drawn on. Programs get what they ask for.
func TestModes(t *testing.T) {
	_, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		events  string
		in, out *os.File
		term    string
		want    Mode
		fails   bool
	}{
		"a terminal":       {"", tty, tty, "xterm", Screen, false},
		"a dumb terminal":  {"", tty, tty, "dumb", Lines, false},
		"no name for it":   {"", tty, tty, "", Lines, false},
		"output to a file": {"", tty, file, "xterm", Lines, false},
		"no keyboard":      {"", nil, tty, "xterm", Lines, false},
		"text":             {"text", tty, tty, "xterm", Lines, false},
		"json":             {"json", tty, tty, "xterm", JSON, false},
		"a mistake":        {"yaml", tty, tty, "xterm", Lines, true},
	} {
		got, err := ModeOf(c.events, c.in, c.out, func(string) string { return c.term })
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Colours and signs are used where the usual variables allow them.
func TestStyles(t *testing.T) {
	for want, env := range map[view.Style]map[string]string{
		{Color: true}:              {"LANG": "de_DE.UTF-8"},
		{Color: true, ASCII: true}: {"LANG": "de_DE.UTF-8", "LC_ALL": "C"},
		{}:                         {"LC_CTYPE": "en_US.utf8", "NO_COLOR": "1"},
		{ASCII: true}:              {"NO_COLOR": "1"},
	} {
		if got := styleOf(func(name string) string { return env[name] }); got != want {
			t.Errorf("%v: %+v, expected %+v", env, got, want)
		}
	}
}

// A read that fails is repeated, unless it is the first one.
func TestAPollSurvivesErrors(t *testing.T) {
	broken := errors.New("connection refused")
	wake := make(chan struct{}, 1)
	for first, want := range map[bool]error{true: broken, false: nil} {
		n, complaints := 0, 0
		wake <- struct{}{}
		err := Poll{Wake: wake, Complain: func(error) { complaints++; wake <- struct{}{} }}.Follow(t.Context(), func(context.Context) (bool, error) {
			n++
			if first || n == 2 {
				return false, broken
			}
			return n == 3, nil
		})
		if !errors.Is(err, want) || !first && complaints != 1 {
			t.Errorf("first %t: %v after %d reads and %d complaints", first, err, n, complaints)
		}
		if first {
			<-wake
		}
	}
	left := make(chan struct{})
	close(left)
	if err := (Poll{Leave: left}).Follow(t.Context(), func(context.Context) (bool, error) { return false, nil }); !errors.Is(err, ErrLeft) {
		t.Error(err)
	}
}
