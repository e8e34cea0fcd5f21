package move_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/browser"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// theOrchestrator compiles the program once for all tests.
var theOrchestrator = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "orchestrator")
	if err != nil {
		return "", err
	}
	return fixture.Build(context.Background(), dir, "orchestrator")
})

// orchestrated runs a real orchestrator in the namespace of the destination until the test ends, and waits for a line of
// its log that has all of these words. The namespaces consent to everything.
func (s *migration) orchestrated(words []string, args ...string) (line string) {
	s.t.Helper()
	s.consents()
	return s.orchestrator(args...).until(words...)
}

// consents lets an orchestrator move anything between the namespaces.
func (s *migration) consents() {
	s.t.Helper()
	s.learnsMigrations(s.destination)
	for _, on := range []*end{s.source, s.destination} {
		s.create(on, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: on.namespace, Name: access.ConsentMap}, Data: map[string]string{"moves-to": "* */*/* plan=* hash=* until=*", "moves-from": "* */*/* plan=* hash=* until=*"}})
	}
}

// orchestrator is a real one that runs.
type orchestrator struct {
	s     *migration
	cmd   *exec.Cmd
	lines chan string // of its log; closed when it has ended
}

// orchestrator runs one in the namespace of the destination until the test ends.
func (s *migration) orchestrator(args ...string) *orchestrator {
	s.t.Helper()
	program, err := theOrchestrator()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.t.Context())
	o := &orchestrator{s: s, lines: make(chan string, 100_000), cmd: exec.CommandContext(ctx, program, append([]string{
		"--kubeconfig", s.destination.cluster.Kubeconfig, "--namespace", s.destination.namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--v=1",
	}, args...)...)}
	o.cmd.Cancel, o.cmd.WaitDelay = func() error { return o.cmd.Process.Signal(os.Interrupt) }, 20*time.Second
	said, err := o.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var all bytes.Buffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for text := bufio.NewScanner(said); text.Scan(); {
			all.WriteString(text.Text() + "\n")
			o.lines <- text.Text()
		}
		_ = o.cmd.Wait() // it ends by a signal
		close(o.lines)
	}()
	s.t.Cleanup(func() {
		stop()
		<-ended
		if s.t.Failed() {
			s.t.Logf("the orchestrator said:\n%s", all.String())
		}
	})
	return o
}

// until waits for a line that has all of these words.
func (o *orchestrator) until(words ...string) string {
	o.s.t.Helper()
	late := time.After(tooLong)
	for {
		select {
		case line, more := <-o.lines:
			if !more {
				o.s.t.Fatalf("the orchestrator has ended, and did not say %q", words)
			}
			if hasAll(line, words) {
				return line
			}
		case <-late:
			o.s.t.Fatalf("the orchestrator does not say %q in time", words)
		}
	}
}

// dies kills the orchestrator. The Lease of its plan is as if it had been silent for long.
func (o *orchestrator) dies() {
	o.s.t.Helper()
	_ = o.cmd.Process.Kill()
	for range o.lines {
		continue // until it has ended
	}
	o.s.expire()
}

