package notify

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const key = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// receiver answers requests as do says, and keeps what it has got.
type receiver struct {
	lock sync.Mutex
	got  []string // "PLAN/CHANGE"
	at   []time.Time
	do   func(n int, q *http.Request) (*http.Response, error)
}

func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	r.lock.Lock()
	n := len(r.at)
	r.at = append(r.at, bubbled())
	r.lock.Unlock()
	a, err := r.do(n, q)
	if err != nil || a.StatusCode/100 != 2 {
		return a, err
	}
	raw, err := io.ReadAll(q.Body)
	r.lock.Lock()
	defer r.lock.Unlock()
	r.got = append(r.got, string(raw))
	return a, err
}

// requests returns when requests came.
func (r *receiver) requests() []time.Time {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.at)
}

func answer(code int) (*http.Response, error) {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("thanks"))}, nil
}

// told counts results and the calls of a Sender.
type told struct {
	lock    sync.Mutex
	results map[Result]int
	why     []string
	settled []string
	missed  []string
	waiting int
}

// now returns how often there was a result, and how many events wait.
func (c *told) now(r Result) (count, waiting int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.results[r], c.waiting
}

func bubbled() time.Time { return time.Now() } //nolint:forbidigo // it is the test's own

func sender(to http.RoundTripper) (*Sender, *told) {
	c := &told{results: map[Result]int{}}
	with := func(do func()) { c.lock.Lock(); defer c.lock.Unlock(); do() }
	return &Sender{
		URL: "https://receiver.example/secret-path?token=secret-token", Client: &http.Client{Transport: to, Timeout: attemptTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Keys: func() ([][]byte, error) { return ParseKeys(key) }, Agent: "test", Now: bubbled,
		Settled: func(_ context.Context, e Event) { with(func() { c.settled = append(c.settled, e.ID) }) },
		Missed:  func(all []string) { with(func() { c.missed = append(c.missed, all...) }) },
		Report:  func(r Result, _ Event, why string) { with(func() { c.results[r]++; c.why = append(c.why, why) }) },
		Waiting: func(n int) { with(func() { c.waiting = n }) },
	}, c
}

func of(plan, word string) Event {
	s := state(word)
	s.Plan = plan
	e, _ := Next(Mark{}, s, time.Unix(1000, 0))
	return e
}

// start runs the Sender until the test ends.
func start(t *testing.T, s *Sender) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
}

// A receiver that fails gets the event again, with pauses that double up to five minutes.
func TestAReceiverThatFailsGetsTheEventAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{do: func(n int, _ *http.Request) (*http.Response, error) {
			switch {
			case n%3 == 0 && n < 30:
				return nil, errors.New("connection refused")
			case n < 30:
				return answer([]int{500, 404}[n%2])
			}
			return answer(204)
		}}
		s, c := sender(r)
		start(t, s)
		s.Add(of("web", "Moving"))
		s.Add(of("web", "Moved"))
		<-time.After(3 * time.Hour)
		synctest.Wait()
		if c.results[Delivered] != 2 || c.results[Retried] != 30 || len(c.settled) != 2 || c.waiting != 0 {
			t.Fatalf("%+v", c)
		}
		if !strings.Contains(r.got[0], `"begun"`) || !strings.Contains(r.got[1], `"moved"`) {
			t.Errorf("out of order: %v", r.got)
		}
		for n := 1; n <= 30; n++ {
			least, pause := min(firstPause<<min(n-1, 16), lastPause)/2, r.at[n].Sub(r.at[n-1])
			if pause < least || pause > 2*least {
				t.Errorf("pause %d is %s, expected %s to %s", n, pause, least, 2*least)
			}
		}
		for _, why := range c.why {
			if strings.Contains(why, "secret") {
				t.Errorf("%q quotes the URL", why)
			}
		}
	})
}

// A receiver may ask to be left alone for some time, but not for ever.
func TestRetryAfterIsObeyedWithinLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{do: func(n int, _ *http.Request) (*http.Response, error) {
			if n == 2 {
				return answer(200)
			}
			a, err := answer(429)
			a.Header.Set("Retry-After", []string{"60", "99999999999"}[n])
			return a, err
		}}
		s, _ := sender(r)
		start(t, s)
		s.Add(of("web", "Moving"))
		<-time.After(time.Hour)
		synctest.Wait()
		if len(r.at) != 3 || r.at[1].Sub(r.at[0]) != time.Minute || r.at[2].Sub(r.at[1]) > lastPause {
			t.Errorf("asked at %v", r.at)
		}
	})
}

