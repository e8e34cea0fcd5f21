package move_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The exit codes of the program.
const (
	done        = 0
	failed      = 1
	blocked     = 3
	held        = 4
	walkedBack  = 5
	notInTime   = 6
	inFlight    = 7
	interrupted = 130
	killed      = -1
)

// tooLong is the time after which a command counts as hanging.
const tooLong = 4 * time.Minute

// process is one run of the binary.
type process struct {
	t      *testing.T
	args   []string
	cmd    *exec.Cmd
	began  time.Time
	lines  chan string // stdout; closed at its end
	seen   strings.Builder
	stderr stream
	ended  chan struct{}
}

// result is the end of a run.
type result struct {
	args           []string
	code           int
	stdout, stderr string
}

// start runs the binary with these arguments, and an environment in which no line is wrapped: an empty home, no KUBECONFIG, no
// terminal.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	p := &process{t: t, args: args, began: time.Now(), lines: make(chan string, 10_000), ended: make(chan struct{}), stderr: stream{news: make(chan struct{}, 1)}}
	p.cmd = exec.CommandContext(ctx, binary, args...)
	p.cmd.Env = []string{"COLUMNS=10000", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	p.cmd.Stderr = &p.stderr
	read, write := io.Pipe()
	p.cmd.Stdout = write
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for text := bufio.NewScanner(read); text.Scan(); {
			p.lines <- text.Text()
		}
	}()
	go func() {
		_ = p.cmd.Wait() // end reads its exit code
		cancel()
		_ = write.Close() // it never fails
		close(p.ended)
	}()
	return p
}

// line reads one more line of the output. more is false at its end.
func (p *process) line() (text string, more bool) {
	text, more = <-p.lines
	if more {
		p.seen.WriteString(text + "\n")
	}
	return text, more
}

// until reads the output up to a line that contains all of these words.
func (p *process) until(words ...string) {
	p.t.Helper()
	for {
		line, more := p.line()
		if !more {
			break
		}
		if hasAll(line, words) {
			return
		}
	}
	<-p.ended
	p.t.Fatalf("stsmigrate %s ended before it said %q:\n%s%s", strings.Join(p.args, " "), words, p.seen.String(), p.stderr.String())
}

func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// stream is what a process has written so far.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

// String returns what was written.
func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// says returns when the process has written these words to stderr.
func (p *process) says(words string) {
	p.t.Helper()
	for !strings.Contains(p.stderr.String(), words) {
		select {
		case <-p.stderr.news:
		case <-p.ended:
			if !strings.Contains(p.stderr.String(), words) {
				p.t.Fatalf("it ended before it said %q:\n%s%s", words, p.seen.String(), p.stderr.String())
			}
		}
	}
}

// insists sends a signal, and once more when that counts as another one: the wave in flight is not finished.
func (p *process) insists(s syscall.Signal) {
	p.t.Helper()
	p.signal(s)
	p.says("one more signal stops after the current write")
	select {
	case <-p.ended:
	case <-time.After(1100 * time.Millisecond): // a signal within a second is a copy of the one before
	}
	p.signal(s)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Logf("signal %s: %v", s, err) // it ended by itself; its exit code shows how
	}
}

// end waits for the end of the process.
func (p *process) end() result {
	p.t.Helper()
	for more := true; more; {
		_, more = p.line()
	}
	<-p.ended
	p.t.Logf("%s: stsmigrate %s ended after %s with %d", time.Now().Format("15:04:05.000"), p.args[0], time.Since(p.began).Round(time.Millisecond), p.cmd.ProcessState.ExitCode())
	return result{args: p.args, code: p.cmd.ProcessState.ExitCode(), stdout: p.seen.String(), stderr: p.stderr.String()}
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	return start(t, args...).end()
}

// expect fails the test unless the run ended with this code, and its output, both streams together, contains
// these words.
func (r result) expect(t *testing.T, code int, words ...string) result {
	t.Helper()
	if r.code != code || !hasAll(r.stdout+r.stderr, words) {
		t.Fatalf("stsmigrate %s\nended with %d, want %d and the words %q:\n%s--- stderr\n%s", strings.Join(r.args, " "), r.code, code, words, r.stdout, r.stderr)
	}
	return r
}
