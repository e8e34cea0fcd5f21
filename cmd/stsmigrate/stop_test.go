package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// aloft takes a journal to the middle of the wave of ordinal 2, which has left at noon.
func aloft(p *plans.Plan, j *journal.Journal) {
	for s, _ := p.Step(j.Leg, 1); s.Op != plans.Vacate; s, _ = p.Step(j.Leg, s.Seq+1) {
		j.Done, j.Begun = s.Seq, s.Seq
	}
	j.Begun++
	j.Epoch, j.Flight = 1, &plans.Flight{Ordinals: plans.Slice{Start: 2, Replicas: 1}, From: plans.Source}
	j.Leave(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
}

// A plan that nobody carries on says whether anything is down, to people and to programs, and one command goes on.
func TestAStoppedPlanSaysWhatIsDown(t *testing.T) {
	const down = "web-2 is down on both sides since 2026-01-01 12:00:00 UTC"
	for name, c := range map[string]struct {
		set   func(*plans.Plan, *journal.Journal)
		state string
		code  int // of status
		wait  int
		says  string
	}{
		"in flight":              {aloft, "StoppedInFlight", exitInFlight, exitInFlight, down},
		"with nothing in flight": {func(_ *plans.Plan, j *journal.Journal) { j.Epoch, j.Done, j.Begun = 1, 1, 1 }, "Stopped", exitDone, exitBlocked, ""},
		"in flight, and blocked": {func(p *plans.Plan, j *journal.Journal) { aloft(p, j); j.Blocked = "why" }, "Blocked", exitBlocked, exitBlocked, down},
		"in flight, on its way back": {func(p *plans.Plan, j *journal.Journal) {
			aloft(p, j)
			j.StartLeg(p, plans.Abort)
		}, "StoppedInFlight", exitInFlight, exitInFlight, "web-2 is down on both sides"},
	} {
		t.Run(name, func(t *testing.T) {
			on, config := serve(t, []string{"home"})
			keepOf(t, on, "mall", func(*build.Inputs) {}, c.set)
			reach := []string{"-n", "mall", "--kubeconfig", config}
			got := command(t, append([]string{"status", "web"}, reach...)...)
			if got.code != c.code {
				t.Errorf("status ends with %d: %s%s", got.code, got.out, got.errOut)
			}
			showsWhatIsDown(t, got, c.state, c.says)
			got = command(t, append([]string{"status", "web", "-o", "json"}, reach...)...)
			viewHasWhatIsDown(t, got, plans.State(c.state), c.says != "")
			if got = command(t, append([]string{"get"}, reach...)...); !strings.Contains(got.out, c.state) {
				t.Errorf("get: %s", got.out)
			}
			got = command(t, append([]string{"wait", "web"}, reach...)...)
			if got.code != c.wait || !strings.Contains(got.errOut, "stsmigrate resume web") || !strings.Contains(got.errOut, c.says) && c.state != "Blocked" {
				t.Errorf("wait ends with %d: %s", got.code, got.errOut)
			}
			if got = command(t, append([]string{"wait", "web", "--for", c.state}, reach...)...); got.code != exitDone {
				t.Errorf("wait for it ends with %d: %s", got.code, got.errOut)
			}
		})
	}
}

// showsWhatIsDown checks the status for people: the state, what is down, and the one command that continues.
func showsWhatIsDown(t *testing.T, got outcome, state, says string) {
	t.Helper()
	if !strings.Contains(got.out, state) || !strings.Contains(got.out, says) || (says != "") != strings.Contains(got.out, "down:") {
		t.Errorf("status ends with %d: %s%s", got.code, got.out, got.errOut)
	}
	if next := "`stsmigrate resume web -n mall --context home`"; !strings.Contains(got.out, "next:    "+next) && !strings.Contains(got.out, "stsmigrate resume web") {
		t.Errorf("status does not name %s: %s", next, got.out)
	}
	if turns := strings.Contains(got.out, "turns the plan to the destination again"); strings.Contains(got.out, "stsmigrate apply") != turns {
		t.Errorf("status names two verbs that go on: %s", got.out)
	}
}

// viewHasWhatIsDown checks the status for programs: the state, and whether the wave of web-2 is in flight.
func viewHasWhatIsDown(t *testing.T, got outcome, state plans.State, flies bool) {
	t.Helper()
	var v engine.View
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || v.State != state || (v.InFlight != nil) != flies || v.InFlight != nil && (v.InFlight.Pods != "web-2" || len(v.InFlight.Down) != 1) {
		t.Errorf("%v: %s", err, got.out)
	}
}

// A plan with an ordinal in flight that a process carries out is not said to be stopped.
func TestAPlanUnderWayIsNotSaidToBeStopped(t *testing.T) {
	on, config := serve(t, []string{"home"})
	on.serves("poddisruptionbudgets", "policy/v1 PodDisruptionBudget")
	keepOf(t, on, "mall", func(*build.Inputs) {}, aloft)
	if _, err := records.NewStore(on, "mall", "web").Acquire(t.Context(), "elsewhere/1", func(string) bool { return false }, time.Now); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"status", "verify"} {
		got := command(t, verb, "web", "-o", "json", "-n", "mall", "--kubeconfig", config)
		if !strings.Contains(got.out, `"state": "Moving"`) || strings.Contains(got.out, "inFlight") {
			t.Errorf("%s ends with %d: %s%s", verb, got.code, got.out, got.errOut)
		}
	}
}