// An event that the receiver will never accept does not keep later ones from it.
func TestARejectedEventIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{do: func(n int, _ *http.Request) (*http.Response, error) { return answer([]int{422, 200}[n]) }}
		s, c := sender(r)
		start(t, s)
		s.Add(of("web", "Moving"))
		s.Add(of("db", "Moving"))
		synctest.Wait()
		if c.results[Rejected] != 1 || c.results[Delivered] != 1 || len(c.settled) != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// A receiver that hangs blocks nobody who adds events, and each attempt has an end.
func TestAReceiverThatHangsBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{do: func(n int, q *http.Request) (*http.Response, error) {
			if n > 0 {
				return answer(200)
			}
			<-q.Context().Done()
			return nil, q.Context().Err()
		}}
		s, c := sender(r)
		start(t, s)
		before := bubbled()
		for k := range maxQueue / 2 {
			s.Add(of(fmt.Sprintf("web-%d", k), "Moving"))
		}
		if took := bubbled().Sub(before); took != 0 {
			t.Errorf("adding took %s", took)
		}
		<-time.After(attemptTimeout + 2*firstPause)
		synctest.Wait()
		if c.results[Retried] != 1 || c.results[Delivered] != maxQueue/2 {
			t.Errorf("%+v", c.results)
		}
	})
}

// While a receiver is down for longer than the queue lasts, the oldest events are dropped and counted, and
// their plans are named afterwards, so that their present state is sent.
func TestAReceiverThatIsDownForLongLosesNoPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := bubbled().Add(time.Hour)
		r := &receiver{do: func(int, *http.Request) (*http.Response, error) {
			if bubbled().Before(up) {
				return nil, errors.New("no route to host")
			}
			return answer(200)
		}}
		s, c := sender(r)
		start(t, s)
		const more = 50
		for k := range 1 + maxQueue + more {
			s.Add(of(fmt.Sprintf("web-%d", k), "Moving"))
			synctest.Wait() // the first one is under way
		}
		if dropped, waiting := c.now(Dropped); dropped != more || waiting != maxQueue {
			t.Fatalf("%d dropped, %d wait", dropped, waiting)
		}
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if c.results[Delivered] != 1+maxQueue || len(c.missed) != more || !slices.Contains(c.missed, "web-1") || slices.Contains(c.missed, "web-0") {
			t.Errorf("%v, missed %v", c.results, c.missed)
		}
		if c.waiting != 0 {
			t.Errorf("%d wait", c.waiting)
		}
	})
}

// A plan whose later event waits is not missed: that event tells its state.
func TestOnlyTheLastEventOfAPlanIsMissed(t *testing.T) {
	s, c := sender(nil)
	s.Add(of("web", "Moving"))
	s.Add(of("db", "Moving"))
	for range maxQueue {
		s.Add(of("web", "Moved"))
	}
	if _, missed, _ := (&Sender{dropped: s.dropped, Waiting: s.Waiting}).take(); !slices.Equal(missed, []string{"db"}) || c.results[Dropped] != 2 {
		t.Errorf("%v are missed, %v", missed, c.results)
	}
}

// A key that is missing or wrong is an error that is tried again: the Secret may be repaired.
func TestWithoutAKeyNothingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{do: func(int, *http.Request) (*http.Response, error) { return answer(200) }}
		s, c := sender(r)
		repaired := bubbled().Add(time.Minute)
		s.Keys = func() ([][]byte, error) {
			if bubbled().Before(repaired) {
				return ParseKeys("whsec_c2VjcmV0")
			}
			return ParseKeys(key)
		}
		start(t, s)
		s.Add(of("web", "Moving"))
		<-time.After(30 * time.Second)
		synctest.Wait()
		if len(r.requests()) > 0 {
			t.Error("it was sent unsigned")
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if c.results[Delivered] != 1 {
			t.Errorf("%+v", c)
		}
		for _, why := range c.why {
			if strings.Contains(why, "c2VjcmV0") {
				t.Errorf("%q quotes a key", why)
			}
		}
	})
}

