package move_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// performer stands in for the containers of the pods: a server at the address of every pod, and a file that
// the commands in them write to.
type performer struct {
	server *httptest.Server
	folder string
	mu     sync.Mutex
	asked  []string
	ill    string // the pod whose requests fail
	shy    int    // how many of the first requests fail in any case
}

// perform starts an application for a set of the migration.
func perform(t *testing.T) *performer {
	t.Helper()
	address := ""
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			address = n.IP.String()
			break
		}
	}
	if address == "" {
		t.Skip("this machine has no address but loopback, and the API server sends nothing there")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	a := &performer{folder: t.TempDir(), shy: 2}
	a.server = httptest.NewUnstartedServer(a)
	a.server.Listener.Close() //nolint:errcheck // replaced before anybody knows it
	a.server.Listener = listener
	a.server.Start()
	t.Cleanup(a.server.Close)
	return a
}

// ServeHTTP implements http.Handler.
func (a *performer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := r.URL.Query().Get("pod")
	if r.Header.Get("From") != pod+"."+r.URL.Query().Get("side") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.asked = append(a.asked, r.URL.String())
	if a.shy--; a.shy >= 0 || pod == a.ill {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "canary-7f3a")
		return
	}
	fmt.Fprintln(w, "ranges_underreplicated 0")
}

func (a *performer) falls(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ill = pod
}

// in makes the pods of a set use the address of this application.
func (a *performer) in(set *appsv1.StatefulSet) {
	host, _, _ := net.SplitHostPort(a.server.Listener.Addr().String()) // the address is valid
	set.Spec.Template.Annotations = map[string]string{cluster.Address: host}
}

// migration writes the file that requests a move with gates.
func (a *performer) migration(s *migration) {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(a.server.Listener.Addr().String())
	file := filepath.Join(a.folder, "migration.yaml")
	text := fmt.Sprintf(`
apiVersion: stsmigrate.dev/v1alpha1
kind: Migration
metadata: {name: web}
spec:
  source: {name: web}
  names: none
  gates:
  - name: drain
    when: BeforeShrink
    exec:
      container: web
      command: [sh, -c, 'cat %[1]s/$(POD).ill >&2 && exit 3; echo drain $(POD) $(ORDINAL) $(NAMESPACE) $(SIDE) >> %[1]s/log']
    interval: 1s
    timeout: 2s
  - name: replicated
    when: AfterGrow
    httpGet:
      path: /vars?pod=$(POD)&side=$(SIDE)
      port: %[2]s
      httpHeaders: [{name: From, value: $(POD).$(SIDE)}]
    expect: ranges_underreplicated 0
    interval: 1s
    timeout: 5s
  - name: rejoin
    when: AfterGrow
    job:
      template:
        spec:
          containers: [{name: rejoin, image: rejoin, command: [rejoin, $(POD)]}]
`, a.folder, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	args := append(slices.DeleteFunc(s.planArgs(), func(arg string) bool { return arg == "web" }), "-f", file)
	run(s.t, args...).expect(s.t, done, "gate         drain (BeforeShrink): exec sh in the pod of the ordinal, asked every 1s for up to 2s per ordinal")
}

// drained returns the lines that the command in the pods has written.
func (a *performer) drained(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(a.folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func (s *migration) jobless() {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var jobs batchv1.JobList
		s.list(on, &jobs)
		for _, j := range jobs.Items {
			s.t.Errorf("Job %s is left in %s", j.Name, on.namespace)
		}
	}
}

// 3335-20
func TestGatesAreEvaluatedForEveryOrdinal(t *testing.T) {
	a := perform(t)
	a2 := perform(t)
	apps := map[mode]*performer{rebind: a, reimport: a2}
	t.Parallel()
	for m, a := range apps {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			s := newMigration(t, m, options{replicas: 2, set: a.in})
			before := s.state(s.source)
			a.migration(s)
			w := s.watched()
			r := run(t, s.applyArgs()...)
			r.expect(t, done, "gate drain of web-1: exec sh in pod web-1 of", "gates passed: drain/1", "HTTP status 503", "create Job rejoin-1-", "start Job rejoin-1-", "delete Job rejoin-1-", "gates passed: replicated/0, rejoin/0", "moved: ")
			if strings.Contains(r.stdout+r.stderr, "canary-7f3a") {
				t.Error("S16: what the application said is in the output")
			}
			proper(t, w, 1)
			s.arrived(before)
			s.jobless()
			want := []string{fmt.Sprintf("drain web-1 1 %s source", s.source.namespace), fmt.Sprintf("drain web-0 0 %s source", s.source.namespace)}
			same(t, "what was drained", want, a.drained(t))
			run(t, s.args("abort")...).expect(t, done, "gates passed: drain/0", "aborted")
			want = append(want, fmt.Sprintf("drain web-0 0 %s destination", s.destination.namespace), fmt.Sprintf("drain web-1 1 %s destination", s.destination.namespace))
			same(t, "what was drained", want, a.drained(t))
			s.jobless()
		})
	}
}

func TestAGateThatDoesNotPassHoldsThePlan(t *testing.T) {
	a := perform(t)
	t.Parallel()
	s := newMigration(t, rebind, options{replicas: 3, set: a.in})
	a.migration(s)
	ill := filepath.Join(a.folder, "web-2.ill")
	if err := os.WriteFile(ill, []byte("first line\nquorum is lost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// KWOK returns an error but no exit code.
	why := []string{"gate drain (BeforeShrink) of web-2: exec sh in pod web-2 of", ": quorum is lost; expected exit code 0", "asked ", "in 2s", "`resume` tries again", "resume --skip-gates"}
	run(t, s.applyArgs()...).expect(t, held, why...)
	s.shows(held, "Blocked", "web-2 Tighten", why[0], why[1], "unavailable=0")
	run(t, s.args("resume")...).expect(t, held, why[1])
	if err := os.Remove(ill); err != nil {
		t.Fatal(err)
	}
	a.falls("web-2")
	run(t, s.args("resume")...).expect(t, held, "gates passed: drain/2", "gate replicated (AfterGrow) of web-2: httpGet /vars?pod=$(POD)&side=$(SIDE) in pod web-2 of", "HTTP status 503; expected HTTP status 200 to 399 and \"ranges_underreplicated 0\"")
	run(t, s.args("resume", "--skip-gates", "--pause-after", "1")...).expect(t, failed, "in flight")
	a.falls("web-1")
	run(t, s.args("resume", "--skip-gates")...).expect(t, held, "gates skipped, as the user requested", "gates passed: drain/1", "gate replicated (AfterGrow) of web-1")
	s.shows(held, "gates:   skipped at web-2 Verify (--skip-gates)")
	run(t, s.args("abort")...).expect(t, held, "gate replicated (AfterGrow) of web-1", "`abort --skip-gates` returns to the source without gates")
	run(t, s.args("abort", "--skip-gates")...).expect(t, done, "gates skipped", "aborted")
	s.jobless()
}
