package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxQueue is how many events wait at most. maxBody is how much of an answer is read.
const (
	maxQueue = 256
	maxBody  = 4 << 10
)

// The pause after a failure doubles from firstPause to lastPause.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// Result is what became of an attempt or of an event.
type Result string

const (
	// Delivered means that the receiver has accepted the event.
	Delivered Result = "delivered"
	// Rejected means that the receiver will never accept the event: it is not sent again.
	Rejected Result = "rejected"
	// Retried means that an attempt has failed, and is repeated.
	Retried Result = "retried"
	// Dropped means that the queue was full. The present state of the plan is told later.
	Dropped Result = "dropped"
)

// Results lists all results.
func Results() []Result { return []Result{Delivered, Rejected, Retried, Dropped} }

// Sender sends events, one after another, so that those of a plan arrive in their order.
type Sender struct {
	URL    string
	Client *http.Client
	Keys   func() ([][]byte, error)
	Agent  string
	Now    func() time.Time
	// Settled is called for an event that is delivered or rejected.
	Settled func(context.Context, Event)
	// Missed is called, when the queue is empty, with the plans whose last events were dropped.
	Missed func(plans []string)
	// Report is told of every result, and why. Waiting is told how many events wait.
	Report  func(Result, Event, string)
	Waiting func(events int)

	lock    sync.Mutex
	queue   []Event
	dropped map[string]bool
	wake    chan struct{}
}

// Add queues an event and never blocks. If the queue is full, it drops the oldest one.
func (s *Sender) Add(e Event) {
	s.lock.Lock()
	s.queue = append(s.queue, e)
	delete(s.dropped, e.Data.Plan)
	var lost *Event
	if len(s.queue) > maxQueue {
		lost, s.queue = &s.queue[0], s.queue[1:]
		if s.dropped == nil {
			s.dropped = map[string]bool{}
		}
		if !slices.ContainsFunc(s.queue, func(later Event) bool { return later.Data.Plan == lost.Data.Plan }) {
			s.dropped[lost.Data.Plan] = true
		}
	}
	waiting, wake := len(s.queue), s.signal()
	s.lock.Unlock()
	if lost != nil {
		s.Report(Dropped, *lost, fmt.Sprintf("%d events wait already", maxQueue))
	}
	s.Waiting(waiting)
	select {
	case wake <- struct{}{}:
	default:
	}
}

// signal returns the channel that wakes Run. The caller holds the lock.
func (s *Sender) signal() chan struct{} {
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	return s.wake
}

// Run sends events until ctx ends, and then forgets those that wait: the next process sends them.
func (s *Sender) Run(ctx context.Context) {
	defer s.clear()
	for ctx.Err() == nil {
		e, missed, wake := s.take()
		switch {
		case len(missed) > 0:
			s.Missed(missed)
		case e == nil:
			select {
			case <-wake:
			case <-ctx.Done():
			}
		default:
			s.deliver(ctx, *e)
		}
	}
}

// take returns the next event, or, when none waits, the plans whose events were dropped.
func (s *Sender) take() (e *Event, missed []string, wake <-chan struct{}) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.queue) > 0 {
		e, s.queue = &s.queue[0], s.queue[1:]
		return e, nil, nil
	}
	for plan := range s.dropped {
		missed = append(missed, plan)
	}
	clear(s.dropped)
	s.Waiting(0)
	return nil, missed, s.signal()
}

func (s *Sender) clear() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.queue, s.dropped = nil, nil
	s.Waiting(0)
}

// deliver sends an event until the receiver accepts or rejects it, or ctx ends.
func (s *Sender) deliver(ctx context.Context, e Event) {
	for n := 0; ; n++ {
		result, after, why := s.attempt(ctx, e)
		if ctx.Err() != nil && result == Retried {
			return
		}
		s.Report(result, e, why)
		if result != Retried {
			s.Settled(ctx, e)
			return
		}
		pause := time.NewTimer(max(backoff(n), after))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// backoff returns the pause after the failure with this number, counted from 0.
func backoff(n int) time.Duration {
	d := min(firstPause<<min(n, 16), lastPause)
	return d/2 + rand.N(d/2) //nolint:gosec // it spreads, and hides nothing
}

// attempt sends an event once. after is how long the receiver wants to be left alone.
func (s *Sender) attempt(ctx context.Context, e Event) (result Result, after time.Duration, why string) {
	keys, err := s.Keys()
	if err != nil {
		return Retried, 0, err.Error()
	}
	body, err := json.Marshal(e)
	if err != nil {
		return Rejected, 0, err.Error()
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return Rejected, 0, brief(err)
	}
	q.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
	q.Header.Set("User-Agent", s.Agent)
	sign(q.Header, keys, e.ID, s.Now(), body)
	a, err := s.Client.Do(q)
	if err != nil {
		return Retried, 0, brief(err)
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.CopyN(io.Discard, a.Body, maxBody) // so that the connection can be used again
	return judge(a)
}

// judge returns what an answer means.
func judge(a *http.Response) (result Result, after time.Duration, why string) {
	switch why = fmt.Sprintf("the receiver answers %d", a.StatusCode); a.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return Rejected, 0, why
	}
	switch a.StatusCode / 100 {
	case 2:
		return Delivered, 0, ""
	case 3:
		return Retried, 0, why + ", a redirect, which is not followed"
	}
	if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil && seconds > 0 {
		after = min(time.Duration(min(seconds, 3600))*time.Second, lastPause)
	}
	return Retried, after, why
}
