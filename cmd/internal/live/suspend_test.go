//go:build unix

package live

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// asView is the variable with which this binary draws a view, and does nothing else, until q is pressed.
const asView = "STSMIGRATE_TEST_DRAWS_A_VIEW"

func TestMain(m *testing.M) {
	if os.Getenv(asView) == "" {
		os.Exit(m.Run())
	}
	left := make(chan struct{})
	s, err := open(Terminal{In: os.Stdin, Out: os.Stdout, Env: os.Getenv, Now: time.Now}, Actions{Leave: sync.OnceFunc(func() { close(left) }), Interrupt: func() {}})
	if err != nil {
		panic(err)
	}
	<-left
	s.close()
}

// shell is a program, such as a shell with job control, at a terminal of its own.
type shell struct {
	t        *testing.T
	keyboard *os.File
	mu       sync.Mutex
	shown    bytes.Buffer
	more     chan struct{} // gets a value when more was shown
	read     int           // how much of it was seen
}

func opens(t *testing.T, program string, args ...string) *shell {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = []string{asView + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "PS1=shell> "}
	keyboard, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, keyboard: keyboard, more: make(chan struct{}, 1)}
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := keyboard.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _, _ = cmd.Wait(), keyboard.Close() })
	return s
}

// sees waits until the shell has shown a text after what was seen before, and returns everything up to it.
func (s *shell) sees(text string) string {
	s.t.Helper()
	for late := time.After(20 * time.Second); ; {
		s.mu.Lock()
		rest := s.shown.String()[s.read:]
		if at := strings.Index(rest, text); at >= 0 {
			s.read += at + len(text)
			s.mu.Unlock()
			return rest[:at]
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-late:
			s.t.Fatalf("the terminal does not show %q, but %q", text, rest)
		}
	}
}

func (s *shell) types(keys string) {
	s.t.Helper()
	if _, err := s.keyboard.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// Ctrl-Z and SIGTSTP stop a view as any other program: the shell has its terminal back, in the modes that it had, and
// `fg` brings the view back. After SIGSTOP, which no program can catch, the view takes the terminal again.
func TestAStoppedViewGivesTheTerminalBack(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash on PATH, which has the jobs of this test")
	}
	s := opens(t, "bash", "--norc", "--noprofile", "-i")
	s.sees("shell> ")
	s.types("echo modes; stty -g\r")
	s.sees("modes\r\n")
	modes := s.sees("\r\n")
	s.sees("shell> ")
	s.types("sh -c 'echo pid $$.; exec " + os.Args[0] + "'\r") // in the foreground from the start
	s.sees("\r\n")
	s.sees("pid ")
	pid, err := strconv.Atoi(s.sees("."))
	if err != nil {
		t.Fatal(err)
	}
	s.sees("q leave")
	for name, stop := range map[string]func() error{
		"Ctrl-Z":  func() error { s.types("\x1a"); return nil },
		"SIGTSTP": func() error { return syscall.Kill(-pid, syscall.SIGTSTP) },
		"SIGSTOP": func() error { return syscall.Kill(-pid, syscall.SIGSTOP) },
		// The view is stopped once more before it has done all that follows a stop.
		"SIGSTOP at once after Ctrl-Z": func() error {
			s.types("\x1a")
			s.sees("shell> ")
			s.types("fg\r")
			s.sees("q leave")
			return syscall.Kill(-pid, syscall.SIGSTOP)
		},
	} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		s.sees("Stopped")
		s.sees("shell> ")
		s.types("echo it has $((40 + 2)) lines; stty -g\r")
		s.sees("echo it has $((40 + 2))") // what is typed is shown
		s.sees("it has 42 lines\r\n")
		if now := s.sees("\r\n"); now != modes {
			t.Errorf("%s: the modes of the terminal are %s, and were %s", name, now, modes)
		}
		s.sees("shell> ")
		s.types("fg\r")
		s.sees("q leave")
	}
	s.types("q")
	s.sees("shell> ")
	s.types("exit\r")
	s.sees("exit")
}

// Ctrl-Z is refused where no shell could continue the process, as in a container: it would stay as it is for ever.
// That is also so below a shell that has no jobs, as in `ssh -t HOST 'cd X; stsmigrate ...'`.
func TestAViewWithoutAShellIsNotStopped(t *testing.T) {
	for _, args := range [][]string{{os.Args[0]}, {"sh", "-c", os.Args[0] + "; true"}} {
		s := opens(t, args[0], args[1:]...)
		s.sees("q leave")
		s.types("\x1a")
		s.sees("not stopped: ")
		s.types("q")
		s.sees("\x1b[?25h")
	}
}
