package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Ctrl-C ends a command that never writes, without a message about writes.
func TestWhatOnlyReadsEndsAtOnce(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "mall", func(*journal.Journal) {})
	seen, out := io.Pipe()
	var errOut bytes.Buffer
	code := make(chan int)
	go func() {
		defer out.Close() //nolint:errcheck // a pipe
		code <- run([]string{"stsmigrate", "status", "web", "-w", "-n", "mall", "--kubeconfig", config}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errOut})
	}()
	if _, err := seen.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, seen) //nolint:errcheck // what more it has to say
	interrupt(t)
	if got := <-code; got != exitInterrupted || errOut.Len() > 0 {
		t.Errorf("it ends with %d and says %q, expected %d and nothing", got, errOut.String(), exitInterrupted)
	}
}

func interrupt(t *testing.T) {
	t.Helper()
	raise(t, syscall.SIGINT)
}

// silent answers a request only when its sender has given up.
func silent(t *testing.T, r *http.Request) {
	t.Helper()
	select {
	case <-r.Context().Done():
	case <-time.After(5 * time.Second):
		t.Errorf("%s is waited for in spite of all", r.URL.Path)
	}
}

// Before its first write, Ctrl-C ends every command at once, and nothing is written. It does so also while the server does
// not answer, to a request that has no context too.
func TestACommandThatIsInterruptedBeforeItsFirstWriteWritesNothing(t *testing.T) {
	ended := func(j *journal.Journal) { ended(j, plans.Abort) }
	for name, c := range map[string]struct {
		args []string
		at   string // the end of the path of the request at which the user gives up
		was  func(*journal.Journal)
	}{
		"forget":            {[]string{"forget", "web", "--yes"}, "-journal", ended},
		"pause":             {[]string{"pause", "web"}, "-journal", func(*journal.Journal) {}},
		"apply":             {[]string{"apply", "web", "--yes"}, "/namespaces/kube-system", func(*journal.Journal) {}},
		"rollout":           {[]string{"rollout", "restart", "web", "--yes"}, "/statefulsets/web", ended},
		"undo":              {[]string{"undo", "web", "--yes"}, "/statefulsets/web", ended},
		"install":           {[]string{"install", "policies", "--apply"}, "/apis", ended},
		"get, of the kinds": {[]string{"get"}, "/apis", ended},
		"plan, of the same": {[]string{"plan", "web", "--to-namespace", "new"}, "/api", ended},
	} {
		t.Run(name, func(t *testing.T) {
			on, config := serve(t, []string{"home"})
			keep(t, on, "mall", c.was)
			once := sync.OnceFunc(func() { interrupt(t) })
			on.before = func(r *http.Request) {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s is sent", r.Method, r.URL.Path)
				}
				if strings.HasSuffix(r.URL.Path, c.at) {
					once()
					silent(t, r)
				}
			}
			got := command(t, append(c.args, "-n", "mall", "--kubeconfig", config)...)
			if got.code != exitInterrupted || got.errOut != "" {
				t.Errorf("it ends with %d and says %q, expected %d and nothing", got.code, got.errOut, exitInterrupted)
			}
		})
	}
}

// A time limit holds from the first request, and for requests about kinds too.
func TestALimitOfTimeHoldsForAServerThatNeverAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		at   string
		code int
	}{
		"wait, of the kinds":           {[]string{"wait", "web"}, "/apis", exitTimeout},
		"wait":                         {[]string{"wait", "web"}, "-journal", exitTimeout},
		"rollout status, of the kinds": {[]string{"rollout", "status", "web"}, "/apis", exitError},
		"rollout status":               {[]string{"rollout", "status", "web"}, "/statefulsets/web", exitError},
		"adopt, of the kinds":          {[]string{"adopt", "web", "--yes"}, "/apis", exitError},
	} {
		t.Run(name, func(t *testing.T) { // one at a time: the log of the libraries is one for the process
			on, config := serve(t, []string{"home"})
			keep(t, on, "mall", func(*journal.Journal) {})
			on.before = func(r *http.Request) {
				if strings.HasSuffix(r.URL.Path, c.at) {
					silent(t, r)
				}
			}
			got := command(t, append(c.args, "--timeout", "1s", "-n", "mall", "--kubeconfig", config)...)
			if got.code != c.code || strings.Count(got.errOut, "\n") != 1 {
				t.Errorf("it ends with %d and says %q, expected %d", got.code, got.errOut, c.code)
			}
		})
	}
}

