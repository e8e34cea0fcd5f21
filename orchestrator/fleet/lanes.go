package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

// lanes limits the rate of requests to a cluster. Urgent requests are sent first, since an ordinal is
// down while they wait. Within each lane the order is first come, first served. It implements
// flowcontrol.RateLimiter.
type lanes struct {
	bucket  *rate.Limiter
	lock    sync.Mutex
	waiting [2][]chan struct{} // by lane
	serving bool
}

// The lanes, in the order in which they are served.
const (
	urgent = iota
	other
)

func newLanes(l Limits) *lanes {
	return &lanes{bucket: rate.NewLimiter(rate.Limit(l.QPS), l.Burst)}
}

// Wait implements flowcontrol.RateLimiter.
func (l *lanes) Wait(ctx context.Context) error {
	lane := other
	if clusters.IsUrgent(ctx) {
		lane = urgent
	}
	turn := l.join(lane)
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		l.lock.Lock()
		defer l.lock.Unlock()
		l.waiting[lane] = slices.DeleteFunc(l.waiting[lane], func(c chan struct{}) bool { return c == turn })
		return ctx.Err()
	}
}

// join returns a channel that is closed when a request may be sent; nil means at once.
func (l *lanes) join(lane int) chan struct{} {
	l.lock.Lock()
	defer l.lock.Unlock()
	if !l.serving && l.bucket.Allow() {
		return nil
	}
	turn := make(chan struct{})
	l.waiting[lane] = append(l.waiting[lane], turn)
	if !l.serving {
		l.serving = true
		go l.serve()
	}
	return turn
}

// serve lets the waiting requests through one by one, until none waits. It reserves a token of the
// bucket for one request at a time only, so that an urgent request waits behind no more than one
// reservation.
func (l *lanes) serve() {
	for l.busy() {
		<-time.After(l.bucket.Reserve().Delay())
		l.next()
	}
}

func (l *lanes) busy() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.serving = len(l.waiting[urgent])+len(l.waiting[other]) > 0
	return l.serving
}

func (l *lanes) next() {
	l.lock.Lock()
	defer l.lock.Unlock()
	for k, lane := range l.waiting {
		if len(lane) > 0 {
			close(lane[0])
			l.waiting[k] = lane[1:]
			return
		}
	}
}

// TryAccept implements flowcontrol.RateLimiter.
func (l *lanes) TryAccept() bool { return l.bucket.Allow() }

// Accept implements flowcontrol.RateLimiter.
func (l *lanes) Accept() {
	if turn := l.join(other); turn != nil {
		<-turn
	}
}

// Stop implements flowcontrol.RateLimiter.
func (l *lanes) Stop() {}

// QPS implements flowcontrol.RateLimiter.
func (l *lanes) QPS() float32 { return float32(l.bucket.Limit()) }
