package fleet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errRefused = errors.New("connection refused")

// fickle is an API server that answers, hangs or refuses, and counts what it is asked.
type fickle struct {
	hangs, refuses, half atomic.Bool
	asked                atomic.Int32
}

func (s *fickle) RoundTrip(r *http.Request) (*http.Response, error) {
	n := s.asked.Add(1)
	switch {
	case s.refuses.Load(), s.half.Load() && n%3 != 0:
		return nil, errRefused
	case s.hangs.Load():
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = w.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, Body: body, Header: http.Header{}}, nil
}

// bed is a breaker in front of such a server.
type bed struct {
	*breaker
	fickle
	t       *testing.T
	changes atomic.Int32
	begun   time.Time
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, begun: time.Now()} //nolint:forbidigo // that of the bubble
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	b.breaker = newBreaker("east", gone, func() { b.changes.Add(1) })
	b.ask = func(ctx context.Context) error {
		answer, err := b.send(ctx)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	return b
}

func (b *bed) send(ctx context.Context) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://east", http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	return guarded{b.breaker, &b.fickle}.RoundTrip(r)
}

// isCut fails the test unless a request has ended soon because the cluster is silent.
func (b *bed) isCut(err error) {
	b.t.Helper()
	if err == nil || !strings.Contains(err.Error(), "cluster east does not answer") || time.Since(b.begun) > 20*time.Second {
		b.t.Errorf("after %s it ends with %v", time.Since(b.begun), err)
	}
}

// A cluster that hangs is asked once for all plans, with growing pauses, and what was under way ends. Plans go on as soon as
// it answers.
func TestASilentClusterIsAskedOnceForAllPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		watch, err := b.send(t.Context())
		if err != nil || b.silence() != nil {
			t.Fatalf("%v, %v", err, b.silence())
		}
		b.hangs.Store(true)
		for range 100 { // plans
			go func() {
				_, err := b.send(t.Context())
				b.isCut(err)
			}()
		}
		_, err = io.ReadAll(watch.Body)
		b.isCut(err)
		synctest.Wait()
		if b.changes.Load() != 2 { // its first answer too
			t.Errorf("%d changes were told", b.changes.Load())
		}
		before := b.asked.Load()
		<-time.After(time.Minute)
		for range 100 {
			if _, err := b.send(t.Context()); err == nil {
				t.Fatal("a request of a plan is sent")
			}
		}
		if asked := b.asked.Load() - before; asked < 4 || asked > 12 {
			t.Errorf("in a minute it was asked %d times", asked)
		}
		b.hangs.Store(false)
		<-time.After(maxProbePause + probeTimeout + time.Second)
		if err := b.silence(); err != nil || b.changes.Load() != 3 {
			t.Errorf("it answers, and plans are told %v; %d changes", err, b.changes.Load())
		}
	})
}

// Nothing is concluded from one answer that does not come, while others come: one server of several may have ended.
func TestOneAnswerThatFailsCutsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		watch, err := b.send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.half.Store(true)
		for range 60 {
			_, _ = b.send(t.Context())
			<-time.After(time.Second)
			if err := b.silence(); err != nil {
				t.Fatal(err)
			}
		}
		if err := watch.Body.Close(); err != nil {
			t.Error(err)
		}
		b.half.Store(false)
		<-time.After(2 * maxProbePause) // the last question is answered
	})
}

// A caller that gives up says nothing about the cluster.
func TestACallerThatGivesUpCutsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		first, err := b.send(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Body.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		b.hangs.Store(true)
		go cancel()
		if _, err := b.send(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if b.asking || b.silence() != nil {
			t.Error("a caller that gave up makes a cluster silent")
		}
	})
}

// A cluster that was never asked is asked before any plan begins.
func TestAClusterIsAskedBeforeItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.refuses.Store(true)
		if err := b.silence(); err == nil {
			t.Fatal("a cluster that nobody has asked answers")
		}
		synctest.Wait()
		if err := b.silence(); !errors.Is(err, errRefused) || b.changes.Load() != 1 {
			t.Errorf("%v, %d changes", err, b.changes.Load())
		}
		b.refuses.Store(false)
		<-time.After(maxProbePause)
		if err := b.silence(); err != nil || b.changes.Load() != 2 {
			t.Errorf("%v, %d changes", err, b.changes.Load())
		}
	})
}
