package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func clock() time.Time { return time.Now() } //nolint:forbidigo // it is the test's own

// serve serves a board, and returns the address and the token.
func serve(t *testing.T, b *Board, change func(*Server)) (address, token string) {
	t.Helper()
	token, accept := NewToken()
	done := make(chan struct{})
	s := &Server{Board: b, Accept: accept, Done: done, Now: clock}
	server := httptest.NewUnstartedServer(nil)
	if change != nil {
		change(s)
	}
	server.Config.Handler = s.Handler()
	server.Start()
	t.Cleanup(func() { close(done); server.Close() })
	return server.URL, token
}

func get(t *testing.T, method, url string, change func(*http.Request)) *http.Response {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(q)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Body.Close() })
	return a
}

func bearer(token string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set("Authorization", "Bearer "+token) }
}

// Rows are for those whose token is accepted, and for no page of another server.
func TestOnlyWhoIsAcceptedSeesRows(t *testing.T) {
	b := NewBoard()
	b.Set(Row{Plan: "secret-plan"})
	judged := map[string]error{"who": ErrWho{errors.New("unknown")}, "may": ErrMay{errors.New("not allowed")}, "down": errors.New("no API server")}
	address, token := serve(t, b, nil)
	other, _ := serve(t, b, func(s *Server) { s.Accept = func(_ context.Context, token string) error { return judged[token] } })
	for name, c := range map[string]struct {
		address string
		change  func(*http.Request)
		want    int
	}{
		"no token":           {address, nil, 401},
		"an empty one":       {address, bearer(""), 401},
		"another one":        {address, bearer(token + "x"), 401},
		"the beginning":      {address, bearer(token[:10]), 401},
		"a huge one":         {address, bearer(strings.Repeat("x", maxToken+1)), 401},
		"in a query":         {address, func(q *http.Request) { q.URL.RawQuery = "token=" + token }, 401},
		"as a cookie":        {address, func(q *http.Request) { q.AddCookie(&http.Cookie{Name: "token", Value: token}) }, 401},
		"as a password":      {address, func(q *http.Request) { q.SetBasicAuth("token", token) }, 401},
		"from another page":  {address, func(q *http.Request) { bearer(token)(q); q.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"from a sibling":     {address, func(q *http.Request) { bearer(token)(q); q.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"an unknown user":    {other, bearer("who"), 401},
		"a user without it":  {other, bearer("may"), 403},
		"a judge who is out": {other, bearer("down"), 503},
		"the right one":      {address, bearer(token), 200},
		"the right user":     {other, bearer("known"), 200},
	} {
		a := get(t, http.MethodGet, c.address+"/events", c.change)
		line, _ := bufio.NewReader(a.Body).ReadString('\n')
		if a.StatusCode != c.want || c.want != 200 && strings.Contains(line, "secret-plan") {
			t.Errorf("%s: %d %q, expected %d", name, a.StatusCode, line, c.want)
		}
	}
}

// The page itself says nothing of any plan, loads nothing from elsewhere, and lets nothing be sent.
func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	b := NewBoard()
	b.Set(Row{Plan: "secret-plan"})
	address, token := serve(t, b, nil)
	for path, kind := range map[string]string{"/": "text/html", "/index.html": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/icon.svg": "image/svg+xml"} {
		a := get(t, http.MethodGet, address+path, nil)
		text := new(strings.Builder)
		_, err := bufio.NewReader(a.Body).WriteTo(text)
		if err != nil || a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s, %v", path, a.StatusCode, a.Header.Get("Content-Type"), err)
		}
		for _, bad := range []string{"secret-plan", token, "src=\"http", "href=\"http", "//cdn", "innerHTML", "eval(", "onclick", "style="} {
			if strings.Contains(text.String(), bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		} {
			if !strings.HasPrefix(a.Header.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, a.Header.Get(name))
			}
		}
	}
	for _, path := range []string{"/none", "/../server.go", "/page/", "/..%2fserver.go", "/page"} {
		if a := get(t, http.MethodGet, address+path, nil); a.StatusCode != 404 {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		for _, path := range []string{"/", "/events"} {
			if a := get(t, method, address+path, bearer(token)); a.StatusCode != 405 {
				t.Errorf("%s %s: %d", method, path, a.StatusCode)
			}
		}
	}
}

// A page of another server that has its name point to this machine gets no answer.
func TestAnotherNameOfThisMachineIsNotAnswered(t *testing.T) {
	address, token := serve(t, NewBoard(), func(s *Server) { s.Hosts = []string{"127.0.0.1:4711", "localhost:4711"} })
	for host, want := range map[string]int{"127.0.0.1:4711": 200, "localhost:4711": 200, "evil.example:4711": 421, "127.0.0.1": 421, "127.0.0.1:80": 421, "[::1]:4711": 421} {
		for _, path := range []string{"/", "/events"} {
			a := get(t, http.MethodGet, address+path, func(q *http.Request) { bearer(token)(q); q.Host = host })
			if a.StatusCode != want {
				t.Errorf("%s%s: %d, expected %d", host, path, a.StatusCode, want)
			}
		}
	}
}

// A stream sends all rows, then changes, and ends with the server.
func TestAStreamSendsWhatChanges(t *testing.T) {
	b := NewBoard()
	b.Set(Row{Namespace: "ns", Plan: "web", State: "Moving", Reason: "line\nbreak"})
	done := make(chan struct{})
	address, token := serve(t, b, func(s *Server) { s.Done = done })
	in := bufio.NewReader(get(t, http.MethodGet, address+"/events", bearer(token)).Body)
	read := func() (news News) {
		t.Helper()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				if err := json.Unmarshal([]byte(data), &news); err != nil {
					t.Fatalf("%v: %s", err, data)
				}
				return news
			}
		}
	}
	if n := read(); !n.All || len(n.Rows) != 1 || n.Rows[0].Reason != "line\nbreak" {
		t.Errorf("at first %+v", n)
	}
	b.Set(Row{Namespace: "ns", Plan: "web", State: "Moved"})
	b.Set(Row{Namespace: "ns", Plan: "db", State: "Moving"})
	if n := read(); n.All || len(n.Rows) != 2 || n.Rows[0].Plan != "db" {
		t.Errorf("two changes at once are %+v", n)
	}
	close(done)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
	}
}

// So many pages are open at once, and one more when one is closed.
func TestTheNumberOfStreamsIsLimited(t *testing.T) {
	b := NewBoard()
	b.Set(Row{Plan: "web"})
	address, token := serve(t, b, nil)
	ctx, cancel := context.WithCancel(t.Context())
	for range maxStreams {
		a := get(t, http.MethodGet, address+"/events", func(q *http.Request) { bearer(token)(q); *q = *q.WithContext(ctx) })
		if a.StatusCode != 200 {
			t.Fatal(a.StatusCode)
		}
	}
	if a := get(t, http.MethodGet, address+"/events", bearer(token)); a.StatusCode != 503 {
		t.Errorf("one more: %d", a.StatusCode)
	}
	cancel()
	for range 100 {
		if a := get(t, http.MethodGet, address+"/events", bearer(token)); a.StatusCode == 200 {
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Error("closed pages count")
}

// The columns of the page are those that docs/dashboard.md explains.
func TestThePageHasTheColumnsThatAreExplained(t *testing.T) {
	explained, err := os.ReadFile("../../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	html, err := page.ReadFile("page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"Moved", "In flight", "Since", "Reason, and what to do"} {
		if !strings.Contains(string(explained), "| "+column+" |") || !strings.Contains(string(html), ">"+column+"<") {
			t.Errorf("column %q is not on both pages", column)
		}
	}
}