// A run that ends early says what it leaves down since when, with a code of its own.
func TestTheEndOfARunSaysWhatIsDown(t *testing.T) {
	down := stops.Remains{InFlight: &engine.InFlight{Pods: "web-2", Message: "web-2 is down on both sides since 11:02:57 UTC, no node of either side can be drained"}}
	const resume = "`stsmigrate resume web -n stsmigrate --context west`"
	for name, c := range map[string]struct {
		how  engine.Progress
		left stops.Remains
		err  error
		code int
		says []string
		not  string
	}{
		"at once":             {engine.Progress{}, down, engine.ErrStopped, exitInFlight, []string{"stopped in flight: " + down.InFlight.Message + ". To resume: " + resume, "to abort: "}, "apply"},
		"after the wave":      {engine.Progress{Kind: engine.Stopped}, stops.Remains{}, engine.ErrStopped, exitInterrupted, []string{"stopped; no ordinal is in flight. To resume: " + resume}, "down"},
		"at a step with none": {engine.Progress{}, stops.Remains{}, engine.ErrStopped, exitInterrupted, []string{"no ordinal is in flight", resume}, "apply"},
		"not known":           {engine.Progress{}, stops.Remains{Unread: apierrors.NewInternalError(io.EOF)}, engine.ErrStopped, exitInterrupted, []string{"could not be read", "stsmigrate status web", resume}, "no ordinal is in flight"},
		"blocked":             {engine.Progress{Kind: engine.Blocked, Reason: "why"}, down, nil, exitBlocked, []string{"blocked: why\nMeanwhile web-2 is down", resume}, "apply"},
	} {
		var got exitCode
		err := (&app{}).conclude(ending(plans.NoNames), &journal.Journal{}, plans.Move, c.how, c.left, c.err)
		if err == nil || !asCode(err, &got) || got.code != c.code || strings.Contains(got.message, c.not) {
			t.Errorf("%s: %d, %v", name, got.code, err)
		}
		for _, want := range c.says {
			if !strings.Contains(got.message, want) {
				t.Errorf("%s: it says %q, expected %q", name, got.message, want)
			}
		}
	}
	if err := (&app{}).conclude(ending(plans.NoNames), &journal.Journal{}, plans.Abort, engine.Progress{}, down, io.EOF); err == nil || !strings.Contains(err.Error(), resume+"; meanwhile web-2 is down") {
		t.Errorf("after an error: %v", err)
	}
	if err := (&app{}).conclude(ending(plans.NoNames), nil, plans.Abort, engine.Progress{}, stops.Remains{}, io.EOF); err == nil || !strings.Contains(err.Error(), "`stsmigrate abort web") {
		t.Errorf("of an abort that is not recorded: %v", err)
	}
}

