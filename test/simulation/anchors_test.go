package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// elsewhere counts the ordinals that by the timeline came to another node than their places were on.
func elsewhere(t *testing.T, w *world, to plans.Side) (n int) {
	t.Helper()
	placesRecorded(t, w, to)
	for _, wave := range w.journal.Timeline.Waves {
		for k := range wave.Nodes {
			if wave.To == to && wave.Places[k] != wave.Nodes[k][1] {
				n++
			}
		}
	}
	return n
}

// anchors lists those on a side that are not being deleted.
func (w *world) anchors(side plans.Side) []*corev1.Pod {
	return slices.DeleteFunc(w.placeholders(side), func(p *corev1.Pod) bool { return !anchor(p) || p.DeletionTimestamp != nil })
}

// Of many nodes alike, the pod of an ordinal goes to the one where its place is warm.
func TestAnOrdinalGoesWhereItsPlaceIs(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for _, sc := range []options{threeOrdinals(mode), inWaves(mode)} {
				t.Run(fmt.Sprintf("%s, %s, windows of %d", mode, direction, max(1, sc.Window)), func(t *testing.T) {
					t.Parallel()
					first := readyFor(t, placed(sc, plans.Warm), direction)
					first.checked = false
					for seed := range uint64(4) {
						w := first.fork(seed)
						w.toTheEnd(t, direction)
						unbroken(t, w)
						if n := elsewhere(t, w, w.origin(direction).Other()); n > 0 {
							t.Errorf("seed %d: %d ordinals went to another node than that of their place", seed, n)
						}
						if left := slices.Concat(w.anchors(plans.Source), w.anchors(plans.Destination)); len(left) > 0 {
							t.Errorf("seed %d: %s is left", seed, left[0].Name)
						}
					}
				})
			}
		}
	}
}

// An anchor is a convenience: where none can be had, the ordinals leave without, and it is not asked for again and again.
func TestAnOrdinalGoesWithoutItsAnchor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*options)
		f      fault
		made   int // how many are made at most
	}{
		"it is refused":          {change: func(*options) {}, f: refused409},
		"its webhook fails":      {change: func(*options) {}, f: refused500},
		"its node has no slot":   {change: func(sc *options) { sc.Slots = 1 }, made: 1},
		"its node has just that": {change: func(sc *options) { sc.Slots = 2 }, made: 3},
	} {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for seed := range uint64(4) {
				sc := placed(threeOrdinals(plans.Reimport), plans.Warm)
				sc.Seed = seed
				c.change(&sc)
				w := readyFor(t, sc, direction)
				w.checked = false
				r, asked := w.process(), 0
				r.at = func(int) fault {
					if !strings.HasSuffix(r.now.name, "-anchor") || c.f == "" {
						return ""
					}
					asked++
					return c.f
				}
				before := len(w.acts)
				got, err := r.run(t.Context(), direction, nil)
				w.rest()
				made := 0
				for _, one := range w.acts[before:] {
					if one.verb == "create" && strings.HasSuffix(one.name, "-anchor") {
						made++
					}
				}
				if err != nil || got.kind != engine.Finished || asked > 1 || c.f == "" && made != c.made {
					t.Errorf("%s, %s, seed %d: %s (%v), asked %d times, %d were made", name, direction, seed, got, err, asked, made)
				}
				unbroken(t, w)
			}
		}
	}
}

// fill lets other pods take the slots of a node that are free.
func (w *world) fill(t *testing.T, side plans.Side, node string) {
	t.Helper()
	n, _ := get[*corev1.Node](w.on[side], "", node)
	for k := 0; !w.taken(w.on[side], n, &corev1.Pod{}); k++ {
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: fmt.Sprintf("faster-than-%d", k)}, Spec: corev1.PodSpec{NodeName: node}}
		must(w.on[side].Create(t.Context(), other))
	}
}

