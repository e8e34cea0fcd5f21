package simulation

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// up counts the ordinals that serve on a side.
func (w *world) up(side plans.Side) (n int32) {
	for o := range w.plan.Ordinals().All() {
		if w.available(side, o) {
			n++
		}
	}
	return n
}

// on returns a world whose ordinals are on the side that a direction leaves, with checks before every wave.
func readyFor(t *testing.T, sc options, direction plans.Direction) *world {
	t.Helper()
	w := newWorld(sc)
	w.checked = true
	if direction == plans.Abort {
		walk(t, w, plans.Move, nil)
		w.rest()
	}
	return w
}

// No ordinal that serves leaves for a side that takes none (S18), on either way. Once the side takes them again, or the user
// says so, the plan continues.
func TestNoOrdinalThatServesLeavesForASideThatTakesNone(t *testing.T) {
	t.Parallel()
	for _, sc := range []options{threeOrdinals(plans.Rebind), threeOrdinals(plans.Reimport), inWaves(plans.Rebind), inWaves(plans.Reimport)} {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, how := range shuts() {
				if how == noNodes && sc.Mode == plans.Rebind {
					continue // the nodes of both sides
				}
				for seed := range uint64(2) {
					sc.Seed = seed
					w := readyFor(t, sc, direction)
					from := w.origin(direction)
					open := w.close(from.Other(), how)
					w.rest()
					name := string(sc.Mode) + " " + string(direction) + ", " + string(how)
					got, err := w.process().run(t.Context(), direction, nil)
					w.rest()
					if got.kind != engine.Blocked || err != nil || w.up(from) != sc.Ordinals {
						t.Errorf("%s: %s (%v), and %d of %d serve where they were; expected it to be held", name, got, err, w.up(from), sc.Ordinals)
					}
					if direction == plans.Abort && !strings.Contains(got.reason, "--ignore ") {
						t.Errorf("%s: it does not say how to go on: %s", name, got.reason)
					}
					unbroken(t, w)
					open()
					w.rest()
					walk(t, w, direction, nil)
				}
			}
		}
	}
}

// origin is the side that a direction leaves.
func (w *world) origin(direction plans.Direction) plans.Side {
	if direction == plans.Abort {
		return plans.Destination
	}
	return plans.Source
}

// An ordinal that is down has nothing to lose: an abort goes on with it, and holds before the first one that serves.
func TestAnOrdinalThatIsDownLeavesForASideThatTakesNone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := readyFor(t, threeOrdinals(mode), plans.Abort)
		w.close(plans.Source, noPods)
		w.crash(plans.Destination, 0)
		w.rest()
		got, err := w.process().run(t.Context(), plans.Abort, nil)
		w.rest()
		if err != nil || w.slice(plans.Destination).Has(0) || w.up(plans.Destination) != 2 {
			t.Errorf("%s: %s (%v); the destination has %s, %d serve", mode, got, err, w.slice(plans.Destination), w.up(plans.Destination))
		}
		unbroken(t, w)
	}
}

// The user may let an abort go on although the source takes no ordinals.
func TestAnAbortGoesOnWithTheUsersWord(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := readyFor(t, threeOrdinals(mode), plans.Abort)
		open := w.close(plans.Source, noPods)
		if got, err := w.process().run(t.Context(), plans.Abort, nil); err != nil || got.kind != engine.Blocked {
			t.Errorf("%s: it is not held without the word: %s (%v)", mode, got, err)
		}
		r := w.process()
		r.word = plans.Assurance{Ignore: []string{"pod-accepted"}}
		if got, err := r.run(t.Context(), plans.Abort, nil); err != nil || w.slice(plans.Destination).Has(0) {
			t.Errorf("%s: it is held all the same: %s (%v)", mode, got, err)
		}
		open()
		w.rest()
		walk(t, w, plans.Abort, nil)
	}
}

// A process that dies after it has recorded that a wave leaves, and before that write, leaves a record that may be days old:
// the next one asks again.
func TestAWaveThatWasAnnouncedIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			w := readyFor(t, threeOrdinals(mode), direction)
			from := w.origin(direction)
			r := w.process()
			r.at = func(int) fault {
				if r.now.kind == "StatefulSet" && w.journal.Begun > w.journal.Done {
					if step, began, _ := w.journal.Next(w.plan); step.Op == plans.Shrink && began {
						return crashBefore
					}
				}
				return ""
			}
			_, _ = r.run(t.Context(), direction, nil) // it ends as a process that dies does
			if !r.dead {
				t.Fatal("it did not die")
			}
			w.close(from.Other(), noPods)
			got, err := w.process().run(t.Context(), direction, nil)
			if got.kind != engine.Blocked || err != nil || w.up(from) != 3 {
				t.Errorf("%s %s: %s (%v), %d of 3 serve where they were", mode, direction, got, err, w.up(from))
			}
			unbroken(t, w)
		}
	}
}

// images are the images that the ordinals run with.
func (w *world) images() string {
	var out []string
	for o := range w.plan.Ordinals().All() {
		for _, side := range plans.Sides() {
			if pod := w.pod(side, o); pod != nil {
				out = append(out, pod.Spec.Containers[0].Image)
			}
		}
	}
	return strings.Join(out, " ")
}

