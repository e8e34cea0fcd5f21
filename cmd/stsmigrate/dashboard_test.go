package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/reasons"
	"github.com/stsmigrate/stsmigrate/records"
)

// The address that the command prints shows the plans and what becomes of them, to the user of this machine only,
// until the command ends.
func TestThePrintedAddressShowsThePlans(t *testing.T) {
	on, config := serve(t, []string{"home"})
	delete(on.kinds, "statefulsetmigrations") // a cluster without an orchestrator
	p := keep(t, on, "mall", func(*journal.Journal) {})
	out, in := io.Pipe()
	a := &app{IOStreams: genericiooptions.IOStreams{Out: in, ErrOut: io.Discard}, now: func() time.Time { return time.Now() }} //nolint:forbidigo // as main does
	a.reach.Version = "test"
	ctx, cancel := context.WithCancel(t.Context())
	root := a.command("stsmigrate")
	root.SetArgs([]string{"dashboard", "-n", "mall", "--kubeconfig", config})
	over := make(chan error, 1)
	go func() { over <- root.ExecuteContext(ctx); _ = in.Close() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-over)
	}
	printed, err := url.Parse(strings.TrimSpace(line))
	if err != nil || printed.Hostname() != "127.0.0.1" || len(printed.Fragment) < 40 || printed.RawQuery != "" {
		t.Fatalf("%q: %v", line, err)
	}
	ask := func(token, host string) *http.Response {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+printed.Host+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		q.Host = host
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	if got := ask("guessed", printed.Host).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("another token: %d", got)
	}
	if got := ask(printed.Fragment, "evil.example").StatusCode; got != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", got)
	}
	rows := bufio.NewScanner(ask(printed.Fragment, printed.Host).Body)
	until := func(want string) {
		t.Helper()
		for rows.Scan() {
			if strings.Contains(rows.Text(), want) {
				return
			}
		}
		t.Fatalf("%s is not shown: %v", want, rows.Err())
	}
	until(`"plan":"web"`)
	if err := records.NewStore(on, "mall", p.Name).Change(t.Context(), p, func(j *journal.Journal) error {
		j.Epoch = 1
		j.Block(reasons.SetDiffers, "a claim is in the way")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	until(`"reason":"a claim is in the way"`)
	cancel()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the command does not end")
	}
}
