package orchestrator

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

// A process is restarted only for what a restart repairs: something in it hangs. It does not repair an API server that
// is down, and all replicas would be restarted again and again. So a failure counts only for as long as something else
// shows that the API server answers.
const (
	// pulsePatience is how long something may hang.
	pulsePatience = 10 * time.Minute
	// othersPatience is how long no other process may have renewed its Lease if the API server is to count as alive.
	othersPatience = 2 * records.LeaseSeconds * time.Second
	// probePatience is how long the kubelet may not have asked: after a longer time the process was suspended, and what
	// it remembers says nothing.
	probePatience = time.Minute
)

// pulse is what a process notices of its own life.
type pulse struct {
	lock  sync.Mutex
	now   func() time.Time
	peers *records.Peers
	// begun is when the process began, or continued. Everything else that is earlier counts as at that time.
	begun, asked time.Time
	// tried is when the last try to renew the heartbeat ended, and refused when the last one failed that did.
	tried, refused time.Time
	failing        error
	// quiet is when no other process was seen to renew its heartbeat.
	quiet  time.Time
	passes map[int]time.Time
	number int
}

func newPulse(s Setup) *pulse {
	return &pulse{now: s.Now, peers: records.NewPeers(s.Cached, s.Namespace, s.Holder, s.Now), passes: map[int]time.Time{}}
}

// beat notes how a try to renew the heartbeat ended.
func (p *pulse) beat(err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.tried, p.failing = p.now(), err
	if err != nil {
		p.refused = p.tried
	}
}

// pass notes that a pass over a plan begins; what it returns notes its end.
func (p *pulse) pass() (end func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	n := p.number
	p.number++
	p.passes[n] = p.now()
	return func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		delete(p.passes, n)
	}
}

// check is the liveness of the process.
func (p *pulse) check(r *http.Request) error {
	err := p.sick(r.Context())
	if err != nil {
		log.Log.WithName("orchestrator").Info("this process needs a restart", "reason", err.Error())
	}
	return err
}

// sick returns what hangs.
func (p *pulse) sick(ctx context.Context) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	now := p.now()
	if p.begun.IsZero() || clusters.Elapsed(p.asked, now) > probePatience {
		p.begun = now
	}
	p.asked = now
	mine, others := p.peers.Renewed(ctx)
	if clusters.Elapsed(others, now) > othersPatience {
		p.quiet = now
	}
	switch {
	case p.tried.IsZero():
		return nil
	case p.since(p.tried) > pulsePatience:
		return fmt.Errorf("no try to renew the heartbeat has ended for %s", p.since(p.tried))
	case p.failing != nil && p.since(mine, p.quiet) > pulsePatience:
		return fmt.Errorf("the heartbeat has not been renewed for %s, while other orchestrators renew theirs: %w", p.since(mine, p.quiet), p.failing)
	case p.failing != nil:
		return nil
	case p.since(mine, p.refused) > pulsePatience:
		return fmt.Errorf("the heartbeat is renewed, and the watch has not shown that for %s", p.since(mine, p.refused))
	case p.since(p.oldest(), p.refused) > pulsePatience:
		return fmt.Errorf("a pass over a plan has not ended for %s, while the heartbeat is renewed", p.since(p.oldest(), p.refused))
	}
	return nil
}

// since returns how long ago the latest of some times is, and no more than since the process began.
func (p *pulse) since(times ...time.Time) time.Duration {
	least := clusters.Elapsed(p.begun, p.asked)
	for _, t := range times {
		least = min(least, clusters.Elapsed(t, p.asked))
	}
	return least
}

// oldest returns when the pass began that has lasted longest; now if there is none.
func (p *pulse) oldest() time.Time {
	out := p.asked
	for _, t := range p.passes {
		if t.Before(out) {
			out = t
		}
	}
	return out
}
