// Package parts lists the parts of a move. What lists rights or writes, or asks what is to be marked, goes through them: a new
// part is one package and one row.
package parts

import (
	"slices"

	"github.com/stsmigrate/stsmigrate/internal/dns"
	"github.com/stsmigrate/stsmigrate/internal/gates"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/placeholder"
	"github.com/stsmigrate/stsmigrate/internal/sets"
	"github.com/stsmigrate/stsmigrate/pdb"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// All returns the parts, in the order in which a step writes to them. What ends a plan goes the other way.
func All() []part.Part {
	return []part.Part{sets.Part(), pdb.Part(), storage.Part(), placeholder.Part(), gates.Part(), dns.Part()}
}

// Rights lists what carrying a plan out needs on one side, abort and finalize included, except for the rights
// to the records of the plan. It has no wildcards, and no right to write a pod of a
// set.
func Rights(p *plans.Plan, side plans.Side) (out []part.Right) {
	for _, of := range All() {
		out = append(out, of.Rights(p, side)...)
	}
	return out
}

// Marks lists the writes to the objects of the parts before the first step of a leg.
func Marks(p *plans.Plan, l plans.Leg) (out []part.Write) {
	for _, side := range plans.Sides() {
		for _, of := range All() {
			if of.Marks != nil {
				out = append(out, of.Marks(p, l, side)...)
			}
		}
	}
	return out
}

// Writes lists the writes of a step in their order.
func Writes(p *plans.Plan, l plans.Leg, s plans.Step) (out []part.Write) {
	all := All()
	if s.Op.Closes() {
		slices.Reverse(all)
	}
	for _, of := range all {
		out = append(out, of.Writes(p, l, s)...)
	}
	return out
}
