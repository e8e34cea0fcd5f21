package wavecheck

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
)

// leg has three waves of one ordinal, of two steps each: Tighten and Shrink.
func leg() []plans.Step {
	var out []plans.Step
	for _, o := range []int32{2, 1, 0} {
		for _, op := range []plans.Op{plans.Tighten, plans.Shrink} {
			out = append(out, plans.Step{Seq: len(out) + 1, Op: op, Ordinals: plans.Slice{Start: o, Replicas: 1}})
		}
	}
	return out
}

// at returns the wave of a leg at a step.
func at(seq int) Wave {
	steps := leg()
	return Wave{Step: steps[seq-1], Leg: plans.Leg{Direction: plans.Move}, Next: func(seq int) (plans.Step, bool) {
		if seq > len(steps) {
			return plans.Step{}, false
		}
		return steps[seq-1], true
	}}
}

// A check of several waves that finds something is made again for the wave alone: what it found may be about a later one.
func TestAFindingAboutALaterWaveDoesNotBlockThisOne(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	for name, c := range map[string]struct {
		of   func(plans.Slice) bool // the ordinals that something is wrong with
		fail error
		bars bool
	}{
		"a later wave":             {of: func(s plans.Slice) bool { return s.Has(0) }},
		"a later wave is not read": {of: func(s plans.Slice) bool { return s.Has(0) }, fail: errors.New("refused")},
		"this one too":             {of: func(plans.Slice) bool { return true }, bars: true},
		"this one too is not read": {of: func(plans.Slice) bool { return true }, fail: errors.New("refused"), bars: true},
	} {
		k := Checks{paced: 1, pace: time.Second}
		var asked []string
		why, err := k.Bars(t.Context(), at(2), now, func(_ context.Context, about plans.Slice) (Answer, error) {
			if asked = append(asked, about.String()); !c.of(about) {
				return Answer{}, nil
			}
			if c.fail != nil {
				return Answer{}, c.fail
			}
			return Answer{Why: "its volume is in the way"}, nil
		})
		if bars := why != "" || err != nil; bars != c.bars {
			t.Errorf("%s: %q, %v, expected that it is barred: %t", name, why, err, c.bars)
		}
		if want := []string{"[0..2]", "[2]"}; !slices.Equal(asked, want) {
			t.Errorf("%s: asked about %v, expected %v", name, asked, want)
		}
	}
}

// While waves follow one another quickly, one check is about several. It holds for a few seconds and no longer, and for
// the way on which it was made.
func TestAWaveThatWasFoundFreeIsNotCheckedAgain(t *testing.T) {
	all := plans.Slice{Start: 0, Replicas: 3}
	for name, c := range map[string]struct {
		later time.Duration
		way   plans.Direction
		about plans.Slice
		asks  bool
	}{
		"at once":           {0, plans.Move, all, false},
		"five seconds":      {Validity, plans.Move, all, false},
		"later":             {Validity + 1, plans.Move, all, true},
		"on another way":    {0, plans.Abort, all, true},
		"of other ordinals": {0, plans.Move, plans.Slice{Start: 0, Replicas: 2}, true},
	} {
		for _, seq := range []int{1, 2} {
			then := time.Unix(1000, 0)
			k, asked := Checks{free: c.about, freeSince: then, leg: plans.Leg{Direction: c.way}}, make(chan bool, 1)
			why, err := k.Bars(t.Context(), at(seq), func() time.Time { return then.Add(c.later) }, func(context.Context, plans.Slice) (Answer, error) {
				asked <- true
				return Answer{}, nil
			})
			if k.answer != nil {
				<-k.answer // what Tighten has started
			}
			if asks := len(asked) > 0; err != nil || why != "" || asks != c.asks {
				t.Errorf("%s, step %d: %q, %v, asked %t, expected %t", name, seq, why, err, asks, c.asks)
			}
		}
	}
}

// One check is about as many waves as go while its result is valid.
func TestACheckIsAboutTheWavesThatGoWhileItIsValid(t *testing.T) {
	for name, c := range map[string]struct {
		pace time.Duration
		want string
	}{
		"the first wave":     {0, "[2]"},
		"a wave in an hour":  {time.Hour, "[2]"},
		"three in ten":       {3 * time.Second, "[2]"},
		"two in five":        {2500 * time.Millisecond, "[1..2]"},
		"more than there is": {time.Millisecond, "[0..2]"},
	} {
		k := Checks{pace: c.pace}
		if got := k.soon(at(1)).String(); got != c.want {
			t.Errorf("%s: %s, expected %s", name, got, c.want)
		}
	}
	var k Checks
	clock := time.Unix(1000, 0)
	for _, seq := range []int{1, 1, 3} {
		k.Reached(at(seq).Step, func() time.Time { return clock })
		clock = clock.Add(time.Second)
	}
	if k.pace != 2*time.Second {
		t.Errorf("the pace is %s, expected two seconds from one wave to the next", k.pace)
	}
}

// What bars a wave only while it serves lets the step be looked at, which knows whether it does. It is asked again for the
// wave alone, and does not count for the waves after it.
func TestWhatBarsOnlyWhatServesIsForTheLook(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	unfit := &plans.Unfit{Why: "no room"}
	k, asked := Checks{paced: 1, pace: time.Second}, 0
	ask := func(context.Context, plans.Slice) (Answer, error) {
		asked++
		return Answer{Unfit: unfit}, nil
	}
	for range 2 {
		if why, err := k.Bars(t.Context(), at(2), now, ask); why != "" || err != nil || k.Unfit(at(2).Step) != unfit || asked != 2 {
			t.Errorf("%q, %v, %v, asked %d times", why, err, k.Unfit(at(2).Step), asked)
		}
	}
	if k.Unfit(at(1).Step) != nil || k.Unfit(at(4).Step) != nil {
		t.Error("it is about another step")
	}
	if _, err := k.Bars(t.Context(), at(4), now, ask); err != nil || asked == 2 {
		t.Errorf("the next wave is not asked about: %v", err)
	}
	k = Checks{}
	if _, err := k.Bars(t.Context(), at(2), now, func(context.Context, plans.Slice) (Answer, error) { return Answer{}, nil }); err != nil || k.Unfit(at(2).Step) != nil {
		t.Errorf("nothing was found: %v, %v", k.Unfit(at(2).Step), err)
	}
}
