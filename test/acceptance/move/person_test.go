package move_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// The window of a person.
const (
	columns = 120
	lines   = 40
)

// person is a user at a terminal, who knows nothing but what is on the screen.
type person struct {
	t        *testing.T
	keyboard *os.File
	before   *term.State
	cmd      *exec.Cmd
	ended    chan struct{}

	mu     sync.Mutex
	screen *vt.Emulator
}

// types starts the binary in a new window.
func types(t *testing.T, args ...string) *person {
	t.Helper()
	p := &person{t: t, ended: make(chan struct{}), screen: vt.NewEmulator(columns, lines)}
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	p.keyboard = keyboard
	if err := pty.Setsize(keyboard, &pty.Winsize{Rows: lines, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	if p.before, err = term.GetState(int(keyboard.Fd())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	p.cmd = exec.CommandContext(ctx, binary, args...)
	p.cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "PS1=shell> "}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = terminal, terminal, terminal
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan struct{})
	go p.watch(shown)
	go func() { _, _ = io.Copy(keyboard, p.screen) }() // the terminal answers what it is asked
	go func() {
		_ = p.cmd.Wait() // the caller checks its exit code
		cancel()
		p.draw("\x1b[0m") // what it has written before is on the screen
		close(p.ended)
	}()
	t.Cleanup(func() { _, _, _ = terminal.Close(), keyboard.Close(), p.screen.Close() })
	return p
}

// watch puts what the terminal receives on the screen.
func (p *person) watch(shown chan struct{}) {
	defer close(shown)
	for buf := make([]byte, 4096); ; {
		n, err := p.keyboard.Read(buf)
		if n > 0 {
			p.draw(string(buf[:n]))
		}
		if err != nil {
			return
		}
	}
}

func (p *person) draw(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.screen.WriteString(text) // into memory
}

// looks returns what is on the screen.
func (p *person) looks() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// sees waits until the screen shows all of these words at the same time.
func (p *person) sees(words ...string) {
	p.t.Helper()
	late := time.After(tooLong)
	for gone := false; ; {
		if hasAll(p.looks(), words) {
			return
		}
		if gone {
			p.t.Fatalf("%v ended with %d, and the screen does not show %q:\n%s", p.cmd.Args[1:3], p.cmd.ProcessState.ExitCode(), words, p.looks())
		}
		select {
		case <-p.ended:
			<-time.After(200 * time.Millisecond) // the last bytes are on their way
			gone = true
		case <-late:
			p.t.Fatalf("%v: the screen does not show %q in time:\n%s", p.cmd.Args[1:3], words, p.looks())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// presses types on the keyboard.
func (p *person) presses(keys string) {
	p.t.Helper()
	if _, err := p.keyboard.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// insists presses a key until the program ends. On a busy machine a key can come into the middle of what the terminal
// answers to a query of the program, and be taken for a part of it.
func (p *person) insists(key string) {
	p.t.Helper()
	for {
		p.presses(key)
		select {
		case <-p.ended:
			return
		case <-time.After(10 * time.Second):
		}
	}
}

// leaves waits for the end of the command. The terminal must be as it was.
func (p *person) leaves(code int) {
	p.t.Helper()
	<-p.ended
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("%v ended with %d, want %d:\n%s", p.cmd.Args[1:3], got, code, p.looks())
	}
	after, err := term.GetState(int(p.keyboard.Fd()))
	if err != nil {
		p.t.Fatal(err)
	}
	if !reflect.DeepEqual(p.before, after) {
		p.t.Errorf("%v: the modes of the terminal are not as they were: %+v, now %+v", p.cmd.Args[1:3], p.before, after)
	}
	p.isLegible()
}

// isLegible checks what the emulator knows: that the screen is the usual one, and the cursor visible.
func (p *person) isLegible() {
	p.t.Helper()
	<-time.After(200 * time.Millisecond) // the last bytes are on their way
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen.CursorHidden() || p.screen.IsAltScreen() {
		p.t.Errorf("%v: the cursor is hidden: %t, another screen is shown: %t", p.cmd.Args[1:3], p.screen.CursorHidden(), p.screen.IsAltScreen())
	}
}

// command returns the arguments of a command that the screen names.
func (p *person) command(verb string) []string {
	p.t.Helper()
	var joined strings.Builder // a long line continues on the next one
	for line := range strings.SplitSeq(p.looks(), "\n") {
		line = strings.TrimRight(line, " \r")
		joined.WriteString(line)
		if len([]rune(line)) < columns {
			joined.WriteString(" ")
		}
	}
	found := regexp.MustCompile("`stsmigrate (" + verb + " [^`]*)`").FindStringSubmatch(joined.String())
	if found == nil {
		p.t.Fatalf("the screen names no command %s:\n%s", verb, p.looks())
	}
	return strings.Fields(found[1])
}