// What has no meaning is refused before anything is written.
func TestBadFlagsAreRefusedBeforeTheFirstWrite(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		was  func(*journal.Journal)
		want string
	}{
		"another form of events":  {[]string{"resume", "web", "--yes", "--events", "xml"}, func(j *journal.Journal) { j.Paused = true }, "expected json or text"},
		"no ordinal in flight":    {[]string{"resume", "web", "--yes", "--node-gone", "n1"}, func(j *journal.Journal) { j.Paused = true }, "has no ordinals in flight"},
		"more than there are":     {[]string{"abort", "web", "--yes", "--max-unavailable", "99"}, func(j *journal.Journal) { j.Done, j.Begun = 1, 1 }, "--max-unavailable 99: expected 1"},
		"events of no watch":      {[]string{"status", "web", "--events", "json"}, func(*journal.Journal) {}, "give -w too"},
		"events and a document":   {[]string{"status", "web", "-w", "-o", "json", "--events", "json"}, func(j *journal.Journal) { j.Outcome = plans.Moved }, "--events and -o"},
		"events of a dry run":     {[]string{"apply", "web", "--dry-run", "--events", "json"}, func(*journal.Journal) {}, "--dry-run carries nothing out"},
		"events of a dry turn":    {[]string{"finalize", "web", "--dry-run=client", "--events", "json"}, func(j *journal.Journal) { j.Outcome = plans.Moved }, "--dry-run carries nothing out"},
		"events of another":       {[]string{"apply", "web", "--detach", "--events", "json"}, func(*journal.Journal) {}, "with --detach an orchestrator does that"},
		"events that are nothing": {[]string{"status", "web", "--events", "jsn"}, func(*journal.Journal) {}, "did you mean json?"},
	} {
		t.Run(name, func(t *testing.T) {
			on, config := serve(t, []string{"home"})
			keep(t, on, "mall", c.was)
			on.before = func(r *http.Request) {
				if r.Method != http.MethodGet {
					t.Errorf("%s %s is sent", r.Method, r.URL.Path)
				}
			}
			got := command(t, append(c.args, "-n", "mall", "--kubeconfig", config)...)
			if got.code != exitError || !strings.Contains(got.errOut, c.want) {
				t.Errorf("it ends with %d and says %q, expected %q", got.code, got.errOut, c.want)
			}
		})
	}
}

// A plan is written all at once, and never over another document.
func TestAPlanTakesThePlaceOfNoOtherFile(t *testing.T) {
	folder := t.TempDir()
	migration := filepath.Join(folder, "migration.yaml")
	if err := os.WriteFile(migration, []byte("kind: StatefulSetMigration\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{migration: "which is no plan", folder: "it is a directory", "-": "use -o yaml"} {
		got := command(t, "plan", "web", "--to-namespace", "new", "--out", out, "--kubeconfig", filepath.Join(folder, "none"))
		if got.code != exitError || !strings.Contains(got.errOut, want) {
			t.Errorf("--out %s: it ends with %d and says %q, expected %q", out, got.code, got.errOut, want)
		}
	}
}

// An adoption that only waits ends with a signal as interrupted, and after its time limit as blocked.
func TestAnAdoptionSaysWhyItNoLongerWaits(t *testing.T) {
	a := &app{signals: new(program.Signals)}
	over, stop := context.WithCancel(t.Context())
	stop()
	late, free := context.WithTimeout(t.Context(), 0)
	defer free()
	for ctx, want := range map[context.Context]int{over: exitInterrupted, late: exitBlocked} {
		var got exitCode
		if err := a.waitForAdoption(ctx, clusters.NewChangeSignal(), plans.Observation{}); !errors.As(err, &got) || got.code != want {
			t.Errorf("%v, expected exit code %d", err, want)
		}
	}
}
