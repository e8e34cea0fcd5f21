package simulation

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/internal/tally"
)

// smallWorld is a world that is explored, and what may happen in it.
type smallWorld struct {
	name    string
	options options
	limits  limits
	large   bool // it has more than manyStates
}

// smallWorlds lists the worlds whose states are explored. Those of one ordinal to which nothing happens are explored whole in
// every run, but for the one that has most states.
func smallWorlds() []smallWorld {
	var out []smallWorld
	for _, mode := range modes() {
		// The controllers of each of two clusters take their time, whatever those of the other do.
		onTwo := mode == plans.Reimport
		add := func(name string, ordinals, d, window int32, l limits) *smallWorld {
			sc := threeOrdinals(mode)
			sc.Ordinals, sc.D, sc.Window, sc.Budget = ordinals, d, window, maxUnavailable(intstr.FromInt32(d))
			out = append(out, smallWorld{name: name + ", " + string(mode), options: sc, limits: l})
			return &out[len(out)-1]
		}
		add("one ordinal", 1, 1, 1, limits{})
		add("one ordinal, a delayed write and a rival", 1, 1, 1, limits{delays: 1, rivals: 1})
		add("one ordinal, a death and a delayed write", 1, 1, 1, limits{deaths: 1, delays: 1})
		add("one ordinal, a death and an abort", 1, 1, 1, limits{deaths: 1, returns: 1})
		add("one ordinal, two deaths", 1, 1, 1, limits{deaths: 2})
		add("two ordinals", 2, 1, 1, limits{})
		add("two ordinals, a delayed write", 2, 1, 1, limits{delays: 1})
		add("two ordinals, a death", 2, 1, 1, limits{deaths: 1})
		add("two ordinals at once, an abort", 2, 2, 2, limits{returns: 1}).large = onTwo
		add("two ordinals at once, a rival", 2, 2, 2, limits{rivals: 1})
		add("one ordinal, an abort that is turned", 1, 1, 1, limits{returns: 1, turns: 1})
		add("two ordinals at once, an abort that is turned twice", 2, 2, 2, limits{returns: 2, turns: 1}).large = true
		add("three ordinals", 3, 1, 1, limits{})
		add("three ordinals, two at once, a rival", 3, 2, 2, limits{rivals: 1}).large = onTwo
		remembers := func(name string, ordinals, d, window int32, l limits) *smallWorld {
			small := add(name+", engines with memory", ordinals, d, window, l)
			small.options.Remembers = true
			return small
		}
		remembers("one ordinal", 1, 1, 1, limits{})
		remembers("one ordinal, a delayed write and a rival", 1, 1, 1, limits{delays: 1, rivals: 1}).large = true
		remembers("two ordinals", 2, 1, 1, limits{}).large = true
		remembers("two ordinals, a rival", 2, 1, 1, limits{rivals: 1}).large = true
		remembers("two ordinals at once, an abort that is turned", 2, 2, 2, limits{returns: 1, turns: 1}).large = true
	}
	return out
}

// someStates is how many states of a world are explored where not all are, and manyStates is more than any world has
// that is not large. A state takes some 1 ms and, until it was gone on from, 10 kB.
const someStates, manyStates = 1500, 2_000_000

// Every order in which controllers and processes act leads to an end, and no invariant breaks on the way. A run
// explores three worlds whole, and the first states of another one every day; SIM_LONG explores all worlds, and whole but
// for the large ones.
func TestEveryStateOfASmallWorldIsSafe(t *testing.T) {
	t.Parallel()
	all := smallWorlds()
	tally.Add(tally.Line{Part: "states", Of: len(all)})
	for k, small := range all {
		most := manyStates
		whole := small.limits == (limits{}) && small.options.Ordinals == 1 && (!small.options.Remembers || small.options.Mode == plans.Rebind)
		switch {
		case long() && !everyCase.plays(k):
			continue
		case long(), whole:
		case k != day%len(all):
			continue
		default:
			most = someStates
		}
		t.Run(small.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			x := explore(t.Context(), newWorld(small.options), small.limits, most)
			fmt.Printf("%s: %d states, %d to go on from, ends %v\n", small.name, x.count, len(x.next), x.ends)
			tally.Add(tally.Line{Part: "states", World: small.name, Number: x.count, Whole: x.complete(), Failed: len(x.found) > 0, Seconds: time.Since(began).Seconds()})
			for _, found := range x.found {
				t.Error(found)
			}
			if most == manyStates && !small.large && !x.complete() {
				t.Error("not every state was explored")
			}
		})
	}
}

// A process that remembers what it has looked at writes it without another look at the journal. So a takeover fences what that
// may be before it does anything else (S9). No engine without memory shows that it did not.
func TestABatchThatIsRememberedIsFenced(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		sc := threeOrdinals(mode)
		sc.Ordinals, sc.Remembers = 2, true
		x := explore(t.Context(), newWorld(sc), limits{rivals: 1}, 400)
		for _, found := range x.found {
			t.Errorf("%s: %s", mode, found)
		}
	}
}
