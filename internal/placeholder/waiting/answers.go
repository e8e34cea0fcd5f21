package waiting

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Bounds of what is asked and answered.
const (
	// MaxTargets is how many addresses one placeholder asks at most.
	MaxTargets = 64
	// MaxMessage is how long a termination message may be that a kubelet keeps.
	MaxMessage = 4096
	// MaxMessages is how long those of all containers of a pod may be: a kubelet cuts what is longer than its share.
	MaxMessages = 12288
	// maxWords is how many bytes of the words of an error are kept.
	maxWords = 160
	// maxTarget is how long a host and a port are at most.
	maxTarget = 260
)

// Answers are what the targets of a placeholder have answered.
type Answers struct {
	// Asked and Reached are how many targets there are, and how many have let a connection open.
	Asked   int `json:"asked"`
	Reached int `json:"reached"`
	// Each is about one target, first those that were not reached. What had no room is left out.
	Each []Answer `json:"each,omitempty"`
}

// Answer is what one target has answered.
type Answer struct {
	// Target is a host and a port.
	Target string `json:"to"`
	// Addresses are what the DNS has answered for the host.
	Addresses []string `json:"at,omitempty"`
	// Error is why it was not reached, in the words of who said no; "" if it was.
	Error string `json:"no,omitempty"`
	// Milliseconds is how long the DNS and the opening took, the last time it was tried.
	Milliseconds int64 `json:"ms"`
}

// Encode returns the answers in at most limit bytes.
func (a Answers) Encode(limit int) []byte {
	for {
		raw, err := json.Marshal(a)
		if err == nil && len(raw) <= limit {
			return raw
		}
		if len(a.Each) == 0 {
			return nil
		}
		a.Each = a.Each[:len(a.Each)-1]
	}
}

// Decode reads what Encode has written. It comes from the status of a pod, so nothing in it is trusted: words without control
// characters, and no more of them than there are.
func Decode(message string) (a Answers, err error) {
	if len(message) > MaxMessage {
		return a, fmt.Errorf("the message has %d bytes, expected at most %d", len(message), MaxMessage)
	}
	if err := json.Unmarshal([]byte(message), &a); err != nil {
		return Answers{}, err
	}
	if a.Asked < len(a.Each) || a.Reached > a.Asked || a.Reached < 0 || a.Asked > MaxTargets {
		return Answers{}, fmt.Errorf("%d answers, %d of %d reached", len(a.Each), a.Reached, a.Asked)
	}
	for k := range a.Each {
		one := &a.Each[k]
		if len(one.Target) > maxTarget {
			return Answers{}, fmt.Errorf("a target has %d bytes, expected at most %d", len(one.Target), maxTarget)
		}
		one.Target, one.Error = plain(one.Target), plain(one.Error)
		for n := range one.Addresses {
			one.Addresses[n] = plain(one.Addresses[n])
		}
	}
	return a, nil
}

// plain returns words without what a terminal would obey.
func plain(words string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, words)
}
