package waiting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A target that comes up while it is asked is reached; one that stays away is told in the words of who said no.
func TestATargetIsAskedUntilItIsReached(t *testing.T) {
	var tries atomic.Int32
	a := Asker{
		Now: func() time.Time { return time.Unix(0, 0) },
		Lookup: func(_ context.Context, host string) ([]string, error) {
			switch host {
			case "nobody":
				return nil, errors.New("lookup nobody on 10.0.0.10:53: no such host")
			case "empty":
				return nil, nil
			}
			return []string{"10.0.0.1", "10.0.0.2"}, nil
		},
		Open: func(_ context.Context, address string) error {
			switch {
			case address == "10.0.0.2:1":
				return nil // the second address of a host is asked too
			case address == "10.0.0.1:2" && tries.Add(1) > 2:
				return nil
			}
			return fmt.Errorf("dial tcp %s: connect: no route to host", address)
		},
		Pause: func(context.Context) bool { return tries.Load() < 3 },
	}
	tries.Store(0)
	got := a.Ask(t.Context(), []string{"two:1", "late:2"})
	if got.Reached != 2 || got.Each[0].Error+got.Each[1].Error != "" || len(got.Each[0].Addresses) != 2 {
		t.Errorf("%+v", got)
	}
	tries.Store(3)
	got = a.Ask(t.Context(), []string{"two:1", "nobody:1", "web:9", "empty:1", "bad"})
	words := fmt.Sprintf("%+v", got.Each)
	if got.Reached != 1 || got.Each[4].Target != "two:1" {
		t.Errorf("those that are not reached come first: %+v", got)
	}
	for _, want := range []string{"no such host", "no route to host", "the DNS has no address", "missing port"} {
		if !strings.Contains(words, want) {
			t.Errorf("expected %q in %s", want, words)
		}
	}
}

// A host with many addresses, none of which answers, does not keep its target for minutes.
func TestATryIsBounded(t *testing.T) {
	opened := 0
	a := Asker{
		Now:    func() time.Time { return time.Unix(0, 0) },
		Lookup: func(context.Context, string) ([]string, error) { return make([]string, 100), nil },
		Open:   func(context.Context, string) error { opened++; return errors.New("i/o timeout") },
		Pause:  func(context.Context) bool { return false },
	}
	if got := a.Ask(t.Context(), []string{"web:1"}); got.Reached != 0 || opened != maxAddresses {
		t.Errorf("%d were tried: %+v", opened, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// A DNS that does not answer is given up by its deadline.
	if _, err := Real(nil).Lookup(ctx, "nobody.invalid"); err == nil {
		t.Error("it does not mind its deadline")
	}
}

// A message is never longer than the kubelet keeps: it would cut it, and nobody could read it.
func TestAMessageHasRoom(t *testing.T) {
	all := Answers{Asked: MaxTargets, Reached: 60}
	for k := range MaxTargets {
		all.Each = append(all.Each, Answer{Target: fmt.Sprintf("web-%d.web.shop.svc:2380", k), Error: strings.Repeat("x", maxWords), Addresses: []string{"10.0.0.1"}})
	}
	for _, limit := range []int{MaxMessage, 1000, 300, 100} {
		raw := all.Encode(limit)
		got, err := Decode(string(raw))
		if err != nil || len(raw) > limit || got.Asked != MaxTargets || got.Reached != 60 || limit > 300 && len(got.Each) == 0 {
			t.Errorf("%d: %s %v", limit, raw, err)
		}
	}
	if raw := all.Encode(10); raw != nil {
		t.Errorf("%s", raw)
	}
}

// A message comes from a pod's status. It may be anything.
func TestAMessageIsNotTrusted(t *testing.T) {
	for _, m := range []string{"", "{", "[]", `{"asked":1,"reached":2}`, `{"asked":-1}`, `{"asked":1000}`, `{"asked":0,"each":[{"to":"a"}]}`, `{"asked":1,"each":[{"to":"` + strings.Repeat("a", 300) + `"}]}`, strings.Repeat(" ", MaxMessage) + "{}"} {
		if got, err := Decode(m); err == nil {
			t.Errorf("%q: %+v", m, got)
		}
	}
	got, err := Decode(`{"asked":1,"reached":0,"each":[{"to":"a\u001b[31m","no":"b\nc","at":["\u0007"]}]}`)
	if err != nil || got.Each[0].Target != "a?[31m" || got.Each[0].Error != "b?c" || got.Each[0].Addresses[0] != "?" {
		t.Errorf("%+v %v", got, err)
	}
}