func asCode(err error, to *exitCode) bool {
	code, ok := err.(exitCode) //nolint:errorlint // as it is returned
	*to = code
	return ok
}

// stream is one that can be read while it is written.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (k *stream) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case k.news <- struct{}{}:
	default:
	}
	return k.text.Write(p)
}

func (k *stream) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// until returns when the stream has a text.
func (k *stream) until(t *testing.T, text string, over <-chan int) {
	t.Helper()
	for !strings.Contains(k.String(), text) {
		select {
		case <-k.news:
		case code := <-over:
			t.Fatalf("it ends with %d before it says %q: %s", code, text, k.String())
		}
	}
}

// A wave that waits for what does not come holds up the first signal, which says so, and not the second. Several copies of
// one signal are one. The Lease is given up, also when the terminal is closed.
func TestTheFirstSignalWaitsForTheWaveAndTheSecondDoesNot(t *testing.T) {
	// Under nohup a hang-up is ignored, and what is started there ignores it too.
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGHUP)
	defer signal.Stop(unheard)
	for name, first := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "a process manager": syscall.SIGTERM, "a closed terminal": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			on, config := serve(t, []string{"home"})
			on.serves("poddisruptionbudgets", "policy/v1 PodDisruptionBudget")
			p := keepOf(t, on, "mall", func(*build.Inputs) {}, func(p *plans.Plan, j *journal.Journal) {
				aloft(p, j)
				j.Epoch = 4
			})
			store := records.NewStore(on, "mall", "web")
			raised := sync.OnceFunc(func() { raise(t, first, syscall.SIGTERM, syscall.SIGHUP) })
			on.away = setsAwayAfter(store, p, 4, raised)
			errOut, code := &stream{news: make(chan struct{}, 1)}, make(chan int, 1)
			go func() {
				code <- run([]string{"stsmigrate", "resume", "web", "--yes", "-n", "mall", "--kubeconfig", config}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: errOut})
			}()
			errOut.until(t, "stopping as soon as web-2 has arrived", code)
			select {
			case got := <-code:
				t.Fatalf("it ends with %d while the wave is in flight: %s", got, errOut)
			case <-time.After(1100 * time.Millisecond): // only then another one counts
			}
			interrupt(t)
			got := <-code
			said := errOut.String()
			if got != exitInFlight || !strings.Contains(said, "stopping after the current write, with web-2 on neither side") || !strings.Contains(said, "stopped in flight: web-2 is between the two sides since 2026-01-01 12:00:00 UTC") {
				t.Errorf("it ends with %d: %s", got, said)
			}
			if holder, _, err := store.Holder(t.Context(), time.Now); holder != "" || err != nil {
				t.Errorf("the Lease is of %q, %v", holder, err)
			}
			events := storedOf(t, store, p).Timeline.Events
			if n := len(events); n == 0 || events[n-1].Kind != journal.RunStopped {
				t.Errorf("recorded %+v", events)
			}
		})
	}
}

// raise sends these signals to the process of the test.
func raise(t *testing.T, signals ...syscall.Signal) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Error(err)
		return
	}
	for _, one := range signals {
		if err := self.Signal(one); err != nil {
			t.Error(err)
		}
	}
}

// setsAwayAfter returns a function for served.away. Once a process has taken the plan over from this epoch and stamped the
// sets, they cannot be read. Each such attempt calls tried.
func setsAwayAfter(store *records.Store, p *plans.Plan, epoch int64, tried func()) func(*http.Request) bool {
	silent := new(atomic.Bool)
	return func(r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/statefulsets") {
			return false
		}
		j, _, err := store.Journal(r.Context(), p)
		switch {
		case err != nil || j.Epoch == epoch:
		case silent.Load():
			tried()
			return true
		default:
			silent.Store(strings.Contains(r.URL.Path, "/mall/")) // the last one that is stamped
		}
		return false
	}
}

func storedOf(t *testing.T, s *records.Store, p *plans.Plan) *journal.Journal {
	t.Helper()
	j, _, err := s.Journal(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
