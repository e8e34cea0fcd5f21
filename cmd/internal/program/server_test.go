package program

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// stuck is the environment variable that makes this test a program which does not end.
const stuck = "STSMIGRATE_TEST_STUCK"

func TestMain(m *testing.M) {
	if os.Getenv(stuck) != "" {
		Serve(&cobra.Command{Use: "stuck", Run: func(*cobra.Command, []string) {
			fmt.Println("begun")
			select {}
		}}, 100*time.Millisecond)
	}
	os.Exit(m.Run())
}

// A process ends after a signal even if something in it waits for ever, so that no kubelet has to kill it.
func TestASignalEndsAProcessThatIsStuck(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	c.Env, c.Args = append(os.Environ(), stuck+"=1"), c.Args[:1]
	var errOut strings.Builder
	c.Stderr = &errOut
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("%q: %v", line, err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errOut.String(), "has not ended within 100ms") {
		t.Errorf("%v: %s", err, errOut.String())
	}
}
