package program

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
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

// A program whose API server is away says so, and what to do, in place of what a library wanted of that server. A
// server that refuses to tell its version is there.
func TestAServerThatIsAwayIsNotReached(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want string
	}{
		"it answers":                  {http.StatusOK, ""},
		"it refuses":                  {http.StatusForbidden, ""},
		"it does not know the caller": {http.StatusUnauthorized, "renew the credentials of this context (log in again), then start it again"},
		"it is away":                  {0, "connection refused; check that the API server can be reached from here (address, network, proxy), then start it again"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.code)
				_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","code":%d,"reason":%q}`, c.code, http.StatusText(c.code))
			}))
			if c.code == 0 {
				s.Close()
			}
			t.Cleanup(s.Close)
			var errOut strings.Builder
			code := Run(t.Context(), &cobra.Command{Use: "p", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
				return Reach(cmd.Context(), &rest.Config{Host: s.URL})
			}}, nil, &errOut, &errOut)
			if said := errOut.String(); (code != 0) != (c.want != "") || !strings.Contains(said, c.want) || strings.Contains(said, "restmapping") {
				t.Errorf("exit code %d, %q, expected %q", code, said, c.want)
			}
		})
	}
}
