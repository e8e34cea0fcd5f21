package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestASmallStorm runs everything that `make storm` does, with fewer plans and earlier events.
func TestASmallStorm(t *testing.T) {
	o := options{plans: 5, pods: 2, processes: 2, watched: 5, qps: 50, waves: 2, memory: 512, every: 6 * time.Second, renew: time.Second, fail: 5 * time.Second, outage: 5 * time.Second, seed: 1, cgroup: true, bombs: 20, floods: true}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// Where no policy keeps a tenant from forging journals, the orchestrators read them, and reject every plan
// without consent.
func TestWhatATenantForgesIsRefusedByTheOrchestrators(t *testing.T) {
	o := options{plans: 1, pods: 2, processes: 2, watched: 1, qps: 50, waves: 2, memory: 512, seed: 1, open: true}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// The tables count what orchestrators have requested, dry runs apart, and what all programs have while the plans moved;
// neither counts watches.
func TestTheTableOfRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	from := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	line := func(agent, verb, resource, query string, after time.Duration) string {
		received := from.Add(after)
		return fmt.Sprintf(`{"verb":%q,"userAgent":%q,"requestURI":"/api/v1/x%s","objectRef":{"resource":%q},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
			verb, agent, query, resource, received.Format(time.RFC3339Nano), received.Add(3*time.Millisecond).Format(time.RFC3339Nano))
	}
	const ours = "stsmigrate-orchestrator/v1"
	text := line(ours, "get", "pods", "", 0) + line(ours, "get", "pods", "", time.Second) + line(ours, "watch", "pods", "?watch=1", 0) + line("kubectl/v1", "get", "pods", "", 0) +
		line(ours, "create", "secrets", "?dryRun=All", time.Minute) + line(ours, "get", "", "", -time.Second) + line("kubectl/v1", "patch", "pods", "", time.Minute)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRequests(from, from.Add(time.Minute))
	if err := r.read(file); err != nil {
		t.Fatal(err)
	}
	want := map[string]asked{"pods": {"get": 2}, "secrets": {"dry run": 1}, "discovery": {"get": 1}}
	if diff := cmp.Diff(want, r.of); diff != "" {
		t.Errorf("by resource: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]asked{"stsmigrate-orchestrator": {"get": 2}, "kubectl": {"get": 1}}, r.by); diff != "" {
		t.Errorf("by program: -want +got:\n%s", diff)
	}
	if got, want := r.times(), "answered after, on average: stsmigrate-orchestrator 3.0 ms, kubectl 3.0 ms\n"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := requestTable("a title", r.of, 4); !strings.Contains(got, "0.50") || !strings.Contains(got, "1.00") {
		t.Errorf("expected 0.50 pods, and 1.00 of all:\n%s", got)
	}
}

// Whose CPU time it was is told by the names of the processes. One that has ended, or another of its number, counts
// with the others.
func TestWhoUsesTheMachine(t *testing.T) {
	pid, u, err := usedBy("17 (kube-apiserver) S 1 2 3 4 5 6 7 8 9 10 300 200 0 0 20 0")
	if want := (used{"kube-apiserver", 5 * time.Second}); pid != 17 || u != want || err != nil {
		t.Errorf("%d %v, %v, expected 17 %v", pid, u, err, want)
	}
	if _, _, err := usedBy("17 (a) b"); err == nil {
		t.Error("a line that is too short passes")
	}
	was := &cpu{at: time.Unix(0, 0), of: map[int]used{17: {"kube-apiserver", 5 * time.Second}, 18: {"bash", time.Second}}, busy: 10 * time.Second}
	second := time.Second * time.Duration(runtime.NumCPU()) // of each core
	is := &cpu{at: time.Unix(10, 0), of: map[int]used{17: {"kube-apiserver", 5*time.Second + 5*second}, 18: {"etcd", 2 * second}}, busy: 10*time.Second + 8*second}
	if got, want := is.since(was), "kube-apiserver 50%, etcd 20%, idle 20%, other processes 10%"; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if got, err := lookAtCPU(); err != nil || got.busy == 0 || got.of[os.Getpid()].name == "" {
		t.Errorf("%v, %v, expected this process among those of this machine", got, err)
	}
}
