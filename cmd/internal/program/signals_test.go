package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// unreadBy is the environment variable that makes this test a program whose output nobody reads: one that carries a
// plan out, or one that only reads.
const unreadBy = "STSMIGRATE_TEST_UNREAD"

// `apply | head` ends with the plan and not with head, which would leave the Lease of the plan behind. What only reads
// ends with its reader, as other tools do.
func TestAReaderThatEndsStopsOnlyWhatReads(t *testing.T) {
	if is := os.Getenv(unreadBy); is != "" {
		s := &Signals{To: io.Discard}
		s.Listen(func() {})
		if is == "carries" {
			s.Carries()
		}
		for range 3 {
			fmt.Println("an event")
		}
		os.Exit(0)
	}
	for is, want := range map[string]syscall.Signal{"carries": 0, "reads": syscall.SIGPIPE} {
		seen, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		seen.Close() //nolint:errcheck // a pipe
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env, c.Stdout = append(os.Environ(), unreadBy+"="+is), out
		var got syscall.Signal
		var exit *exec.ExitError
		if err := c.Run(); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
			got = exit.Sys().(syscall.WaitStatus).Signal()
		} else if err != nil {
			t.Errorf("what %s: %v", is, err)
		}
		out.Close() //nolint:errcheck // a pipe
		if got != want {
			t.Errorf("what %s: ended by signal %d, expected %d", is, got, want)
		}
	}
}
