package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

const (
	// gather is how long changes are collected before they are sent together.
	gather = 200 * time.Millisecond
	// beat is how often a stream without changes is written to, so that both ends notice when it is dead.
	beat = 15 * time.Second
	// patience is how long one write to a client may take.
	patience = 10 * time.Second
	// longest is how long a stream lasts. The page opens another one, for which its token is judged again.
	longest = 5 * time.Minute
	// maxStreams is how many pages are open at once.
	maxStreams = 64
	// maxToken is how long a token may be, in bytes.
	maxToken = 16 << 10
)

// Server serves the page.
type Server struct {
	Board  *Board
	Accept Accept
	// Hosts are the values of the header Host that are answered; none allows any. A server on the user's
	// machine has them, so that no other page reaches it under a name of its own (DNS rebinding).
	Hosts []string
	// Done ends all streams.
	Done <-chan struct{}
	Now  func() time.Time
}

// Handler returns the handler of the page and of its stream.
func (s *Server) Handler() http.Handler {
	streams := make(chan struct{}, maxStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		harden(w.Header())
		switch {
		case len(s.Hosts) > 0 && !slices.Contains(s.Hosts, q.Host):
			http.Error(w, fmt.Sprintf("this server is %s, and no other host", s.Hosts[0]), http.StatusMisdirectedRequest)
		case q.Method != http.MethodGet && q.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this server only shows", http.StatusMethodNotAllowed)
		case q.URL.Path != "/events":
			file(w, q)
		case fromElsewhere(q):
			http.Error(w, "the request is from a page of another server", http.StatusForbidden)
		default:
			select {
			case streams <- struct{}{}:
				defer func() { <-streams }()
				s.events(w, q)
			default:
				http.Error(w, "too many pages are open: close one", http.StatusServiceUnavailable)
			}
		}
	})
}

// harden sets the headers that let a browser load nothing from elsewhere, and keep nothing.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// fromElsewhere reports whether a browser has sent the request for a page of another server.
func fromElsewhere(q *http.Request) bool {
	site := q.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// file serves one of the files of the page. They contain nothing of any plan.
func file(w http.ResponseWriter, q *http.Request) {
	name := strings.TrimPrefix(path.Clean(q.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	raw, err := fs.ReadFile(page, "page/"+name)
	kind := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}[path.Ext(name)]
	if err != nil || kind == "" {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	if kind != "image/svg+xml" {
		kind += "; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(raw) //nolint:gosec // a file of this program; the client may be gone
}

// events sends the rows, and then what changes.
func (s *Server) events(w http.ResponseWriter, q *http.Request) {
	token, bearer := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if !bearer || token == "" || len(token) > maxToken {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	switch err := s.Accept(q.Context(), token); {
	case errors.As(err, new(ErrWho)):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case errors.As(err, new(ErrMay)):
		http.Error(w, err.Error(), http.StatusForbidden)
	case err != nil:
		http.Error(w, "the token cannot be judged now: "+err.Error(), http.StatusServiceUnavailable)
	case q.Method == http.MethodHead:
	default:
		s.stream(w, q)
	}
}

func (s *Server) stream(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	to, end, idle := http.NewResponseController(w), time.NewTimer(longest), time.NewTicker(beat)
	defer end.Stop()
	defer idle.Stop()
	send := func(text string) error { return s.send(to, w, text) }
	for last := 0; ; {
		news, version, next := s.Board.Since(last)
		if version != last {
			raw, err := json.Marshal(news)
			if err != nil || send("event: rows\ndata: "+string(raw)+"\n\n") != nil {
				return
			}
			last = version
		}
		select {
		case <-next:
			if !rest(q.Context(), gather) {
				return
			}
		case <-idle.C:
			if send(": still here\n\n") != nil {
				return
			}
		case <-end.C:
			return
		case <-s.Done:
			return
		case <-q.Context().Done():
			return
		}
	}
}

// send writes to a client that may have stopped reading.
func (s *Server) send(to *http.ResponseController, w http.ResponseWriter, text string) error {
	if err := to.SetWriteDeadline(s.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := fmt.Fprint(w, text); err != nil {
		return err
	}
	return to.Flush()
}

// rest waits for some time, and reports whether ctx has not ended.
func rest(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}
