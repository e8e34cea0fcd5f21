package plans

import "testing"

// A leg that cannot be one of its plan is refused when it is read, so that no step is counted from it.
func TestALegIsOneOfItsPlan(t *testing.T) {
	p := &Plan{Start: 2, Count: 5, Window: 2}
	move := Leg{Direction: Move, First: 1, Lowest: 2, End: 7}
	abort, finalize := move, move
	abort.Direction, abort.Lowest = Abort, 4
	finalize.Direction, finalize.Lowest = Finalize, 7
	for what, leg := range map[string]Leg{"move": move, "abort": abort, "finalize": finalize} {
		if err := leg.Validate(p); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, spoil := range map[string]func(*Leg){
		"no direction":                       func(l *Leg) { l.Direction = "" },
		"another direction":                  func(l *Leg) { l.Direction = "sideways" },
		"step 0":                             func(l *Leg) { l.First = 0 },
		"a step beyond every plan":           func(l *Leg) { l.First = AllSteps/2 + 1 },
		"an ordinal below the plan":          func(l *Leg) { l.Lowest = 1 },
		"an ordinal above the plan":          func(l *Leg) { l.End = 8 },
		"a range that ends before it begins": func(l *Leg) { l.Lowest, l.End = 5, 4 },
		"a head below 0":                     func(l *Leg) { l.Head = -1 },
		"a head wider than the window":       func(l *Leg) { l.Head = 3 },
		"an abort that ends in a split":      func(l *Leg) { l.Direction, l.End = Abort, 6 },
		"a finalize with ordinals to move":   func(l *Leg) { l.Direction = Finalize },
	} {
		l := move
		spoil(&l)
		if l.Validate(p) == nil {
			t.Errorf("%s: %+v is accepted", what, l)
		}
	}
}
