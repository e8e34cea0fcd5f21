package gates

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// still is the look at a wave that would leave now.
func (b *bench) still(t *testing.T, want plans.Standing, words ...string) {
	t.Helper()
	b.Turn()
	s, err := b.Still(t.Context(), b.m)
	if err != nil || s.Standing != want {
		t.Fatalf("got %s (%s), %v; expected %s", s.Standing, s.Reason, err, want)
	}
	if s.Standing == plans.Before {
		if err := s.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range words {
		if !slices.Contains([]string{s.Reason}, w) {
			t.Errorf("got %q, expected %q", s.Reason, w)
		}
	}
}

func (b *bench) commands() (out []string) {
	for _, q := range b.fakePod.asked {
		out = append(out, q.Command[0])
	}
	b.fakePod.asked = nil
	return out
}

func (b *bench) asked(t *testing.T, want ...string) {
	t.Helper()
	if got := b.commands(); !slices.Equal(got, want) {
		t.Errorf("asked %q, expected %q", got, want)
	}
}

// A wave leaves on an answer of the last seconds, and of this process.
func TestAYesBeforeAWaveLeavesHasAnAge(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*bench)
		asks      bool
	}{
		"at once":                          {meanwhile: func(*bench) {}},
		"ten seconds later":                {meanwhile: func(b *bench) { b.fakePod.clock = b.fakePod.clock.Add(Validity) }},
		"later":                            {meanwhile: func(b *bench) { b.fakePod.clock = b.fakePod.clock.Add(Validity + 1) }, asks: true},
		"by a clock that was set back":     {meanwhile: func(b *bench) { b.fakePod.clock = b.fakePod.clock.Add(-time.Hour) }, asks: true},
		"after the budgets were opened":    {meanwhile: func(b *bench) { b.Void() }, asks: true},
		"by another process":               {meanwhile: func(b *bench) { next := New(b.plan, b.on); next.Prober = b.fakePod; b.Keeper = next }, asks: true},
		"by another one, as journaled":     {meanwhile: func(b *bench) { next := New(b.plan, b.on); next.Prober = b.fakePod; b.Keeper = next; b.journaled() }, asks: true},
		"by a check that took a long time": {meanwhile: func(b *bench) { b.Turn(); b.fakePod.clock = b.fakePod.clock.Add(time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := bare(t, drain(), pod("shop", "web-2", "True"))
			b.look(t, plans.Before)
			b.look(t, plans.After)
			b.asked(t, "drain")
			if name != "by a check that took a long time" {
				c.meanwhile(b)
				b.Turn()
			} else {
				c.meanwhile(b)
			}
			s, err := b.Still(t.Context(), b.m)
			if err != nil || (s.Standing == plans.Before) != c.asks || !c.asks && s.Standing != plans.After {
				t.Fatalf("%s (%s), %v; expected that it is asked again: %t", s.Standing, s.Reason, err, c.asks)
			}
			if !c.asks {
				return
			}
			b.fakePod.answer = Answer{Code: 1, Complaint: "it leads again"} // it has changed its mind
			if err := s.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.still(t, plans.During)
			b.asked(t, "drain")
		})
	}
}

// journaled is a yes in the journal, as an earlier release would have left it, and as this one might.
func (b *bench) journaled() {
	b.m.Passed = &plans.Passed{Seq: b.m.Seq, Gates: []string{"drain/2"}, At: []metav1.Time{{Time: b.fakePod.clock}}}
}

// asking makes the bench ask these gates in turn.
func (b *bench) asking(gates ...plans.Gate) *bench {
	b.plan.Gates = plans.GatesWithDefaults(gates)
	return b
}

func command(name string) plans.Gate {
	g := drain()
	g.Name, g.Exec = name, &plans.Exec{Command: []string{name}}
	return g
}

