package clusters

// terms are on what terms a client may answer a read with what is kept, beyond half a second (FreshFor). They are of the
// client and not of a read: a client that keeps nothing has none. A live read (reads.Live) is on no terms.
type terms struct{ watched, specOnly, mayBeMissing bool }

func (t terms) and(o terms) terms {
	return terms{t.watched || o.watched, t.specOnly || o.specOnly, t.mayBeMissing || o.mayBeMissing}
}

// Watched returns clients for checks that warn early, while the looks decide: an answer of the last seconds counts, if a
// watch would have reported a change of the object.
func (c Clusters) Watched() Clusters { return c.on(terms{watched: true}) }

// SpecOnly returns clients of which the caller uses the spec of what it reads alone: an answer counts as long as a watch
// reports no other generation of the object.
func (c Clusters) SpecOnly() Clusters { return c.on(terms{specOnly: true}) }

// MayBeMissing returns clients for objects that the caller is about to create if they do not exist, or asks for again
// before it acts. A watch that has reported all that there is may then answer that there is none: if it is behind, the
// creation is refused.
func (c Clusters) MayBeMissing() Clusters { return c.on(terms{mayBeMissing: true}) }

// SpecOnly is that of Clusters.
func (w Pair) SpecOnly() Pair { return Pair{w.Plan, w.On.SpecOnly()} }

// MayBeMissing is that of Clusters.
func (w Pair) MayBeMissing() Pair { return Pair{w.Plan, w.On.MayBeMissing()} }

// on returns clients on these terms too.
func (c Clusters) on(also terms) Clusters {
	out := make(Clusters, len(c))
	for side, from := range c {
		if keeping, ok := from.(keepingClient); ok {
			keeping.terms = keeping.terms.and(also)
			from = keeping
		}
		out[side] = from
	}
	return out
}
