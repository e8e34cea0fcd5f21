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
	o := options{plans: 5, pods: 2, processes: 2, watched: 5, qps: 50, waves: 2, memory: 512, every: 6 * time.Second, renew: time.Second, fail: 5 * time.Second, outage: 5 * time.Second, seed: 1}
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

// The table counts what orchestrators have requested, dry runs apart, and neither watches nor the requests of others.
func TestTheTableOfRequests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	line := func(agent, verb, resource, query string) string {
		return fmt.Sprintf(`{"verb":%q,"userAgent":%q,"requestURI":"/api/v1/x%s","objectRef":{"resource":%q}}`+"\n", verb, agent, query, resource)
	}
	const ours = "stsmigrate-orchestrator/v1"
	text := line(ours, "get", "pods", "") + line(ours, "get", "pods", "") + line(ours, "watch", "pods", "?watch=1") + line("kubectl/v1", "get", "pods", "") +
		line(ours, "create", "secrets", "?dryRun=All") + line(ours, "get", "", "")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	by := map[string]asked{}
	if err := read(file, by); err != nil {
		t.Fatal(err)
	}
	want := map[string]asked{"pods": {"get": 2}, "secrets": {"dry run": 1}, "discovery": {"get": 1}}
	if diff := cmp.Diff(want, by); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := requestTable(by, 4); !strings.Contains(got, "0.50") || !strings.Contains(got, "1.00") {
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
