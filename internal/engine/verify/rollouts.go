package verify

import (
	"fmt"

	"github.com/stsmigrate/stsmigrate/plans"
)

// away counts the ordinals of the wave that are in neither range.
func (c *comparison) away() (n int32) {
	for o := range c.wave().All() {
		if !c.has(plans.Source, o) && !c.has(plans.Destination, o) {
			n++
		}
	}
	return n
}

// rollouts is S2 and S15 for the rolling updates of both sets: they are pinned while a wave is away, and not for longer. It
// is also S18: while waves move, both sets have one pod template, unless the user has said otherwise.
func (c *comparison) rollouts() {
	away := c.away() > 0
	for _, side := range plans.Sides() {
		set := c.sets[side]
		if set == nil {
			continue
		}
		object := named(set, side)
		_, noted := set.Annotations[plans.PinnedAnnotation]
		c.expect(!plans.PinChanged(set), "S12", object, "its updateStrategy was changed while it was pinned, by "+plans.Writer(set, "spec", "updateStrategy"),
			fmt.Sprintf("partition %d until the wave has arrived; what was set stays after that", plans.AboveAll))
		c.expect(!plans.PinLost(set), "S15", object, fmt.Sprintf("it has partition %d, and has lost the annotation %s", plans.AboveAll, plans.PinnedAnnotation), "its own partition; set it back")
		c.expect(!noted || c.mayBePinned(), "S15", object, "its rolling updates are pinned, and no wave is under way", "its own partition, which `resume` gives it back")
		if away && plans.Others(set, c.wave()) && !noted {
			c.expect(plans.Pinned(set), "S2", object, "a rolling update may take its pods down while ordinals are away", "a set that is pinned")
		}
	}
	if c.more && c.step.Moves() && c.journal.Assurances.OtherTemplate == "" {
		c.expect(c.facts.unlike == "", "S18", c.plan.On(plans.Destination).Set(), "its pod template is another one than that of the source: "+c.facts.unlike, "one template, apart from the patches of the plan")
	}
}

// mayBePinned reports whether the next step is between the Tighten and the Relax of a wave. A journal that was rebuilt knows
// nothing of a wave that had not left: then it is one of those before the first wave, or the first of the closing ones.
func (c *comparison) mayBePinned() bool {
	switch {
	case !c.more:
		return false
	case c.step.Op.Tightens():
		return c.began && !c.journal.Resting || c.journal.Unsure(c.step)
	}
	return !c.step.Op.Closes() || c.step.Op == plans.Retire
}
