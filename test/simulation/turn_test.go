package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// toward runs processes towards a direction, turned if the plan is on another one, until the world has made a number of
// writes in all, or to the end: then that number is 0. It reports whether the plan took the direction.
func (w *world) toward(t *testing.T, direction plans.Direction, writes int, f fault) bool {
	t.Helper()
	for range 20 {
		r := w.process()
		r.turns = direction == plans.Move
		r.at = func(n int) fault {
			if writes > 0 && n >= writes {
				return f
			}
			return ""
		}
		got, err := r.run(t.Context(), direction, nil)
		switch {
		case r.dead && writes > 0:
			unbroken(t, w)
			return true
		case reasons.Of(err) == reasons.DirectionImpossible, reasons.Of(err) == reasons.PlanEnded:
			if parted := w.journal.Parted(w.plan); parted == "" && !w.journal.Ended() {
				t.Fatalf("seed %d: %s is refused, and nothing was deleted: %v", w.options.Seed, direction, err)
			}
			return false
		case r.dead || errors.Is(err, errDead):
			continue
		case err != nil || got.kind != engine.Finished:
			t.Fatalf("seed %d: %s ended with %q (%v); journal: %+v\n%s", w.options.Seed, direction, got, err, w.journal, strings.Join(w.trail[max(0, len(w.trail)-40):], "\n"))
		}
		unbroken(t, w)
		return true
	}
	t.Fatal("no process lives long enough")
	return false
}

// A plan can be turned at every write, as often as its user likes: to the source, to the destination again, and so on.
// Every time a process dies at the write where the plan is turned.
func TestAPlanThatIsTurnedAgainAndAgainEndsWhereItIsSent(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(25, 4000)
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drawn(t, "turns", from, to, 4000)
			first := newWorld(sc)
			first.app.again = true // a wave that turns twice is asked twice
			want := goldenOf(t, first.fork(0), journey{plans.Move, plans.Finalize})
			moved := goldenOf(t, first.fork(0), journey{plans.Move})
			for seed := from; seed <= to; seed++ {
				rng := rand.New(rand.NewPCG(seed, 11))
				w := first.fork(seed)
				kinds := []fault{crashBefore, crashAfter}
				legs, direction := []string{}, plans.Move
				w.toward(t, direction, 1+rng.IntN(moved.writes), kinds[rng.IntN(2)])
				for range 1 + rng.IntN(6) {
					if direction = plans.Abort; w.journal.Leg.Direction != plans.Move {
						direction = plans.Move
					}
					at := w.writes + 1 + rng.IntN([]int{4, 25, 80}[rng.IntN(3)])
					legs = append(legs, fmt.Sprintf("%s until write %d", direction, at))
					if !w.toward(t, direction, at, kinds[rng.IntN(2)]) {
						break
					}
				}
				end := want.end
				if w.journal.Leg.Direction == plans.Abort && (w.journal.Parted(w.plan) != "" || w.journal.Ended() || rng.IntN(2) == 0) {
					walk(t, w, plans.Abort, nil)
					end = w.start
				} else {
					w.toward(t, plans.Move, 0, "")
					if w.journal.Outcome != plans.Moved {
						t.Errorf("seed %d: turned to the destination: %+v", seed, w.journal)
					}
					walk(t, w, plans.Finalize, nil)
				}
				cleanEnd(t, w, end)
				if t.Failed() {
					t.Fatalf("that was seed %d: %q", seed, legs)
				}
			}
		})
	}
}

// From each write of a Move and each write of the abort that follows there is a way to the destination again.
func TestAnAbortIsTurnedAtEveryWrite(t *testing.T) {
	t.Parallel()
	for name, sc := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			first.app.again = true // a wave that turns twice is asked twice
			want := goldenOf(t, first.fork(0), journey{plans.Move, plans.Finalize})
			moved := goldenOf(t, first.fork(0), journey{plans.Move})
			for n := 3; n <= moved.writes; n++ {
				if !long() && (n+day)%19 != 0 && n != moved.writes {
					continue
				}
				w := first.fork(uint64(n))
				if n < moved.writes {
					if !dieAt(t, w, n, crashAfter) {
						continue
					}
				} else {
					walk(t, w, plans.Move, nil)
				}
				golden := goldenOf(t, w.fork(0), journey{plans.Abort})
				for m := w.writes; m < golden.writes; m++ {
					if !long() && (!whole(name) || n != moved.writes) && (m+n+day)%7 != 0 {
						continue
					}
					back := w.fork(uint64(n + m))
					back.toward(t, plans.Abort, m, []fault{crashBefore, crashAfter}[m%2])
					if !back.toward(t, plans.Move, 0, "") {
						continue // something was deleted by then
					}
					walk(t, back, plans.Finalize, nil)
					cleanEnd(t, back, want.end)
					if t.Failed() {
						t.Fatalf("that was: aborted at write %d of %d, turned at write %d of %d", n, moved.writes, m, golden.writes)
					}
				}
			}
		})
	}
}

// A wave of an abort that cannot come up where it came from goes back to where it was up: its claim is refused there, or
// its pod does not start.
func TestAWaveThatCannotComeBackReturns(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for seed := range uint64(8) {
			sc := threeOrdinals(mode)
			sc.Seed = seed
			w := newWorld(sc)
			walk(t, w, plans.Move, nil)
			w.rest()
			w.foreign = true
			r, quota := w.process(), mode == plans.Rebind && seed%4 >= 2 // between two clusters a claim that is refused keeps its ordinal up
			crashes := func(engine.Progress) bool {
				if !quota {
					w.crashesOnReturn()
				}
				return false
			}
			if quota {
				r.at = r.noClaimOnReturn
			}
			got, err := r.run(t.Context(), plans.Abort, crashes)
			if w.rest(); got.kind == engine.Finished || ready(w.pod(plans.Source, 0)) || ready(w.pod(plans.Destination, 0)) {
				t.Fatalf("%s, seed %d: the abort does not wait: %s (%v)", mode, seed, got, err)
			}
			broken := seed%2 == 1 && !quota
			if broken { // another ordinal is down too: one that is down itself has nothing to lose
				w.crash(plans.Destination, 2)
			}
			w.toward(t, plans.Move, 0, "")
			if w.rest(); w.journal.Outcome != plans.Moved || !ready(w.pod(plans.Destination, 0)) {
				t.Errorf("%s, seed %d: turned to the destination: %+v", mode, seed, w.journal)
			}
			w.crashing = nil
			if broken {
				must(w.on[plans.Destination].Delete(t.Context(), clone(w.pod(plans.Destination, 2))))
				w.rest()
			}
			walk(t, w, plans.Abort, nil)
			cleanEnd(t, w, w.start)
		}
	}
}

// crashesOnReturn crashes ordinal 0 as soon as it is on the source again. It does so once.
func (w *world) crashesOnReturn() {
	if len(w.crashing) == 0 && w.pod(plans.Source, 0) != nil {
		w.crash(plans.Source, 0)
	}
}

// noClaimOnReturn is a fault: the source takes no claim once ordinal 0 has left the destination.
func (r *process) noClaimOnReturn(int) fault {
	if r.now.kind == "PersistentVolumeClaim" && r.now.namespace == blue && !r.w.slice(plans.Destination).Has(0) {
		return refused500
	}
	return ""
}
