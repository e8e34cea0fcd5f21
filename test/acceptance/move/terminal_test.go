package move_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// atTerminal runs the binary as a user does: standard input is a terminal, and the answer is typed there.
// With a pipe as standard input the binary would refuse.
func atTerminal(t *testing.T, answer string, args ...string) result {
	t.Helper()
	keyboard, terminal := pseudoterminal(t)
	if _, err := keyboard.WriteString(answer); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tooLong)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = []string{"COLUMNS=10000", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &stdout, &stderr
	_ = cmd.Run() // the caller checks its exit code
	return result{args: args, code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func pseudoterminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = terminal.Close(), keyboard.Close() })
	return keyboard, terminal
}
