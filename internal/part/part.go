// Package part says what a part of a move is: all that the program knows of one kind of thing that a move takes along. The
// packages of the parts (pdb, storage, sets, names, gates) fill it in, and package parts lists them. It is pure: it has no
// client and no clock.
package part

import "github.com/stsmigrate/stsmigrate/plans"

// Part is the faces of a part. A nil field means nothing.
type Part struct {
	Name plans.Part
	// Rights lists what the steps of a plan need on a side, in every direction.
	Rights func(*plans.Plan, plans.Side) []Right
	// Marks lists the writes on a side before the first step of a leg, by which a late write of another process fails.
	Marks func(*plans.Plan, plans.Leg, plans.Side) []Write
	// Writes lists the writes of a step to the objects of the part, as far as the plan alone tells them.
	Writes func(*plans.Plan, plans.Leg, plans.Step) []Write
}
