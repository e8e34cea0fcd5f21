package faults

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// world is a server that counts the writes that happen, behind a front.
func world(t *testing.T) (f *Front, send func() (status int, err error), happened *atomic.Int32) {
	t.Helper()
	happened = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			happened.Add(1)
		}
	}))
	t.Cleanup(server.Close)
	f = NewFront()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := f.Cover(t.Context(), "east", &rest.Config{Host: server.URL}, path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return f, func() (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, config.Host+"/api/v1/namespaces/a/configmaps/b", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}, happened
}

func TestAFaultStrikesOneWriteOnly(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]struct {
		status   int // 0 for no answer
		happened int32
	}{
		Conflicts: {409, 2}, Throttled: {429, 2}, Fails: {500, 2}, Unavailable: {503, 2}, Forbidden: {403, 2},
		TimesOut: {504, 3}, Breaks: {0, 3},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f, send, happened := world(t)
			f.Arm(kind, 2)
			for n := 1; n <= 3; n++ {
				status, err := send()
				switch {
				case n != 2 && (err != nil || status != http.StatusOK):
					t.Errorf("write %d: %d, %v", n, status, err)
				case n == 2 && (status != want.status || (err == nil) != (want.status != 0)):
					t.Errorf("the write got %d, %v, want %d", status, err, want.status)
				}
			}
			if got := happened.Load(); got != want.happened {
				t.Errorf("%d writes happened, want %d", got, want.happened)
			}
		})
	}
}

func TestAProgramDiesBeforeOrAfterItsWrite(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]int32{DiesBefore: 0, DiesAfter: 1, DiesAnswered: 1} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f, send, happened := world(t)
			f.Arm(kind, 1)
			victim := exec.CommandContext(t.Context(), "sleep", "60")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			f.Aim(victim.Process)
			_, err := send()
			if kind == DiesAnswered && err == nil {
				_, err = send()
			}
			if err == nil {
				t.Error("the dead program got an answer")
			}
			if err := victim.Wait(); err == nil {
				t.Error("the program ended by itself")
			}
			if got := happened.Load(); got != want {
				t.Errorf("%d writes happened, want %d", got, want)
			}
		})
	}
}

func TestALateWriteArrivesWhenItIsReleased(t *testing.T) {
	t.Parallel()
	f, send, happened := world(t)
	f.Arm(Sleeps, 1)
	victim := exec.CommandContext(t.Context(), "sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	f.Aim(victim.Process)
	ended := make(chan error)
	go func() { _, err := send(); ended <- err }()
	<-f.Asleep
	if got := happened.Load(); got != 0 {
		t.Fatalf("%d writes happened before the release", got)
	}
	if status := f.Release(); status != http.StatusOK || happened.Load() != 1 {
		t.Errorf("the late write got %d, and %d happened", status, happened.Load())
	}
	if err := <-ended; err == nil {
		t.Error("the sleeper got an answer to a write that others have overtaken")
	}
}

func TestAClusterThatIsAwayComesBack(t *testing.T) {
	t.Parallel()
	f, send, happened := world(t)
	f.Arm(Parts, 1)
	if status, err := send(); err == nil {
		t.Errorf("an answer %d from a cluster that is away", status)
	}
	if _, err := send(); err == nil || happened.Load() != 0 {
		t.Errorf("%d writes happened while the cluster was away", happened.Load())
	}
	<-time.After(away)
	if status, err := send(); err != nil || status != http.StatusOK {
		t.Errorf("the cluster has not come back: %d, %v", status, err)
	}
}
