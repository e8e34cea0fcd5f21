package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// started runs the command until the returned function is called, and returns the address that it prints.
func started(t *testing.T, args ...string) (printed *url.URL, end func() error) {
	t.Helper()
	out, in := io.Pipe()
	a := &app{IOStreams: genericiooptions.IOStreams{Out: in, ErrOut: io.Discard}, now: func() time.Time { return time.Now() }}
	a.reach.Version = "test"
	ctx, cancel := context.WithCancel(t.Context())
	root := a.command("stsmigrate")
	root.SetArgs(append([]string{"dashboard"}, args...))
	over := make(chan error, 1)
	go func() { over <- root.ExecuteContext(ctx); _ = in.Close() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-over)
	}
	printed, err = url.Parse(strings.TrimSpace(line))
	if err != nil || printed.Hostname() != "127.0.0.1" || len(printed.Fragment) < 40 || printed.RawQuery != "" {
		t.Fatalf("%q: %v", line, err)
	}
	return printed, func() error {
		cancel()
		select {
		case err := <-over:
			return err
		case <-time.After(20 * time.Second):
			return errors.New("the command does not end")
		}
	}
}

// ask requests the events of a page.
func ask(t *testing.T, at *url.URL, token, host string) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at.Host+"/events", nil)
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

// The address that the command prints shows the plans and what becomes of them, to the user of this machine only,
// until the command ends.
func TestThePrintedAddressShowsThePlans(t *testing.T) {
	on, config := serve(t, []string{"home"})
	delete(on.kinds, "statefulsetmigrations") // a cluster without an orchestrator
	p := keep(t, on, "mall", func(*journal.Journal) {})
	at, end := started(t, "-n", "mall", "--kubeconfig", config)
	if got := ask(t, at, "guessed", at.Host).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("another token: %d", got)
	}
	if got := ask(t, at, at.Fragment, "evil.example").StatusCode; got != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", got)
	}
	rows := bufio.NewScanner(ask(t, at, at.Fragment, at.Host).Body)
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
	err := records.NewStore(on, "mall", p.Name).Change(t.Context(), p, func(j *journal.Journal) error {
		j.Epoch = 1
		j.Block(reasons.SetDiffers, "a claim is in the way")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	until(`"reason":"a claim is in the way"`)
	if err := end(); err != nil {
		t.Error(err)
	}
}
