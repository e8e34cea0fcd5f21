package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/internal/clusters/transport"
)

const (
	// slowAnswer is how long a request waits for the beginning of its answer before the cluster is asked whether it answers
	// at all. A cluster that has answered before may be silent for patience: one of several servers may have ended.
	slowAnswer = 10 * time.Second
	patience   = 5 * time.Second
	// probeTimeout is how long that question may take. Its pauses grow up to maxProbePause: an ordinal may be in flight (L3).
	probeTimeout  = 5 * time.Second
	maxProbePause = 10 * time.Second
)

// breaker knows whether a cluster answers. When it does not, one request asks again and again, for all plans, and every
// other request fails at once, also those under way: an attempt of each plan would hold its room for minutes. What was
// sent and not answered is nothing new: the outcome of a write is what the next look sees.
type breaker struct {
	cluster string
	// ask sends one small request through the breaker. gone ends all questions.
	ask  func(context.Context) error
	gone <-chan struct{}
	// changed is called when the cluster begins or ceases to answer.
	changed func()

	lock sync.Mutex
	// answers counts the answers of the cluster, and asking reports that it is being asked whether it answers.
	answers int
	asking  bool
	// silent is why no request is sent. A cluster that was never asked is silent too.
	silent error
	cuts   map[*context.CancelCauseFunc]bool // of the requests under way
}

func newBreaker(cluster string, gone <-chan struct{}, changed func()) *breaker {
	return &breaker{cluster: cluster, gone: gone, changed: changed, cuts: map[*context.CancelCauseFunc]bool{}}
}

// probing marks the question whether a cluster answers.
type probing struct{}

// wrap lets the requests of a config pass through the breaker.
func (b *breaker) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if _, upgrades := next.(transport.Upgrader); upgrades {
			return next
		}
		return guarded{b, next}
	})
	return config
}

// guarded sends requests as long as the cluster answers.
type guarded struct {
	*breaker
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cut := context.WithCancelCause(r.Context())
	if err := g.begins(r, &cut); err != nil {
		cut(err)
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	ended := func() { g.ends(&cut); cut(nil) }
	slow := time.AfterFunc(slowAnswer, g.doubt)
	answer, err := g.next.RoundTrip(r.WithContext(ctx))
	slow.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		if ended(); r.Context().Err() != nil { // the caller has ended it
			return nil, err
		}
		if cause != nil {
			return nil, cause
		}
		g.doubt()
		return nil, err
	}
	if g.hears(answer.StatusCode); answer.StatusCode >= http.StatusBadGateway {
		g.doubt()
	}
	answer.Body = &guardedBody{answer.Body, ctx, ended}
	return answer, nil
}

// guardedBody is the body of an answer that ends when the cluster ceases to answer.
type guardedBody struct {
	io.ReadCloser
	ctx   context.Context //nolint:containedctx // it is that of the request
	ended func()
}

// Read implements io.Reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && context.Cause(b.ctx) != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close implements io.Closer.
func (b *guardedBody) Close() error {
	defer b.ended()
	return b.ReadCloser.Close()
}

// begins returns an error if the request must not be sent. Otherwise it is one that can be cut.
func (b *breaker) begins(r *http.Request, cut *context.CancelCauseFunc) error {
	if r.Context().Value(probing{}) != nil {
		return nil
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.silent == nil {
		b.cuts[cut] = true
	}
	return b.silent
}

func (b *breaker) ends(cut *context.CancelCauseFunc) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.cuts, cut)
}

// hears notes an answer. That of a server whose own parts do not answer is none.
func (b *breaker) hears(code int) {
	if code >= http.StatusInternalServerError {
		return
	}
	b.lock.Lock()
	spoke := b.silent != nil || b.answers == 0
	b.silent = nil
	b.answers++
	b.lock.Unlock()
	if spoke {
		b.changed()
	}
}

// silence returns why the cluster is not reached, or nil. A cluster that was never asked is asked.
func (b *breaker) silence() error {
	b.lock.Lock()
	never := b.answers == 0 && b.silent == nil
	err := b.silent
	b.lock.Unlock()
	if never {
		b.doubt()
		return fmt.Errorf("cluster %s was not asked yet", b.cluster)
	}
	return err
}

// doubt asks the cluster whether it answers, unless that is being asked.
func (b *breaker) doubt() {
	b.lock.Lock()
	defer b.lock.Unlock()
	if !b.asking {
		b.asking = true
		go b.asks(b.answers)
	}
}

// asks asks until there is an answer, to this question or to any other request.
func (b *breaker) asks(before int) {
	late := time.After(patience)
	if before == 0 { // it has never answered
		now := make(chan time.Time)
		close(now)
		late = now
	}
	for pause := time.Second; ; pause = min(2*pause, maxProbePause) {
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), probing{}, true), probeTimeout) //nolint:forbidigo // it is of no caller
		err := b.ask(ctx)
		cancel()
		if b.settles(before) {
			return
		}
		select {
		case <-late:
			late = nil
			b.breaks(before, err)
		default:
		}
		select {
		case <-time.After(pause):
		case <-b.gone:
			return
		}
	}
}

// settles reports whether the cluster has answered.
func (b *breaker) settles(before int) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.asking = b.answers == before
	return !b.asking
}

// breaks has every request fail from now on, until the cluster answers.
func (b *breaker) breaks(before int, why error) {
	b.lock.Lock()
	if b.answers != before {
		b.lock.Unlock()
		return
	}
	b.silent = fmt.Errorf("cluster %s does not answer, and is asked again all the time: %w", b.cluster, why)
	for cut := range b.cuts {
		(*cut)(b.silent)
	}
	clear(b.cuts)
	b.lock.Unlock()
	b.changed()
}

// question returns a function that asks the cluster of a config for what every cluster has. Any answer will do.
func question(config *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		at, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("api/v1/namespaces/kube-system").String(), http.NoBody)
		if err != nil {
			return err
		}
		answer, err := c.Do(r)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		return fmt.Errorf("it answers %s", answer.Status) // which counts only if the breaker takes it for none
	}
}
