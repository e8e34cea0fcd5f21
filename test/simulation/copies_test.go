package simulation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/wavecheck"
	"github.com/stsmigrate/stsmigrate/internal/preflight"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// rotate changes what pods name on a side, as a user does. The value says which time it is.
func (w *world) rotate(side plans.Side, kind, value string) {
	var next client.Object
	switch kind {
	case "Secret":
		o, _ := get[*corev1.Secret](w.on[side], w.namespace(side), setName)
		secret := clone(o)
		secret.Data = maps.Clone(secret.Data)
		secret.Data["key"] = []byte(canary + value)
		next = secret
	case "ConfigMap":
		o, _ := get[*corev1.ConfigMap](w.on[side], w.namespace(side), setName)
		config := clone(o)
		config.Data = map[string]string{"color": value}
		next = config
	}
	must(w.on[side].Update(context.TODO(), next))
}

// has reports whether the Secret or the ConfigMap of a side has a value.
func (w *world) has(side plans.Side, kind, value string) bool {
	switch kind {
	case "Secret":
		o, ok := get[*corev1.Secret](w.on[side], w.namespace(side), setName)
		return ok && bytes.Equal(o.Data["key"], []byte(canary+value))
	default:
		o, ok := get[*corev1.ConfigMap](w.on[side], w.namespace(side), setName)
		return ok && o.Data["color"] == value
	}
}

// What was rotated on either side, after the move or in its middle, reaches the other side or is known not to: no ordinal
// that serves leaves before it is the same on both sides, or before the user has said that it may differ (S18). Nothing
// that exists once is deleted.
func TestNoOrdinalLeavesWhileWhatItNamesDiffers(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for name, c := range map[string]struct {
			moved     int
			rotated   plans.Side
			kind      string
			direction plans.Direction
		}{
			"a password on the destination, after the move":       {3, plans.Destination, "Secret", plans.Abort},
			"a setting on the destination, after the move":        {3, plans.Destination, "ConfigMap", plans.Abort},
			"a password on the source, after the move":            {3, plans.Source, "Secret", plans.Abort},
			"a password on the source, and the move goes on":      {1, plans.Source, "Secret", plans.Move},
			"a setting on the source, and the move goes on":       {1, plans.Source, "ConfigMap", plans.Move},
			"a password on the destination, and the move goes on": {1, plans.Destination, "Secret", plans.Move},
			"a password on the destination, in the middle":        {1, plans.Destination, "Secret", plans.Abort},
			"a password on the source, and the move turns back":   {1, plans.Source, "Secret", plans.Abort},
		} {
			for seed := range uint64(2) {
				sc := threeOrdinals(mode)
				sc.Seed = seed
				w := newWorld(sc)
				w.moves(t, c.moved)
				w.rest()
				w.rotate(c.rotated, c.kind, "new")
				here, there := w.up(plans.Source), w.up(plans.Destination)
				got, err := w.process().run(t.Context(), c.direction, nil)
				w.rest()
				if got.kind != engine.Waiting || err != nil || w.up(plans.Source) != here || w.up(plans.Destination) != there || here+there != 3 {
					t.Errorf("%s, %s, seed %d: %s (%v); %d and %d serve, and did: %d and %d", mode, name, seed, got, err, w.up(plans.Source), w.up(plans.Destination), here, there)
				}
				saysWhatDiffers(t, name, c.kind, got.reason)
				unbroken(t, w)
				// The word leads out, and both contents stay.
				f := w.fork(seed)
				f.leadsOut(t, name, c.direction, wordIn(got.reason, "--other-copy "))
				if !f.has(c.rotated, c.kind, "new") || f.has(c.rotated.Other(), c.kind, "new") {
					t.Errorf("%s, %s: the two contents are not there any more", mode, name)
				}
				// So does the content of the other side.
				w.rotate(c.rotated.Other(), c.kind, "new")
				w.leadsOut(t, name, c.direction)
			}
		}
	}
}

// saysWhatDiffers checks that a reason names the object, both ways on, and no value.
func saysWhatDiffers(t *testing.T, name, kind, reason string) {
	t.Helper()
	for _, says := range []string{kind + "/web: data[", "written by", "--other-copy " + kind + "/web:", "kubectl ", "the other way round"} {
		if !strings.Contains(reason, says) {
			t.Errorf("%s: it does not say %q: %s", name, says, reason)
		}
	}
	if strings.Contains(reason, canary) {
		t.Errorf("%s: it shows the value", name)
	}
}

// leadsOut requires that a plan comes to the end of a direction, with these words.
func (w *world) leadsOut(t *testing.T, name string, direction plans.Direction, words ...string) {
	t.Helper()
	r := w.process()
	r.word = plans.Assurance{OtherCopies: words}
	if got, err := r.run(t.Context(), direction, nil); err != nil || got.kind != engine.Finished {
		t.Errorf("%s, with the words %q: %s (%v)", name, words, got, err)
	}
	unbroken(t, w)
}

// The word is about the two states that the user has seen: after another change the plan asks again.
func TestTheWordForAnObjectHoldsForThatStateAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		w.moves(t, 3)
		w.rest()
		w.rotate(plans.Destination, "Secret", "new")
		held, _ := w.process().run(t.Context(), plans.Abort, nil)
		w.rotate(plans.Destination, "Secret", "newer")
		r := w.process()
		r.word = plans.Assurance{OtherCopies: []string{wordIn(held.reason, "--other-copy ")}}
		got, err := r.run(t.Context(), plans.Abort, nil)
		if got.kind != engine.Waiting || err != nil || wordIn(got.reason, "--other-copy ") == wordIn(held.reason, "--other-copy ") || w.up(plans.Destination) != 3 {
			t.Errorf("%s: %s (%v)", mode, got, err)
		}
		unbroken(t, w)
	}
}