// A process that ends forgets its queue: the next one sends what was not delivered.
func TestTheEndOfAProcessForgetsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := sender(&receiver{do: func(int, *http.Request) (*http.Response, error) { return answer(503) }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		s.Add(of("web", "Moving"))
		s.Add(of("db", "Moving"))
		<-time.After(time.Minute)
		cancel()
		<-done
		if len(c.settled) != 0 || c.waiting != 0 || len(s.queue) != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// serve answers over the network, and returns a Sender to it.
func serve(t *testing.T, h http.HandlerFunc) (*Sender, *told) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s, c := sender(nil)
	s.URL = server.URL + "/hook"
	client, err := Target{URL: s.URL, Dir: t.TempDir()}.Client()
	if err != nil {
		t.Fatal(err)
	}
	s.Client = client
	return s, c
}

// A redirect could lead the signed message to another host: it is not followed.
func TestARedirectIsNotFollowed(t *testing.T) {
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		s, _ := serve(t, func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, other.URL, code) })
		result, _, why := s.attempt(t.Context(), of("web", "Moving"))
		if result != Retried || followed || strings.Contains(why, other.URL) || !strings.Contains(why, "not followed") {
			t.Errorf("%d: %s, %s; followed: %t", code, result, why, followed)
		}
	}
}

// An answer without an end is read up to a limit.
func TestOfAnAnswerLittleIsRead(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, q *http.Request) {
		for q.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<10)); err != nil {
				return
			}
		}
	})
	begin := bubbled()
	if result, _, why := s.attempt(t.Context(), of("web", "Moving")); result != Delivered || bubbled().Sub(begin) > attemptTimeout/2 {
		t.Errorf("%s %s after %s", result, why, bubbled().Sub(begin))
	}
}

// What arrives is the event in structured mode, with the signature of every key over id, time and body.
func TestAMessageIsSigned(t *testing.T) {
	const second = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	var got http.Header
	var body []byte
	s, _ := serve(t, func(_ http.ResponseWriter, q *http.Request) { got = q.Header; body, _ = io.ReadAll(q.Body) })
	s.Keys = func() ([][]byte, error) { return ParseKeys(key + "\n" + second + "\n") }
	s.Now = func() time.Time { return time.Unix(1700000000, 0) }
	e := of("web", "Moving")
	if result, _, why := s.attempt(t.Context(), e); result != Delivered {
		t.Fatal(result, why)
	}
	if !strings.HasPrefix(got.Get("Content-Type"), "application/cloudevents+json") || !bytes.Contains(body, []byte(`"specversion":"1.0"`)) || got.Get("Webhook-Id") != e.ID || got.Get("Webhook-Timestamp") != "1700000000" {
		t.Errorf("%v\n%s", got, body)
	}
	again := http.Header{}
	keys, err := ParseKeys(key + "\n" + second)
	if err != nil {
		t.Fatal(err)
	}
	sign(again, keys, e.ID, s.Now(), body)
	if again.Get("Webhook-Signature") != got.Get("Webhook-Signature") || strings.Count(got.Get("Webhook-Signature"), "v1,") != 2 {
		t.Errorf("signed %s", got.Get("Webhook-Signature"))
	}
}

// The example of Standard Webhooks has the signature that its libraries compute.
func TestTheSignatureIsThatOfStandardWebhooks(t *testing.T) {
	keys, err := ParseKeys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	sign(h, keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if h.Get(HeaderSignature) != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("signed %s", h.Get(HeaderSignature))
	}
}

func TestKeysAreLongEnough(t *testing.T) {
	long := base64.StdEncoding.EncodeToString(make([]byte, maxKey+1))
	for _, bad := range []string{"", "\n", "whsec_", "short", "whsec_c2hvcnQ=", long, strings.Repeat(key+"\n", maxKeys+1)} {
		if keys, err := ParseKeys(bad); err == nil || bad != "" && len(bad) > 10 && strings.Contains(err.Error(), strings.TrimSpace(bad)) {
			t.Errorf("%q: %d keys, %v", bad, len(keys), err)
		}
	}
}
