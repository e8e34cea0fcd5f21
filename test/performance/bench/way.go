package main

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
	"github.com/stsmigrate/stsmigrate/test/internal/fixture"
)

// way is how a set is moved.
type way struct {
	ordinals, window int32
	within           bool // between two namespaces of one cluster, and not between two clusters
	byHand           bool // with the script, and not with stsmigrate
	counted          bool // through proxies that count the requests
}

func (w way) String() string {
	text := fmt.Sprintf("%d ordinals, %s, w = %d", w.ordinals, w.places(), w.window)
	if w.byHand {
		text += ", by hand"
	}
	if w.counted {
		text += ", counted"
	}
	return text
}

func (w way) places() string {
	if w.within {
		return "one cluster"
	}
	return "two clusters"
}

// namespace returns the name of a namespace for one move only.
func (w way) namespace() string {
	name := fmt.Sprintf("n%d-w%d", w.ordinals, w.window)
	for _, p := range []struct {
		is   bool
		name string
	}{{w.within, "-within"}, {w.byHand, "-by-hand"}, {w.counted, "-counted"}} {
		if p.is {
			name += p.name
		}
	}
	return name
}

// set returns the set that is moved, as it is on the source.
func (w way) set() fixture.Set {
	return fixture.Set{Namespace: w.namespace(), Replicas: w.ordinals, Claims: []string{"data"}, Budget: w.window}
}

// arrived returns the set as it is on the destination.
func (w way) arrived() fixture.Set {
	set := w.set()
	if w.within {
		set.Namespace += "-new"
	}
	return set
}

// ways returns the moves of a run, in their order. The order favours the script: the first move
// finds cold caches, and the second finds warm ones.
func ways(ordinals, large int32) []way {
	out := []way{
		{ordinals: ordinals, window: 1},
		{ordinals: ordinals, window: 1, byHand: true},
		{ordinals: ordinals, window: 3},
		{ordinals: ordinals, window: 1, within: true},
		{ordinals: ordinals, window: 3, within: true},
	}
	for _, n := range []int32{ordinals, large} {
		for _, within := range []bool{false, true} {
			for _, window := range []int32{1, 3} {
				out = append(out, way{ordinals: n, window: window, within: within, counted: true})
			}
		}
	}
	return out
}

// destination returns the cluster to which the set moves. It moves from the cluster east.
func (b *bench) destination(w way) *cluster.Cluster {
	if w.within {
		return b.bed.East
	}
	return b.bed.West
}
