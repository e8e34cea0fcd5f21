package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stsmigrate/stsmigrate/clusters"
)

// lanes lets the requests to a cluster through at a rate: first those that are urgent, since an
// ordinal is down while they wait, and of these and of the others whoever has come first. It is a
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

// join gives what is closed when a request may be sent; nil if that is at once.
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

// serve lets one after the other through, until nobody waits. Only for one request at a time is a
// place in the bucket taken ahead: who hurries is behind no more than that.
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
