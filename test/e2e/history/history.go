// Package history defines what the programs in the clusters report to the tests, and how the
// reports are judged.
package history

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// The kinds of calls.
const (
	Read  = "read"
	Write = "write"
)

// Call is one call of a client. Times are nanoseconds of the client's clock.
type Call struct {
	Worker int
	Kind   string
	Key    string
	Value  string // what was written, or what was read; empty if there was nothing
	Begun  int64
	Ended  int64 // 0: the answer never arrived, and the write may or may not have happened
}

// State is the state of a client.
type State struct {
	Calls, Failures int
	Last            string // the last error of a call
	Acknowledged    int    // writes
	Lost            []string
	Names           map[string]*Name
}

// Name is the result of looking up one name and identifying the member there.
type Name struct {
	Answers, Failures int
	// Gap is the longest time between two answers.
	Gap   time.Duration
	Last  string // the last error
	Wrong string // the first wrong answer
	seen  time.Time
}

// ErrWrong is an answer from another member, which must never occur.
var ErrWrong = errors.New("the wrong member answers")

// Note records the outcome of one lookup.
func (n *Name) Note(at time.Time, err error) {
	if err != nil {
		n.Failures++
		n.Last = at.UTC().Format("15:04:05.000 ") + err.Error()
		if errors.Is(err, ErrWrong) && n.Wrong == "" {
			n.Wrong = n.Last
		}
		return
	}
	n.Answers++
	if !n.seen.IsZero() {
		n.Gap = max(n.Gap, at.Sub(n.seen))
	}
	n.seen = at
}

// Gap returns the longest time within [from, to] in which no call was answered.
func Gap(calls []Call, from, to time.Time) time.Duration {
	begin, end := from.UnixNano(), to.UnixNano()
	last, longest := begin, int64(0)
	for _, at := range answers(calls) {
		if at < begin {
			continue
		}
		longest = max(longest, min(at, end)-last)
		if at > end {
			return time.Duration(longest)
		}
		last = at
	}
	return time.Duration(max(longest, end-last))
}

func answers(calls []Call) []int64 {
	var all []int64
	for _, c := range calls {
		if c.Ended != 0 {
			all = append(all, c.Ended)
		}
	}
	slices.Sort(all)
	return all
}

// Linearizable reports whether there is an order of all calls, each between its beginning and its
// end, in which every read returns the value of the write before it. It returns porcupine.Unknown
// after limit.
func Linearizable(calls []Call, limit time.Duration) porcupine.CheckResult {
	var all []porcupine.Operation
	for _, c := range calls {
		end := c.Ended
		if end == 0 {
			if c.Kind == Read {
				continue // its value was never seen
			}
			end = math.MaxInt64
		}
		all = append(all, porcupine.Operation{ClientId: c.Worker, Input: c, Output: c.Value, Call: c.Begun, Return: end})
	}
	return porcupine.CheckOperationsTimeout(registers(), all, limit)
}

// registers returns a model with one register per key. Each key is checked separately.
func registers() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, o := range all {
				key := o.Input.(Call).Key
				byKey[key] = append(byKey[key], o)
			}
			var parts [][]porcupine.Operation
			for _, part := range byKey {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			c := input.(Call)
			if c.Kind == Write {
				return true, c.Value
			}
			return state == output, state
		},
	}
}