// An abort leads back from pods that cannot start with what was rotated: an ordinal that is down has nothing to lose.
func TestAnOrdinalThatIsDownLeavesAlthoughWhatItNamesDiffers(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		w.moves(t, 3)
		w.rest()
		w.rotate(plans.Destination, "Secret", "wrong")
		w.foreign = true
		w.crash(plans.Destination, 0, 1, 2)
		w.rest()
		walk(t, w, plans.Abort, nil)
		if !w.has(plans.Destination, "Secret", "wrong") {
			t.Errorf("%s: what was changed is gone", mode)
		}
	}
}

// At whatever write of a move or of an abort something is rotated, on whichever side: at most the ordinals that were being
// taken leave after that, the value is in no record, and nothing that exists once is deleted.
func TestSomethingIsRotatedAtAnyWrite(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
			w := newWorld(threeOrdinals(mode))
			if direction == plans.Abort {
				w.moves(t, 3)
				w.rest()
			}
			trial := w.fork(0)
			walk(t, trial, direction, nil)
			for write := range trial.writes - w.writes {
				if !fifth.plays(write) {
					continue
				}
				for _, side := range plans.Sides() {
					f := w.fork(uint64(write) % 3)
					f.rotatedAt(t, direction, w.writes+write, side, fmt.Sprintf("%s %s, the %s at write %d", mode, direction, side, write))
				}
			}
		}
	}
}

// rotatedAt rotates the Secret of a side at a write of a world, and goes on with the word that it is asked for.
func (w *world) rotatedAt(t *testing.T, direction plans.Direction, write int, side plans.Side, name string) {
	t.Helper()
	done, copied := false, false
	var before plans.Slice
	from := w.origin(direction)
	w.racing = true
	r := w.process()
	r.at = func(n int) fault {
		if _, there := get[*corev1.Secret](w.on[side], w.namespace(side), setName); n >= write && there && !done {
			done = true
			_, copied = get[*corev1.Secret](w.on[side.Other()], w.namespace(side.Other()), setName) // else the new value is
			w.rotate(side, "Secret", "new")
			before = w.slice(from)
		}
		return ""
	}
	got, err := r.run(t.Context(), direction, nil)
	w.rest()
	waits := got.kind == engine.Waiting && wordIn(got.reason, "--other-copy ") != ""
	if err != nil || !waits && got.kind != engine.Finished {
		t.Errorf("%s: %s (%v)", name, got, err)
	}
	if left := before.Replicas - w.slice(from).Replicas; copied && left > 1 {
		t.Errorf("%s: %d ordinals have left since", name, left)
	}
	if waits {
		w.leadsOut(t, name, direction, wordIn(got.reason, "--other-copy "))
	}
	if done && !w.has(side, "Secret", "new") {
		t.Errorf("%s: what was rotated exists nowhere any more", name)
	}
	unbroken(t, w)
}

// A dry run of an abort says what would hold it, before somebody says yes: an object or a template that differs, and what
// the checks of the first wave find.
func TestADryRunSaysWhatHoldsAnAbort(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for name, c := range map[string]struct {
			change func(*world)
			says   string
		}{
			"nothing":                  {func(*world) {}, ""},
			"a password":               {func(w *world) { w.rotate(plans.Destination, "Secret", "new") }, "Secret/web: data[key] differs"},
			"a template":               {func(w *world) { w.upgrade(plans.Destination, "db:2") }, "db:2"},
			"a source that takes none": {func(w *world) { w.close(plans.Source, noPods) }, "pod-accepted"},
			"ordinals that were added": {func(w *world) { w.addOne() }, "has the ordinals [0..3]"},
		} {
			w := readyFor(t, threeOrdinals(mode), plans.Abort)
			c.change(w)
			w.rest()
			held := w.heldInADryRun(t)
			if (held == "") != (c.says == "") || !strings.Contains(held, c.says) || strings.Contains(held, canary) {
				t.Errorf("%s, %s: it would be held by %q, expected %q", mode, name, held, c.says)
			}
		}
	}
}

// addOne adds an ordinal on the destination.
func (w *world) addOne() {
	set, _ := get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
	next := clone(set)
	more := *set.Spec.Replicas + 1
	next.Spec.Replicas = &more
	w.foreign = true
	must(w.on[plans.Destination].Update(context.TODO(), next))
}

// heldInADryRun returns what would hold an abort now, or "".
func (w *world) heldInADryRun(t *testing.T) (held string) {
	t.Helper()
	trials, on, asks, r := clusters.NewRehearsal(), clusters.Clusters{}, clusters.Clusters{}, w.process()
	for side, s := range w.on {
		on[side], asks[side] = dryStore{s, t}, asking{r.stores[side]}
	}
	on = trials.Clients(w.plan, on)
	e := engine.New(w.plan, records.NewStore(on[plans.Destination], green, planName), on)
	waves := preflight.Waves{Plan: w.plan, On: asks, Now: func() time.Time { return w.app.clock }}
	e.CheckWave = func(ctx context.Context, j *journal.Journal, wave plans.Slice) (wavecheck.Answer, error) {
		found, err := waves.Check(ctx, j, wave)
		return wavecheck.Answer{Why: check.Words(found.Bars), Unfit: found.Unfit()}, err
	}
	left, err := e.Rehearse(t.Context(), &plans.Command{Direction: plans.Abort})
	if err != nil {
		t.Error(err)
	}
	for _, l := range left {
		if l.Held {
			held += l.Why
		}
	}
	return held
}
