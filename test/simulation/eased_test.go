package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A wave that waits for its user is eased once: its sets are pinned no more, so that a template rolls, and what waits
// writes nothing.
func TestAWaveThatWaitsForItsUserIsEasedOnce(t *testing.T) {
	for _, mode := range modes() {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(apart(threeOrdinals(mode)))
			r, e := w.begin(t, plans.Move)
			w.until(t, r, e, plans.Relax)
			w.until(t, r, e, plans.Tighten)
			w.rest()
			if w.pinned() == 0 {
				t.Error("no set is pinned while a wave is about to leave")
			}
			w.upgrade(plans.Source, "db:2")
			p := carried(t, w, r, e)
			p.after(time.Minute)
			w.rest()
			if n := w.pinned(); n > 0 || w.images() == "" {
				t.Errorf("%s: %d sets are pinned while the user is asked", mode, n)
			}
			p.after(time.Minute) // in which it notes why it waits
			before := w.version()
			if got, over := p.after(time.Minute); over {
				t.Errorf("%s: %+v", mode, got)
			}
			if now := w.version(); now != before {
				t.Errorf("%s: something is written in a minute in which nothing happened (%v, %v)", mode, before, now)
			}
			w.upgrade(plans.Destination, "db:2")
			if got := p.rests(t); got.Outcome != plans.Moved || got.err != nil {
				t.Errorf("%s: %+v", mode, got)
			}
			unbroken(t, w)
		})
	}
}

// pinned counts the sets that are pinned.
func (w *world) pinned() (n int) {
	for _, side := range plans.Sides() {
		at := w.plan.On(side)
		if set, there := get[*appsv1.StatefulSet](w.on[side], at.Namespace, at.Name); there && set.Annotations[plans.PinnedAnnotation] != "" {
			n++
		}
	}
	return n
}