// Several gates that take long do not wait for one another for ever: each command and request is asked once more when
// the last gate has passed, and a Job is not.
func TestGatesThatTakeLongAreAskedOnceMore(t *testing.T) {
	b := bare(t, drain(), pod("shop", "web-2", "True")).asking(command("leader"), job(), command("behind"))
	b.look(t, plans.Before)
	b.look(t, plans.Before, "create Job")
	b.look(t, plans.Before, "start Job")
	for range 30 { // somebody looks all the time
		b.fakePod.clock = b.fakePod.clock.Add(3 * time.Second)
		b.look(t, plans.During)
	}
	b.ends(t, batchv1.JobComplete)
	b.look(t, plans.Before, "delete Job")
	b.fakePod.took = Validity // each command takes long, too
	b.look(t, plans.Before)
	b.asked(t, "leader", "behind")
	b.look(t, plans.Before, "gate leader of web-2: exec leader in pod web-2 of shop/web, once more after the others")
	b.look(t, plans.After)
	b.asked(t, "leader")
	b.still(t, plans.After)
	if b.theJob(t) != nil {
		t.Error("the Job was run once more")
	}

	b = bare(t, drain(), pod("shop", "web-2", "True")).asking(command("leader"), command("behind"))
	b.look(t, plans.Before)
	b.look(t, plans.Before)
	b.look(t, plans.After)
	b.asked(t, "leader", "behind") // quick ones are asked once
}

// A Job whose answer does not count is replaced, whatever it answers later.
func TestAJobThatWasAskedEarlierIsNotHeard(t *testing.T) {
	for name, c := range map[string]struct {
		ended     bool // before that
		meanwhile func(*bench)
	}{
		"the budgets were opened":                                    {false, func(b *bench) { b.Void() }},
		"the budgets were opened, and it has passed":                 {true, func(b *bench) { b.Void() }},
		"another process has taken over":                             {false, func(b *bench) { next := New(b.plan, b.on); next.Prober = b.fakePod; b.Keeper = next; b.m.Stamp.Epoch++ }},
		"another process has taken over at its end":                  {true, func(b *bench) { next := New(b.plan, b.on); next.Prober = b.fakePod; b.Keeper = next; b.m.Stamp.Epoch++ }},
		"nobody has looked at it for minutes":                        {true, func(b *bench) { b.fakePod.clock = b.fakePod.clock.Add(unwatched + time.Second) }},
		"nobody has looked at it for minutes, and it was made again": {true, func(b *bench) { b.fakePod.clock = b.fakePod.clock.Add(unwatched + time.Second); b.Void() }},
	} {
		t.Run(name, func(t *testing.T) {
			b := bare(t, job())
			b.look(t, plans.Before, "create Job")
			b.look(t, plans.Before, "start Job")
			if b.look(t, plans.During); c.ended {
				b.ends(t, batchv1.JobComplete)
			}
			first := b.theJob(t).UID
			c.meanwhile(b)
			b.look(t, plans.Before, "delete Job")
			if !c.ended { // it ended just before the deletion arrived, and its deletion takes a while
				if b.theJob(t) != nil {
					t.Fatal("the Job is still there")
				}
			}
			b.look(t, plans.Before, "create Job")
			if next := b.theJob(t); next == nil || next.UID == first && first != "" {
				t.Fatalf("there is %+v, expected another Job", next)
			}
			b.look(t, plans.Before, "start Job")
			b.look(t, plans.During)
			b.ends(t, batchv1.JobComplete)
			b.look(t, plans.Before, "delete Job")
			b.look(t, plans.After)
		})
	}
}

// The creation of an earlier question arrives late. Its Job is not the one that is asked for.
func TestALateCreationIsNotTheNewJob(t *testing.T) {
	b := bare(t, job())
	s, err := b.Look(t.Context(), b.m)
	if err != nil || s.Standing != plans.Before {
		t.Fatal(s, err)
	}
	b.Void()
	if err := s.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.look(t, plans.Before, "which was asked earlier, to ask again")
	b.look(t, plans.Before, "create Job")
	b.look(t, plans.Before, "start Job")
}
