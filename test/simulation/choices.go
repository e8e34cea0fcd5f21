package simulation

import "iter"

// choices are the ways in which a controller can choose among what it has to do. A controller goes through its objects
// in an order, and acts on the first that asks for it. Of all orders only those matter that begin with another object
// to act on, so each of these objects comes first once.
type choices struct {
	made []choice // in the order in which they are made
	at   int
	// repeated reports that this way does what an earlier one did.
	repeated bool
}

// choice is which of a number of things comes first, and which of them the controller acted on: none before it did.
type choice struct{ first, acted, of int }

// none is what a controller acted on that has acted on nothing.
const none = -1

// choose makes the next choice: that of the last time, or the first one.
func (c *choices) choose(of int) *choice {
	if c.at == len(c.made) {
		c.made = append(c.made, choice{acted: none, of: of})
	}
	c.at++
	return &c.made[c.at-1]
}

// next goes on to another way. It reports whether there is one.
func (c *choices) next() bool {
	c.at, c.repeated = 0, false
	for k := len(c.made) - 1; k >= 0; k-- {
		if last := c.made[k]; last.acted >= last.first && last.acted+1 < last.of {
			c.made = append(c.made[:k], choice{first: last.acted + 1, acted: none, of: last.of})
			return true
		}
	}
	return false
}

// shuffle goes through items in a random order, or in one of those that choices are made among, so that no code can
// rely on it.
func shuffle[T any](w *world, items []T) iter.Seq[T] {
	if w.choices == nil {
		w.rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	return func(yield func(T) bool) {
		if w.choices == nil {
			for _, item := range items {
				if !yield(item) {
					return
				}
			}
			return
		}
		k := w.choices.at
		first := w.choices.choose(len(items)).first
		for n := range items {
			at := (first + n) % len(items)
			if !yield(items[at]) {
				w.choices.made[k].acted = at
				w.choices.repeated = w.choices.repeated || at < first
				return
			}
		}
	}
}

// chance reports whether something happens that does so one time of a number, or may happen.
func (w *world) chance(of int) bool {
	if w.choices == nil {
		return w.rng.IntN(of) == 0
	}
	c := w.choices.choose(2)
	c.acted = c.first
	return c.first == 0
}