// An orchestrator that is killed while it takes places and gives them free leaves a plan that the next one carries on. Nothing
// of the places is left.
func TestAnOrchestratorThatIsKilledLeavesNoPlaceholder(t *testing.T) {
	t.Parallel()
	s := newMigration(t, rebind, options{replicas: 3})
	before := s.state(s.source)
	s.consents()
	o := s.orchestrator()
	s.planned("--placeholder", "warm")
	w := s.watched()
	s.eventually("the orchestrator is there", func(context.Context) bool {
		return run(t, s.applyArgs("--detach", "--home-namespace", s.destination.namespace)...).code == done
	})
	for _, at := range []string{"make placeholder web-2-place", "delete placeholder web-2-place", "make placeholder web-1-place", "web-1 Vacate", "make placeholder web-0-place"} {
		o.until(at)
		o.dies()
		o = s.orchestrator()
	}
	o.until("ended", string(plans.Moved))
	s.arrived(before)
	if left := s.placeholders(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	proper(t, w, 1)
}

// The page of a real orchestrator shows the plans to whom the API server knows, and lets list them: real tokens of real
// ServiceAccounts. A right that is taken away and a token that is revoked end that.
func TestTheDashboardIsForWhomTheAPIServerLetsListPlans(t *testing.T) {
	t.Parallel()
	s := newMigration(t, rebind, options{replicas: 1})
	ns := s.destination.namespace
	line := s.orchestrated([]string{"dashboard", `"address"`}, "--dashboard-bind-address=127.0.0.1:0")
	var logged struct{ Address string }
	if err := json.Unmarshal([]byte(line), &logged); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	kind := records.DeclarationKind()
	tokens := map[string]string{"nobody": "eyJhbGciOiJub25lIn0.e30.", "none": ""}
	for account, rules := range map[string][]rbacv1.PolicyRule{
		"reader":  {{APIGroups: []string{kind.Group}, Resources: []string{"statefulsetmigrations"}, Verbs: []string{"list"}}, {APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
		"half":    {{APIGroups: []string{kind.Group}, Resources: []string{"statefulsetmigrations"}, Verbs: []string{"list"}}},
		"without": nil,
	} {
		meta := metav1.ObjectMeta{Namespace: ns, Name: account}
		s.create(s.destination, &corev1.ServiceAccount{ObjectMeta: meta})
		if rules != nil {
			s.create(s.destination, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
			s.create(s.destination, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: account}}})
		}
		_, token, err := fixture.Credentials(t.Context(), s.destination, s.destination.cluster, ns, account)
		if err != nil {
			t.Fatal(err)
		}
		tokens[account] = token
	}
	page := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	// asks returns the status of the stream, and what comes first.
	asks := func(ctx context.Context, account string) (int, string) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+logged.Address+"/events", nil)
		if err != nil {
			return 0, err.Error()
		}
		if tokens[account] != "" {
			q.Header.Set("Authorization", "Bearer "+tokens[account])
		}
		answer, err := page.Do(q)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		text := bufio.NewReader(answer.Body)
		first, _ := text.ReadString('\n') // an error has one line
		if answer.StatusCode == http.StatusOK {
			second, _ := text.ReadString('\n')
			first += second
		}
		return answer.StatusCode, first
	}
	becomes := func(account string, code int, words ...string) {
		t.Helper()
		var got int
		var said string
		s.eventually(fmt.Sprintf("%s gets %d %q", account, code, words), func(ctx context.Context) bool {
			got, said = asks(ctx, account)
			return got == code && hasAll(said, words)
		})
	}
	o := records.NewDeclared(ns, "web")
	o.Object["spec"] = map[string]any{"source": map[string]any{"namespace": s.source.namespace, "name": "web"}, "destination": map[string]any{"namespace": ns}}
	s.create(s.destination, o)
	becomes("reader", http.StatusOK, "event: rows", `"plan":"web"`, `"state":"PlanReady"`)
	becomes("half", http.StatusForbidden, "system:serviceaccount:"+ns+":half may not list configmaps in namespace "+ns)
	becomes("without", http.StatusForbidden, "may not list", "bind the Role stsmigrate-user there")
	becomes("nobody", http.StatusUnauthorized, "the API server does not know this token")
	becomes("none", http.StatusUnauthorized, "a token is needed")
	t.Run("in a browser", func(t *testing.T) {
		shown := `document.getElementById("plans").innerText`
		ctx := browser.Start(t)
		browser.Do(
			ctx, t, chromedp.Navigate("https://"+logged.Address+"/#"+tokens["half"]),
			browser.Until(`document.getElementById("why").textContent.includes("may not list configmaps") && !`+shown+`.includes("web")`),
			chromedp.Navigate("https://"+logged.Address+"/?again#"+tokens["reader"]),
			browser.Until(shown+`.includes("web") && `+shown+`.includes("PlanReady")`),
		)
		if where := browser.Read(ctx, t, "location.href"); strings.Contains(where, tokens["reader"]) {
			t.Errorf("the token stays in the address: %s", where)
		}
	})

	if err := s.destination.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}}); err != nil {
		t.Fatal(err)
	}
	becomes("reader", http.StatusForbidden, "may not list")
	if err := s.destination.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}}); err != nil {
		t.Fatal(err)
	}
	becomes("reader", http.StatusUnauthorized, "the API server does not know this token")
}

