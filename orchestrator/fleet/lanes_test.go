package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
)

var _ flowcontrol.RateLimiter = &lanes{}

// queue makes requests wait at lanes that let none through by themselves.
type queue struct {
	*lanes
	t    *testing.T
	sent chan string
}

func (q queue) waits(ctx context.Context, name string) {
	q.t.Helper()
	length := func() int { q.lock.Lock(); defer q.lock.Unlock(); return len(q.waiting[0]) + len(q.waiting[1]) }
	before := length()
	go func() {
		if err := q.Wait(ctx); err != nil {
			name += ": " + err.Error()
		}
		q.sent <- name
	}()
	err := wait.PollUntilContextTimeout(q.t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return length() > before, nil })
	if err != nil {
		q.t.Fatal(err)
	}
}

func (q queue) expect(want string) {
	q.t.Helper()
	select {
	case got := <-q.sent:
		if got != want {
			q.t.Errorf("%s, expected %s", got, want)
		}
	case <-time.After(10 * time.Second):
		q.t.Fatalf("%s does not come", want)
	}
}

func TestWhatIsUrgentIsSentFirst(t *testing.T) {
	q := queue{newLanes(Limits{QPS: 1, Burst: 1}), t, make(chan string, 10)}
	q.serving = true // served by this test
	given, cancel := context.WithCancel(t.Context())
	q.waits(t.Context(), "a check")
	q.waits(given, "one that is given up")
	q.waits(t.Context(), "another check")
	q.waits(clusters.Urgent(t.Context()), "a wave")
	q.waits(clusters.Urgent(t.Context()), "another wave")
	cancel()
	q.expect("one that is given up: " + context.Canceled.Error())
	for _, want := range []string{"a wave", "another wave", "a check"} {
		q.next()
		q.expect(want)
	}
	q.waits(clusters.Urgent(t.Context()), "a late wave")
	for _, want := range []string{"a late wave", "another check"} {
		q.next()
		q.expect(want)
	}
	q.next() // no request waits
	if q.busy() {
		t.Error("it goes on although nobody waits")
	}
}

// All requests are sent, at the configured rate, and then the goroutine ends.
func TestRequestsAreSentAtARate(t *testing.T) {
	l := newLanes(Limits{QPS: 200, Burst: 5})
	const requests = 45
	errs := make(chan error)
	early := time.After(190 * time.Millisecond) // for the 40 beyond the burst
	for k := range requests {
		ctx := t.Context()
		if k%2 == 0 {
			ctx = clusters.Urgent(ctx)
		}
		go func() { errs <- l.Wait(ctx) }()
	}
	for range requests {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	select {
	case <-early:
	default:
		t.Errorf("%d requests are sent already", requests)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if err := l.Wait(ended); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		l.lock.Lock()
		defer l.lock.Unlock()
		return !l.serving, nil
	})
	if err != nil {
		t.Error("it goes on although nobody waits")
	}
}
