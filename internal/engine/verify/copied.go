package verify

import (
	"fmt"
	"slices"

	"github.com/stsmigrate/stsmigrate/plans"
)

// copied is the part of S18 about what pods name: an object is the same on both sides, or the user has let the ordinals
// start with the other one. What may not be read is said, and not guessed.
func (c *comparison) copied() {
	from := plans.Source
	if c.journal.Leg.Direction == plans.Abort {
		from = plans.Destination
	}
	c.report.Compared += c.facts.copied.Alike
	for _, f := range c.facts.copied.Differ {
		said := slices.Contains(c.journal.Assurances.OtherCopies, f.Word(from))
		c.expect(said, "S18", f.String(), f.Words(), fmt.Sprintf("the same on both sides; to give the source what the destination has: %s; the other way round: %s", f.Align(plans.Source), f.Align(plans.Destination)))
	}
	c.report.NotCompared = c.facts.copied.Unseen()
}