// No ordinal starts with an older template on data that a newer one has written (S18): after the move or in its middle, on
// either side and on both ways, and also if it is down. The plan is held with everything up, until the templates are alike
// or the user has said that the data may be used so.
func TestNoOrdinalStartsWithAnotherTemplateUnasked(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for name, c := range map[string]struct {
			moved     int // how many ordinals have moved before
			upgraded  plans.Side
			direction plans.Direction
			down      bool
		}{
			"the destination, after the move":               {3, plans.Destination, plans.Abort, false},
			"the destination, after the move, and it fails": {3, plans.Destination, plans.Abort, true},
			"the destination, in the middle":                {1, plans.Destination, plans.Abort, false},
			"the destination, and the move goes on":         {1, plans.Destination, plans.Move, false},
			"the source, and the move goes on":              {1, plans.Source, plans.Move, false},
			"the source, and the move turns back":           {1, plans.Source, plans.Abort, false},
		} {
			for seed := range uint64(2) {
				sc := threeOrdinals(mode)
				sc.Seed = seed
				w := newWorld(sc)
				w.moves(t, c.moved)
				w.rest()
				w.upgrade(c.upgraded, "db:2")
				if c.down {
					w.crash(plans.Destination, 0, 1, 2)
					w.rest()
				}
				// The sets may still be pinned from the last wave. A wave that waits lets them roll.
				if got, err := w.process().run(t.Context(), c.direction, nil); got.kind != engine.Waiting || err != nil {
					t.Errorf("%s, %s, seed %d: %s (%v)", mode, name, seed, got, err)
				}
				w.rest()
				before := w.images()
				got, err := w.process().run(t.Context(), c.direction, nil)
				w.rest()
				if got.kind != engine.Waiting || err != nil || w.images() != before {
					t.Errorf("%s, %s, seed %d: %s (%v); the images were %s, and are %s", mode, name, seed, got, err, before, w.images())
				}
				saysHowToGoOn(t, name, got.reason)
				unbroken(t, w)
				// Either way leads out.
				f := w.fork(seed)
				r := f.process()
				word := wordIn(got.reason, "--other-template ")
				r.word = plans.Assurance{OtherTemplate: word}
				if got, err := r.run(t.Context(), c.direction, nil); err != nil || !f.journal.Ended() && f.journal.Outcome != plans.Moved {
					t.Errorf("%s, %s: with the word %s: %s (%v)", mode, name, word, got, err)
				}
				unbroken(t, f)
				w.upgrade(c.upgraded.Other(), "db:2")
				if got, err := w.process().run(t.Context(), c.direction, nil); err != nil || got.kind != engine.Finished {
					t.Errorf("%s, %s: with the same template: %s (%v)", mode, name, got, err)
				}
				unbroken(t, w)
			}
		}
	}
}

// moves lets so many of three ordinals move. If it is all of them, the move ends.
func (w *world) moves(t *testing.T, ordinals int) {
	t.Helper()
	arrived := 0
	if got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
		if p.Kind == engine.Advanced && p.Step.Op == plans.Grow {
			arrived++
		}
		return ordinals < 3 && arrived == ordinals
	}); err != nil {
		t.Fatalf("%d of 3 ordinals do not move: %s (%v)", ordinals, got, err)
	}
}

// saysHowToGoOn checks that a reason names the two templates, and both ways on.
func saysHowToGoOn(t *testing.T, name, reason string) {
	t.Helper()
	for _, says := range []string{"].image: ", "db:2", "kubectl -n ", "--other-template "} {
		if !strings.Contains(reason, says) {
			t.Errorf("%s: it does not say %q: %s", name, says, reason)
		}
	}
}

// wordIn returns the word that a reason has for a flag.
func wordIn(reason, flag string) string {
	_, word, _ := strings.Cut(reason, flag)
	word, _, _ = strings.Cut(word, ")")
	return word
}

// The word is about two templates: it does not hold for those that come after.
func TestTheWordForATemplateHoldsForThatAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(threeOrdinals(plans.Reimport))
	walk(t, w, plans.Move, nil)
	w.rest()
	w.upgrade(plans.Destination, "db:2")
	held, _ := w.process().run(t.Context(), plans.Abort, nil)
	word := wordIn(held.reason, "--other-template ")
	w.upgrade(plans.Destination, "db:3")
	r := w.process()
	r.word = plans.Assurance{OtherTemplate: word}
	got, err := r.run(t.Context(), plans.Abort, nil)
	if got.kind != engine.Waiting || err != nil || !strings.Contains(got.reason, "db:3") || w.up(plans.Destination) != 3 {
		t.Errorf("%s (%v)", got, err)
	}
	unbroken(t, w)
}

// What the API server of the destination adds to a template is no difference, nor is a restart.
func TestWhatMakesNoOtherPodsHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		w.on[plans.Destination].defaults = func(set *appsv1.StatefulSet) {
			if set.Namespace == green {
				set.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
			}
		}
		walk(t, w, plans.Move, nil)
		w.rest()
		set, _ := get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
		next := clone(set)
		next.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		w.foreign = true
		must(w.on[plans.Destination].Update(t.Context(), next))
		w.rest()
		walk(t, w, plans.Abort, nil)
	}
}