// At the pod limit of its node, an ordinal whose slot was taken by another pod gets that of its anchor (S28).
func TestAnAnchorGivesItsSlotAway(t *testing.T) {
	t.Parallel()
	played := 0
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			for seed := range uint64(6) {
				sc := placed(threeOrdinals(mode), plans.Warm)
				sc.Slots, sc.Nodes, sc.Spread, sc.Seed = 3, 5, false, seed
				w := readyFor(t, sc, direction)
				w.checked, w.foreign = false, true
				to := w.origin(direction).Other()
				taken := false
				got, err := w.process().run(t.Context(), direction, func(engine.Progress) bool {
					for _, a := range w.anchors(to) {
						o := ordinalOf(strings.TrimSuffix(a.Name, "-anchor"))
						if taken || a.Spec.NodeName == "" || w.place(to, o) != nil || w.pod(to, o) != nil {
							continue
						}
						taken = true
						w.onNodes(to, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = n.Name != a.Spec.NodeName })
						w.fill(t, to, a.Spec.NodeName)
						break
					}
					return false
				})
				if err != nil {
					t.Fatalf("%s, %s, seed %d: %s (%v)", mode, direction, seed, got, err)
				}
				if taken {
					played++
				}
				unbroken(t, w)
				w.helped(t, direction, func() {
					if down := w.plan.Count - int32(w.up(plans.Source)+w.up(plans.Destination)); down > 0 {
						t.Errorf("%s, %s, seed %d: %d are down, and %d anchors have their slots: %s", mode, direction, seed, down, len(w.anchors(to)), got)
					}
					w.onNodes(to, func(_ int, n *corev1.Node) { n.Spec.Unschedulable = false })
				})
			}
		}
	}
	if played < 12 {
		t.Errorf("only %d times a slot was taken", played)
	}
}

// A pod of somebody else with the name of an anchor is not touched, and the ordinal goes without one.
func TestAPodThatIsNoAnchorIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(placed(threeOrdinals(mode), plans.Warm))
		w.foreign = true
		theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: green, Name: plans.Anchor(w.plan, plans.Destination, 2)}}
		must(w.on[plans.Destination].Create(t.Context(), theirs))
		got, err := w.process().run(t.Context(), plans.Move, nil)
		if err != nil || got.kind != engine.Finished {
			t.Errorf("%s: %s (%v)", mode, got, err)
		}
		if _, there := get[*corev1.Pod](w.on[plans.Destination], green, theirs.Name); !there {
			t.Error("it was deleted")
		}
		unbroken(t, w)
	}
}

// A place that is lost takes its anchor with it: no ordinal is drawn to where its place was.
func TestAnAnchorIsWhereThePlaceIs(t *testing.T) {
	t.Parallel()
	first := readyFor(t, placed(threeOrdinals(plans.Reimport), plans.Warm), plans.Move)
	first.checked = false
	for name, loses := range lost() {
		for seed := range uint64(4) {
			w := first.fork(seed)
			w.foreign = true
			times := w.losing(t, loses)
			if n := elsewhere(t, w, plans.Destination); times != 2 || n > 0 {
				t.Errorf("%s, seed %d: lost %d times, and %d ordinals went elsewhere", name, seed, times, n)
			}
			unbroken(t, w)
		}
	}
}

// losing moves the set while two places are lost that have their anchors already, and returns how many were.
func (w *world) losing(t *testing.T, loses func(*world, plans.Side, *corev1.Pod)) (times int) {
	t.Helper()
	e, err := w.process().takeOver(t.Context(), plans.Move)
	if err != nil {
		t.Fatal(err)
	}
	e.Now = w.clock
	for range 2000 {
		p, err := e.Advance(t.Context())
		switch {
		case err != nil || p.Kind == engine.Blocked:
			t.Fatalf("seed %d: %+v, %v", w.options.Seed, p, err)
		case p.Kind == engine.Finished:
			return times
		}
		w.rest()
		for _, a := range w.anchors(plans.Destination) {
			o := ordinalOf(strings.TrimSuffix(a.Name, "-anchor"))
			if place := w.place(plans.Destination, o); times < 2 && a.Spec.NodeName != "" && place != nil && w.slice(plans.Source).Has(o) {
				times++
				loses(w, plans.Destination, place)
			}
		}
	}
	t.Fatal("it never ends")
	return times
}

// An anchor keeps no slot of a quota from the pod of its ordinal: if that is not made, the anchor goes (S28).
func TestAnAnchorGoesWhereItsPodIsNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(placed(threeOrdinals(plans.Reimport), plans.Warm))
	e, err := w.process().takeOver(t.Context(), plans.Move)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	e.Now = func() time.Time { return now }
	for range 2000 {
		p, err := e.Advance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w.slice(plans.Destination).Has(2) && w.pod(plans.Destination, 2) == nil {
			break // its controller does not get to it
		}
		if !w.slice(plans.Destination).Has(2) || p.Kind == engine.Waiting {
			w.rest()
		}
	}
	for k, want := range []int{1, 1, 1, 0} {
		if _, err := e.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := len(w.anchors(plans.Destination)); left != want {
			t.Errorf("at %d: %d anchors, expected %d", k, left, want)
		}
		now = now.Add(6 * time.Second)
	}
	unbroken(t, w)
}