// notice is a message as the receiver has got it.
type notice struct {
	ID, Type, Subject, Sequence string
	Data                        struct{ Plan, Namespace, State, Change, Previous string }
}

// receiver takes messages. It refuses the first one, breaks the connection at the second, and so on, as often as it is
// told, before it accepts any.
type receiver struct {
	key []byte

	lock     sync.Mutex
	down     int
	tried    int
	accepted []notice
	wrong    []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.tried++; r.tried <= r.down {
		if r.tried%2 == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var n notice
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(q.Header.Get("Webhook-Id") + "." + q.Header.Get("Webhook-Timestamp") + "." + string(body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil || q.Header.Get("Webhook-Signature") != want {
		r.wrong = append(r.wrong, fmt.Sprintf("the signature is %q, expected %q (%v)", q.Header.Get("Webhook-Signature"), want, err))
	}
	if err := json.Unmarshal(body, &n); err != nil || q.Header.Get("Webhook-Id") != n.ID || !strings.HasPrefix(q.Header.Get("Content-Type"), "application/cloudevents+json") {
		r.wrong = append(r.wrong, fmt.Sprintf("%s of type %s: %v", body, q.Header.Get("Content-Type"), err))
	}
	r.accepted = append(r.accepted, n)
	w.WriteHeader(http.StatusNoContent)
}

// changes returns what was told, in its order.
func (r *receiver) changes() (out []string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, n := range r.accepted {
		out = append(out, n.Data.Change)
	}
	return out
}

// A real orchestrator tells a real receiver, which is down at first, of a move and of its end: every change once, in
// order, and signed.
func TestAReceiverIsToldOfAMove(t *testing.T) {
	t.Parallel()
	s := newMigration(t, rebind, options{replicas: 2})
	ns := s.destination.namespace
	r := &receiver{key: bytes.Repeat([]byte{7}, 32), down: 3}
	server := httptest.NewServer(r)
	defer server.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("whsec_"+base64.StdEncoding.EncodeToString(r.key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.orchestrated([]string{"Starting workers"}, "--notify-url", server.URL+"/stsmigrate", "--notify-dir", dir)
	s.planned()
	s.eventually("the orchestrator is there", func(context.Context) bool {
		return run(t, s.applyArgs("--detach", "--home-namespace", ns)...).code == done
	})
	heard := func(change string) {
		t.Helper()
		s.eventually("the receiver is told: "+change, func(context.Context) bool { return slices.Contains(r.changes(), change) })
	}
	heard("moved")
	run(t, "finalize", "web", "--yes", "--kubeconfig", s.destination.cluster.Kubeconfig, "-n", ns).expect(t, done)
	heard("finalized")
	var object *unstructured.Unstructured
	s.eventually("the last change that was accepted is recorded", func(ctx context.Context) bool {
		d, err := records.ReadDeclared(ctx, s.destination, ns, "web")
		if err != nil || d == nil {
			return false
		}
		object = d.Object
		change, _, _ := unstructured.NestedString(object.Object, "status", "notified", "change")
		return change == "finalized"
	})
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, wrong := range r.wrong {
		t.Error(wrong)
	}
	order, last, seen := []string{"planned", "approved", "begun", "moved", "finalizing", "finalized"}, -1, map[string]bool{}
	before := ""
	for _, n := range r.accepted {
		at := slices.Index(order, n.Data.Change)
		if at <= last || n.Sequence <= before || seen[n.ID] || n.Subject != "web" || n.Data.Namespace != ns || n.Type != "dev.stsmigrate.plan."+n.Data.Change {
			t.Errorf("%+v comes after %q (sequence %q)", n, order[max(last, 0)], before)
		}
		last, before, seen[n.ID] = at, n.Sequence, true
	}
	if r.tried <= r.down || !seen[r.accepted[len(r.accepted)-1].ID] {
		t.Errorf("%d attempts, of which %d were to fail", r.tried, r.down)
	}
}
