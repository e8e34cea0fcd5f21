package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// away is how long a cluster cannot be reached after Parts.
const away = 3 * time.Second

// Front counts the writes that a program sends to its clusters, and makes one of them go wrong.
type Front struct {
	// Asleep gets a value when the program was stopped (Sleeps).
	Asleep chan struct{}

	lock   sync.Mutex
	trail  []string
	all    []string // the writes, also those of Leases
	kind   Kind
	at     int
	dying  bool // at the next request
	victim *os.Process
	free   chan struct{} // closed by Release
	late   chan int      // the status of the late write
}

// NewFront returns a front without a fault.
func NewFront() *Front {
	return &Front{Asleep: make(chan struct{}, 1), free: make(chan struct{}), late: make(chan int, 1)}
}

// Arm sets what happens at the write of this number; 1 is the first.
func (f *Front) Arm(kind Kind, at int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.kind, f.at = kind, at
}

// Aim sets the process that dies or sleeps.
func (f *Front) Aim(p *os.Process) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.victim = p
}

// Writes returns the writes so far, one line each.
func (f *Front) Writes() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.trail)
}

// Sent returns every write so far that is not about rights or Events, also those of Leases, one line each.
func (f *Front) Sent() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.all)
}

// Release lets the write of a sleeping program arrive, and returns the status that the API server answers.
func (f *Front) Release() int {
	close(f.free)
	return <-f.late
}

// Cover writes a kubeconfig that leads to a cluster through the front. It ends with ctx.
func (f *Front) Cover(ctx context.Context, name string, config *rest.Config, path string) error {
	to, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	side := &side{front: f, name: name}
	side.proxy = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // a watch is a stream
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	side.reconnect()
	server := &http.Server{Handler: side, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends when it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: "http://" + listener.Addr().String()}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.WriteToFile(*file, path)
}

// side is the way to one cluster.
type side struct {
	front *Front
	name  string
	proxy http.Handler

	lock  sync.Mutex
	until time.Time       // unreachable until then
	alive context.Context //nolint:containedctx // of the connections there are
	cut   context.CancelFunc
}

func (s *side) reconnect() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.alive, s.cut = context.WithCancel(context.Background())
}

// part breaks every connection, and makes the cluster unreachable for a while.
func (s *side) part() {
	s.lock.Lock()
	s.until = time.Now().Add(away)
	s.cut()
	s.lock.Unlock()
	s.reconnect()
}

func (s *side) reachable() (context.Context, bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.alive, !time.Now().Before(s.until)
}

// ServeHTTP passes a request on, or lets it go wrong.
func (s *side) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := s.front.take(s.name, r)
	if kind == Parts {
		s.part()
	}
	alive, ok := s.reachable()
	if !ok {
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(alive, cancel)()
	switch {
	case kind == DiesBefore:
		s.front.strikes(syscall.SIGKILL)
		panic(http.ErrAbortHandler)
	case kind == DiesAfter, kind == Breaks, kind == TimesOut:
		s.unheard(r)
		if kind == TimesOut {
			refuse(w, kind.refusal())
			return
		}
		if kind == DiesAfter {
			s.front.strikes(syscall.SIGKILL)
		}
		panic(http.ErrAbortHandler)
	case kind == Sleeps:
		s.sleep(r)
		panic(http.ErrAbortHandler)
	case kind.refusal() != 0:
		refuse(w, kind.refusal())
		return
	}
	s.proxy.ServeHTTP(w, r.WithContext(ctx))
	if kind == DiesAnswered {
		s.front.next()
	}
}

// unheard passes a request on and keeps the answer to itself. The request happens even if the program ends.
func (s *side) unheard(r *http.Request) int {
	answer := httptest.NewRecorder()
	s.proxy.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	return answer.Code
}

// sleep stops the program, and passes its request on when it is released.
func (s *side) sleep(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.front.strikes(syscall.SIGSTOP)
	s.front.Asleep <- struct{}{}
	<-s.front.free
	s.front.late <- s.unheard(r)
}

// take counts a request, and returns what happens to it; "" for nothing.
func (f *Front) take(cluster string, r *http.Request) Kind {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.dying {
		f.dying = false
		return DiesBefore
	}
	line := fmt.Sprintf("%s %s %s", cluster, r.Method, r.URL.Path)
	if isLease := strings.Contains(r.URL.Path, "/leases"); isLease && r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") {
		f.all = append(f.all, line)
	}
	if !isWrite(r) {
		return ""
	}
	f.trail, f.all = append(f.trail, line), append(f.all, line)
	if len(f.trail) == f.at {
		return f.kind
	}
	return ""
}

// next makes the program die at its next request.
func (f *Front) next() {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.dying = true
}

func (f *Front) strikes(signal os.Signal) {
	f.lock.Lock()
	defer f.lock.Unlock()
	_ = f.victim.Signal(signal) // one that has ended needs none
}

// isWrite reports whether a request changes an object that a plan is about: not the Leases of processes, no events,
// no questions about rights, no dry runs.
func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") {
		return false
	}
	for _, kind := range []string{"leases", "events", "reviews"} {
		if strings.Contains(r.URL.Path, kind) {
			return false
		}
	}
	return true
}
