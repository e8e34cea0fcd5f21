package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// start describes a world in which a direction begins.
type start struct {
	name      string
	direction plans.Direction
	until     *int32 // a Move that ends in a split
	pauses    bool   // after its first ordinal
	moved     bool   // after a Move
}

func starts() []start {
	split := int32(1)
	return []start{
		{name: "a move", direction: plans.Move},
		{name: "a move into a split", direction: plans.Move, until: &split},
		{name: "a move that pauses", direction: plans.Move, pauses: true},
		{name: "the abort", direction: plans.Abort, moved: true},
		{name: "the end", direction: plans.Finalize, moved: true},
	}
}

func (s start) world(t *testing.T, mode plans.Mode) *world {
	t.Helper()
	w := newWorld(threeOrdinals(mode))
	if s.moved {
		walk(t, w, plans.Move, nil)
		w.rest()
	}
	if s.until != nil {
		w.take(t, plans.Limits{Until: s.until})
	}
	if s.pauses {
		w.take(t, plans.Limits{PauseAfter: 1})
	}
	return w
}

// steps lists the steps of a direction in their order, preceded by "" for the time before the first.
func (s start) steps(t *testing.T, w *world) []string {
	t.Helper()
	out := []string{""}
	_, err := w.process().run(t.Context(), s.direction, func(p engine.Progress) bool {
		if p.Kind == engine.Advanced {
			out = append(out, p.Step.ID())
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Other writers may do anything at any step. A plan that is held by it has nothing in flight, unless it had
// before (S17). To undo the action, or the user's word, leads to an end, onward and back (L6).
func TestForeignChangesTakeNoOrdinalDown(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		moved := newWorld(threeOrdinals(mode))
		done := goldenOf(t, moved, journey{plans.Move, plans.Finalize})
		for _, s := range starts() {
			first := s.world(t, mode)
			steps := s.steps(t, first.fork(0))
			for _, name := range slices.Sorted(mapKeys(foreignWrites())) {
				t.Run(fmt.Sprintf("%s, %s, %s", mode, s.name, name), func(t *testing.T) {
					t.Parallel()
					did := 0
					for n, step := range steps {
						if !fifth.plays(n+len(name)) && !strings.HasSuffix(step, "Grow") {
							continue
						}
						w := first.fork(uint64(n))
						if !s.disturbed(t, w, foreignWrites()[name], step, done.end) {
							continue
						}
						did++
						if t.Failed() {
							t.Fatalf("that was: after %q", step)
						}
					}
					if did == 0 && s.direction != plans.Finalize {
						t.Error("there was never anything to do it to")
					}
				})
			}
		}
	}
}

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// disturbed lets another writer act after a step, and then tries the ways out. It returns false if there was
// no object to act on.
func (s start) disturbed(t *testing.T, w *world, d foreignWrite, step string, end map[string]any) bool {
	t.Helper()
	did, down := false, false
	act := func() {
		if did {
			return
		}
		down, w.foreign = w.inFlight() || w.options.Lag, true // a change that the watches report late may meet a wave that leaves
		did = d.do(w)
		w.foreign = did
	}
	if step == "" {
		act()
	}
	_, err := w.process().run(t.Context(), s.direction, func(p engine.Progress) bool {
		if p.Kind == engine.Advanced && p.Step.ID() == step {
			act()
		}
		return false
	})
	if !did {
		return false
	}
	if err != nil {
		t.Error(err)
	}
	w.rest()
	if w.inFlight() && !down && w.journal.Outcome == "" {
		t.Errorf("S17: an ordinal went down for it; blocked %q", w.journal.Blocked)
	}
	unbroken(t, w)
	if w.journal.Ended() {
		return true // it came too late to matter, and its author has to clean up
	}
	if s.pauses {
		w.pause(t, false)
	}
	for _, direction := range s.ways() {
		w.ways(t, d, direction, end)
	}
	return true
}

// ways tries to undo what another writer did, and to vouch for it.
func (w *world) ways(t *testing.T, d foreignWrite, direction plans.Direction, end map[string]any) {
	t.Helper()
	if d.undo != nil {
		out := w.fork(3)
		d.undo(out)
		out.rest()
		out.leads(t, direction, plans.Assurance{}, end)
	}
	if !reflect.DeepEqual(d.word, plans.Assurance{}) {
		w.fork(4).leads(t, direction, d.word, end)
	}
}

// ways returns the directions that are possible from within this one.
func (s start) ways() []plans.Direction {
	switch {
	case s.direction == plans.Finalize:
		return []plans.Direction{plans.Finalize}
	case s.direction == plans.Abort || s.until != nil:
		return []plans.Direction{plans.Abort}
	}
	return []plans.Direction{plans.Move, plans.Abort}
}

// leads runs a direction, and requires a clean end of the plan.
func (w *world) leads(t *testing.T, direction plans.Direction, word plans.Assurance, end map[string]any) {
	t.Helper()
	w.foreign = !reflect.DeepEqual(word, plans.Assurance{}) || len(w.crashing) > 0 // the cause still persists
	r := w.process()
	r.word = word
	got, err := r.run(t.Context(), direction, nil)
	if got.kind == engine.Paused { // as was requested before
		w.pause(t, false)
		r = w.process()
		r.word = word
		got, err = r.run(t.Context(), direction, nil)
	}
	if direction == plans.Move && strings.Contains(got.reason, "`abort` recreates the claim") {
		return // an abort is the way out
	}
	if err != nil || got.outcome != outcomeOf(direction) {
		t.Errorf("%s, word %+v: ended with %q (%v)", direction, word, got, err)
		return
	}
	want := w.start
	if direction != plans.Abort {
		want = end
	}
	if direction == plans.Move {
		r = w.process()
		r.word = word
		if got, err = r.run(t.Context(), plans.Finalize, nil); err != nil || got.outcome != plans.Finalized {
			t.Errorf("Clean, word %+v: ended with %q (%v)", word, got, err)
			return
		}
	}
	w.foreign = false
	w.rest()
	unbroken(t, w)
	cleanEnd(t, w, want)
}

// The main reason for an abort is a destination that does not work (S14).
func TestAPlanIsWalkedBackFromABrokenDestination(t *testing.T) {
	t.Parallel()
	wide := options{Mode: plans.Reimport, Ordinals: 4, D: 2, Templates: []string{"data"}, Budget: maxUnavailable(intstr.FromInt32(2)), Dependents: true}
	for _, c := range []struct {
		name    string
		options options
		broken  []int32
		word    plans.Assurance
		waits   string // the reason, without the word
	}{
		{name: "everything that arrived is broken", options: threeOrdinals(plans.Reimport), broken: []int32{1, 2}},
		{name: "the budget has room for one", options: wide, broken: []int32{3}},
		{name: "the budget has no room", options: threeOrdinals(plans.Rebind), broken: []int32{2}, word: plans.Assurance{MaxUnavailable: 2}, waits: "with web-1 2 ordinals would be unavailable, and at most 1 may be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(c.options)
			_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool { return p.Kind == engine.Advanced && p.Step.ID() == "1/Grow" })
			if err != nil {
				t.Fatal(err)
			}
			w.rest()
			w.foreign = true
			w.crash(plans.Destination, c.broken...)
			if c.waits != "" {
				got, err := w.process().run(t.Context(), plans.Abort, nil)
				if err != nil || !strings.Contains(got.reason, c.waits) || !strings.Contains(got.reason, "--max-unavailable 2") || w.inFlight() {
					t.Fatalf("it ended with %q (%v), in flight: %t", got, err, w.inFlight())
				}
			}
			w.leads(t, plans.Abort, c.word, nil)
		})
	}
}

// A pod that is Ready and not yet available counts as down, whichever pod leaves (S2).
func TestAPodThatIsNotAvailableYetKeepsTheNextOrdinalUp(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		for _, mode := range modes() {
			sc := threeOrdinals(mode)
			sc.MinReady = 10
			w := newWorld(sc)
			side, young := plans.Source, int32(0)
			if direction == plans.Abort {
				walk(t, w, plans.Move, nil)
				side, young = plans.Destination, 2
			}
			w.foreign = true // the restart is not ours
			must(w.on[side].Delete(context.TODO(), clone(w.pod(side, young))))
			w.options.MinReady = 0 // no pod becomes available for now
			w.rest()
			if !ready(w.pod(side, young)) {
				t.Fatal("the pod never came back")
			}
			delete(w.aged, w.pod(side, young).UID)
			w.rest()
			got, err := w.process().run(t.Context(), direction, nil)
			if err != nil || got.kind != engine.Waiting || !strings.Contains(got.reason, "minReadySeconds 10") || w.inFlight() || w.pod(side.Other(), young) != nil {
				t.Errorf("%s, %s: it ended with %q (%v), in flight: %t", direction, mode, got, err, w.inFlight())
			}
			w.options.MinReady = 10
			w.leads(t, direction, plans.Assurance{}, goldenOf(t, newWorld(sc), journey{plans.Move, plans.Finalize}).end)
		}
	}
}

// An autoscaler removes a drained node before its volumes are free.
func TestANodeThatGoesAfterItsPodHasEndedStopsNothing(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, process dies %t", direction, dies), func(t *testing.T) {
				w := newWorld(threeOrdinals(plans.Reimport))
				side := plans.Source
				if direction == plans.Abort {
					walk(t, w, plans.Move, nil)
					side = plans.Destination
				}
				w.stuck = w.on[side].name // slow to detach
				_, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
					return dies && p.Kind == engine.Waiting && strings.Contains(p.Reason, "is still attached to node")
				})
				if err != nil {
					t.Fatal(err)
				}
				w.foreign = true
				w.bury(side, w.journal.Flight.Pods[0].Node)
				w.stuck = ""
				w.rest()
				w.leads(t, direction, plans.Assurance{}, goldenOf(t, newWorld(threeOrdinals(plans.Reimport)), journey{plans.Move, plans.Finalize}).end)
			})
		}
	}
}

// The end of the containers is not proven: then an administrator has to confirm that the node is off, to
// Kubernetes or to us.
func TestANodeThatIsGoneOrOffIsBelievedByWord(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		t.Run(string(direction)+", gone, a person's word", func(t *testing.T) {
			w, _ := powerless(t, direction, false)
			w.proves(t, direction, plans.Assurance{NodeGone: w.lastNode()}, "as the user has confirmed (--node-gone)")
		})
		t.Run(string(direction)+", off, the taint", func(t *testing.T) {
			w, side := powerless(t, direction, true)
			w.taint(side, w.lastNode())
			w.proves(t, direction, plans.Assurance{}, "out of service")
		})
	}
}

// lastNode returns the node of the pod in flight.
func (w *world) lastNode() string { return w.journal.Flight.Pods[0].Node }

// powerless returns a world in which the node of an ordinal in flight is gone, or off, before the end of its
// pod could be observed.
func powerless(t *testing.T, direction plans.Direction, there bool) (*world, plans.Side) {
	t.Helper()
	w, side, did := newWorld(threeOrdinals(plans.Reimport)), plans.Source, false
	if direction == plans.Abort {
		walk(t, w, plans.Move, nil)
		side = plans.Destination
	}
	got, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
		if !did && p.Kind == engine.Advanced && p.Step.Op == plans.Shrink {
			did, w.foreign = true, true
			w.off(side, there)
		}
		return false
	})
	if err != nil || !did || !strings.Contains(got.reason, "--node-gone "+w.lastNode()) {
		t.Fatalf("ended with %q (%v)", got, err)
	}
	w.rest()
	return w, side
}

// proves runs a direction to its end, and requires that the first proof contains want.
func (w *world) proves(t *testing.T, direction plans.Direction, word plans.Assurance, want string) {
	t.Helper()
	r, proof := w.process(), ""
	r.word = word
	got, err := r.run(t.Context(), direction, func(p engine.Progress) bool {
		if p.Kind == engine.Advanced && p.Step.Op == plans.Vacate && proof == "" {
			proof = p.Reason
		}
		return false
	})
	if err != nil || got.outcome != outcomeOf(direction) || !strings.Contains(proof, want) {
		t.Errorf("ended with %q (%v); the proof is %q, want it to say %q", got, err, proof, want)
	}
	w.rest()
	unbroken(t, w)
}

// off removes the node of the pod in flight, or, if there, makes it not Ready. Its pod is removed by force.
func (w *world) off(side plans.Side, there bool) {
	s, pod := w.on[side], w.journal.Flight.Pods[0]
	node, _ := get[*corev1.Node](s, "", pod.Node)
	w.bury(side, pod.Node)
	if there {
		next := clone(node)
		next.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		s.put(next)
	}
}

// bury removes a node; the control plane deletes the pods that were on it.
func (w *world) bury(side plans.Side, node string) {
	s := w.on[side]
	s.remove(key{"Node", "", node})
	for _, p := range all[*corev1.Pod](s) {
		if p.Spec.NodeName == node {
			s.remove(keyOf(p))
		}
	}
}

func (w *world) taint(side plans.Side, name string) {
	node, _ := get[*corev1.Node](w.on[side], "", name)
	next := clone(node)
	next.Spec.Taints = append(next.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
	w.on[side].put(next)
}

// A node that was lost with a pod on it may have a volume attached for good. In an abort the cluster of that node receives
// the volume, so its ordinal stays up until the user repeats the word: it is on neither side for none of that time. That
// goes for the last ordinal that arrived as well.
func TestAnAbortGetsPastAnAttachmentThatNobodyRemoves(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		for o := range int32(3) {
			w := newWorld(threeOrdinals(plans.Reimport)).fork(seed)
			walk(t, w, plans.Move, nil)
			disk := w.attachedForGood(t, o)
			got, err := w.process().run(t.Context(), plans.Abort, nil)
			if err != nil || !strings.Contains(got.reason, "on the source, volume "+disk+" is still attached to node "+lostNode) || w.pod(plans.Destination, o) == nil {
				t.Fatalf("seed %d, ordinal %d: ended with %q (%v)", seed, o, got, err)
			}
			w.abortsWithTheWord(t)
		}
	}
}

// The intent of a wave to leave is in the journal, and its write is refused or never sent. The word about a node of the
// other cluster still reaches the wait that asked for it (L6). An earlier process stopped before the wave was up, so the
// abort does not ask before.
func TestTheWordAboutANodeReachesAWaveThatWasAboutToLeave(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{refused409, crashBefore} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			w := newWorld(threeOrdinals(plans.Reimport))
			_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool { return p.Kind == engine.Wrote && p.Step.ID() == "0/Grow" })
			if err != nil {
				t.Fatal(err)
			}
			disk := w.attachedForGood(t, 0)
			r, did := w.process(), false
			r.at = func(int) fault {
				if did || r.now.kind != "StatefulSet" || w.journal.Flight == nil || w.journal.Flight.From != plans.Destination {
					return ""
				}
				did = true
				return f
			}
			_, _ = r.run(t.Context(), plans.Abort, nil)
			got, err := w.process().run(t.Context(), plans.Abort, nil)
			if err != nil || !did || !strings.Contains(got.reason, "on the source, volume "+disk+" is still attached to node "+lostNode) {
				t.Fatalf("ended with %q (%v)", got, err)
			}
			w.abortsWithTheWord(t)
		})
	}
}

const lostNode = "one-node-lost"

// attachedForGood lets a lost node of the source have the volume of an ordinal attached, and returns the volume.
func (w *world) attachedForGood(t *testing.T, ordinal int32) string {
	t.Helper()
	claim, ok := get[*corev1.PersistentVolumeClaim](w.on[plans.Destination], w.namespace(plans.Destination), w.plan.ClaimName(plans.Destination, "data", ordinal))
	if !ok {
		t.Fatalf("ordinal %d has no claim", ordinal)
	}
	disk := claim.Spec.VolumeName
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachment(disk, lostNode), Annotations: map[string]string{"disk": "lost"}}}
	va.Spec = storagev1.VolumeAttachmentSpec{NodeName: lostNode, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &disk}}
	must(w.on[plans.Source].Create(t.Context(), va))
	w.stuck = w.on[plans.Source].name
	return disk
}

// abortsWithTheWord lets the user vouch for the lost node. The plan is then aborted.
func (w *world) abortsWithTheWord(t *testing.T) {
	t.Helper()
	r := w.process()
	r.word = plans.Assurance{NodeGone: lostNode}
	got, err := r.run(t.Context(), plans.Abort, func(p engine.Progress) bool {
		if p.Kind == engine.Wrote && p.Step.Op == plans.Grow {
			w.stuck = "" // the control plane has noticed, too
		}
		return false
	})
	if err != nil || got.outcome != plans.Aborted {
		t.Errorf("ended with %q (%v); %v", got, err, w.journal.AssuredFacts())
	}
	unbroken(t, w)
	cleanEnd(t, w, w.start)
}

// No ordinal of an abort leaves for a volume object that the binder of the source has not seen, the last one that arrived
// included: somebody has deleted the objects that the source had kept, and they are made again (S17).
func TestNoOrdinalOfAnAbortLeavesForAVolumeThatIsNotSeen(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := newWorld(threeOrdinals(plans.Reimport)).fork(seed)
		walk(t, w, plans.Move, nil)
		for _, pv := range all[*corev1.PersistentVolume](w.on[plans.Source]) {
			must(w.on[plans.Source].Delete(t.Context(), clone(pv)))
		}
		w.rest()
		w.foreign, w.unbound = true, w.on[plans.Source].name
		got, err := w.process().run(t.Context(), plans.Abort, nil)
		for o := range int32(3) {
			if w.pod(plans.Destination, o) == nil {
				t.Errorf("seed %d: ordinal %d is down: %q, %v", seed, o, got, err)
			}
		}
		w.unbound, w.quiet = "", 0
		walk(t, w, plans.Abort, nil)
		cleanEnd(t, w, w.start)
	}
}

// A word about a node is refused for a plan without ordinals in flight.
func TestAWordThatMeansNothingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(threeOrdinals(plans.Reimport))
	walk(t, w, plans.Move, nil)
	for _, word := range []plans.Assurance{{NodeGone: "two-node-a"}, {MaxUnavailable: 2}, {SourceGone: true}} {
		r := w.process()
		r.word = word
		if _, err := r.takeOver(t.Context(), plans.Move); err == nil {
			t.Errorf("%+v was accepted", word)
		}
	}
	walk(t, w, plans.Abort, nil)
	cleanEnd(t, w, w.start)
}

// Another writer shrinks the range of the destination while its pod runs, and the plan is reversed. The
// source does not get the disk BEFORE the destination has released it (S1).
func TestAnAbortWaitsForTheDisksOfLatePods(t *testing.T) {
	t.Parallel()
	first := newWorld(threeOrdinals(plans.Reimport))
	for seed := range uint64(20) {
		w := first.fork(seed)
		_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool { return p.Kind == engine.Advanced && p.Step.ID() == "2/Grow" })
		if err != nil {
			t.Fatal(err)
		}
		w.foreign = true
		change(plans.Destination, setName, func(s *appsv1.StatefulSet) {
			n := int32(0)
			s.Spec.Replicas, s.Spec.Ordinals = &n, &appsv1.StatefulSetOrdinals{Start: 3}
		})(w)
		w.stuck = "two"
		got, err := w.process().run(t.Context(), plans.Abort, nil)
		_, there := get[*corev1.PersistentVolumeClaim](w.on[plans.Destination], green, "data-web-2")
		if err != nil || !strings.Contains(got.reason, "is still attached to node two-") || !there {
			t.Errorf("seed %d: ended with %q (%v), the claim of the destination is there: %t", seed, got, err, there)
		}
		unbroken(t, w)
		w.stuck = ""
		w.leads(t, plans.Abort, plans.Assurance{}, nil)
	}
}

// A late mounter attaches the volume again on the side that has released it (S1).
func TestAVolumeThatIsAttachedAgainIsNotHandedOver(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"1/Vacate", "1/Release", "1/Claim"} {
		w := newWorld(threeOrdinals(plans.Reimport))
		did := false
		got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
			if !did && p.Kind == engine.Advanced && p.Step.ID() == after {
				did, w.foreign = true, true
				w.lateMounter("pvc-disk-2")
			}
			return false
		})
		if err != nil || !did || !strings.Contains(got.reason, "is still attached to node one-node-a") {
			t.Errorf("after %s: ended with %q (%v)", after, got, err)
		}
		if pod := w.pod(plans.Destination, 1); pod != nil {
			t.Errorf("after %s: web-1 runs on the destination while its disk is attached on the source", after)
		}
		w.stuck = ""
		w.leads(t, plans.Move, plans.Assurance{}, goldenOf(t, newWorld(threeOrdinals(plans.Reimport)), journey{plans.Move, plans.Finalize}).end)
	}
}

// lateMounter leaves a volume attached on the source, as a backup pod does that was deleted by force.
func (w *world) lateMounter(volume string) {
	s := w.on[plans.Source]
	pv, _ := get[*corev1.PersistentVolume](s, "", volume)
	node, _ := get[*corev1.Node](s, "", "one-node-a")
	w.stuck = s.name
	for w.attach(s, pv, node) {
		node, _ = get[*corev1.Node](s, "", "one-node-a")
	}
}

// Moved and Split mean that every ordinal is where the plan requires it, and nowhere else (S1, S12).
func TestNoMoveIsOverWhileARangeIsAnother(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, after := range []string{"0/Grow", "0/Relax"} {
			w, did := newWorld(threeOrdinals(mode)), false
			got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
				if !did && p.Kind == engine.Advanced && p.Step.ID() == after {
					did, w.foreign = true, true
					scale(plans.Source, 1)(w)
				}
				return false
			})
			if err != nil || !did || got.kind != engine.Blocked || !strings.Contains(got.reason, "StatefulSet blue/web") || w.journal.Outcome != "" {
				t.Errorf("%s, scaled up after %s: ended with %q (%v)", mode, after, got, err)
			}
		}
	}
}

// Nothing of the source is deleted BEFORE the destination has all ordinals in its range.
func TestNothingIsFinalizedWhileARangeIsAnother(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, n := range []int32{0, 1, 2} {
			w := newWorld(threeOrdinals(mode))
			walk(t, w, plans.Move, nil)
			w.foreign = true
			scale(plans.Destination, n)(w)
			got, err := w.process().run(t.Context(), plans.Finalize, nil)
			if _, there := get[*appsv1.StatefulSet](w.on[plans.Source], blue, setName); err != nil || got.kind != engine.Blocked || !there {
				t.Errorf("%s, destination scaled to %d: finalize ended with %q (%v); source there: %t", mode, n, got, err, there)
			}
		}
	}
}

// Only the plan has the values behind its marks. Where the marks were removed, the reason states the values
// to restore (S15).
func TestMarksThatAreTakenOffBeforeTheEndAreMissed(t *testing.T) {
	t.Parallel()
	sc := threeOrdinals(plans.Rebind)
	sc.Delete, sc.D, sc.Budget = true, 2, maxUnavailable(intstr.FromString("34%"))
	first := newWorld(sc)
	walk(t, first, plans.Move, nil)
	first.rest()
	policy := func(w *world) {
		change(plans.Source, setName, func(s *appsv1.StatefulSet) {
			s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deletes, WhenScaled: deletes}
		})(w)
	}
	budget := func(w *world) {
		change(plans.Source, "web-budget", func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, sc.Budget.MaxUnavailable
		})(w)
	}
	for name, c := range map[string]struct {
		strip, back func(*world)
		want        string
	}{
		"of a set":    {change(plans.Source, setName, func(s *appsv1.StatefulSet) { plans.Unmark(s) }), policy, "it was whenDeleted Delete, whenScaled Delete: set it back"},
		"of a budget": {change(plans.Source, "web-budget", func(b *policyv1.PodDisruptionBudget) { plans.Unmark(b) }), budget, "before the plan it had maxUnavailable 34%: set it back"},
	} {
		w, did := first.fork(1), false
		got, err := w.process().run(t.Context(), plans.Abort, func(p engine.Progress) bool {
			if !did && p.Kind == engine.Advanced && p.Step.ID() == "2/Relax" {
				did, w.foreign = true, true
				c.strip(w)
			}
			return false
		})
		if err != nil || got.kind != engine.Blocked || !strings.Contains(got.reason, c.want) {
			t.Fatalf("%s: ended with %q (%v)", name, got, err)
		}
		c.back(w)
		w.leads(t, plans.Abort, plans.Assurance{}, nil)
	}
}

// The policy of a volume is recorded on the volume alone. If its marks are gone, the run names the volume
// that is left at Retain.
func TestAVolumeThatIsLeftAtRetainIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(threeOrdinals(plans.Rebind))
	walk(t, w, plans.Move, nil)
	w.rest()
	w.foreign = true
	w.volume(func(pv *corev1.PersistentVolume) { plans.Unmark(pv) })
	said := ""
	_, err := w.process().run(t.Context(), plans.Finalize, func(p engine.Progress) bool {
		if p.Kind == engine.Wrote && strings.Contains(p.Reason, "lost the annotations of this plan, and keeps reclaim policy Retain") {
			said = p.Reason
		}
		return false
	})
	if err != nil || w.journal.Outcome != plans.Finalized || !strings.Contains(said, "volume pvc-disk-2") {
		t.Errorf("%v, %s: it said %q", err, w.journal.Outcome, said)
	}
}

// Values that another writer has set in the meantime are kept (S12).
func TestARetentionPolicyOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	w := newWorld(threeOrdinals(plans.Rebind))
	walk(t, w, plans.Move, nil)
	theirs := appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deletes, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	did := false
	_, err := w.process().run(t.Context(), plans.Finalize, func(p engine.Progress) bool {
		if !did && p.Kind == engine.Advanced && p.Step.Op == plans.Settle {
			did = true
			change(plans.Destination, setName, func(s *appsv1.StatefulSet) { s.Spec.PersistentVolumeClaimRetentionPolicy = &theirs })(w)
		}
		return false
	})
	set, _ := get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
	if diff := cmp.Diff(theirs, *set.Spec.PersistentVolumeClaimRetentionPolicy); err != nil || w.journal.Outcome != plans.Finalized || diff != "" {
		t.Errorf("%v, %s: -theirs +now\n%s", err, w.journal.Outcome, diff)
	}
}

// Volumes whose marks are gone can be protected again by the user's word. Their current policy is recorded.
func TestVolumesWithoutMarksAreHeldAnewByWord(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(threeOrdinals(mode))
		lost := foreignWrites()["the volumes of the source lose their marks"]
		did := false
		got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
			if !did && p.Kind == engine.Advanced && p.Step.ID() == "0/Protect" {
				did, w.foreign = lost.do(w), true
			}
			return false
		})
		if err != nil || !did || got.kind != engine.Blocked || w.inFlight() {
			t.Fatalf("%s: ended with %q (%v)", mode, got, err)
		}
		r := w.process()
		r.word = plans.Assurance{Readopt: true}
		if got, err := r.run(t.Context(), plans.Move, nil); err != nil || got.outcome != plans.Moved {
			t.Fatalf("%s: ended with %q (%v)", mode, got, err)
		}
		walk(t, w, plans.Finalize, nil)
		if marks := w.marked(); len(marks) > 0 {
			t.Errorf("%s: our marks are still on %q", mode, marks)
		}
	}
}

// A destination that another writer deleted is recreated by the user's word alone, and its ordinals come up
// where they were.
func TestADestinationThatWasDeletedIsMadeAgainByWord(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		for _, mode := range modes() {
			done := goldenOf(t, newWorld(threeOrdinals(mode)), journey{plans.Move, plans.Finalize})
			w := newWorld(threeOrdinals(mode))
			did := false
			got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
				if !did && p.Kind == engine.Advanced && p.Step.ID() == "1/Grow" {
					did, w.foreign = true, true
					set, _ := get[*appsv1.StatefulSet](w.on[plans.Destination], green, setName)
					must(w.on[plans.Destination].Delete(context.TODO(), clone(set)))
					w.rest()
				}
				return false
			})
			if err != nil || got.kind != engine.Blocked || !strings.Contains(got.reason, "with the ordinals [1..2], and pass --readopt") {
				t.Fatalf("%s: ended with %q (%v)", mode, got, err)
			}
			w.leads(t, direction, plans.Assurance{Readopt: true}, done.end)
		}
	}
}

// The old cluster was deleted before finalize: by the user's word, the destination is finalized all the same.
func TestAPlanEndsWithoutItsSourcesCluster(t *testing.T) {
	t.Parallel()
	sc := threeOrdinals(plans.Reimport)
	sc.Delete = true
	done := goldenOf(t, newWorld(sc), journey{plans.Move, plans.Finalize})
	for name, at := range map[string]int{"at once": 1 << 30, "after the process died": 3} {
		w := newWorld(sc)
		walk(t, w, plans.Move, nil)
		w.foreign = true
		before := w.on[plans.Source].version
		r := w.process()
		r.word, r.at = plans.Assurance{SourceGone: true}, once(w.writes+at, crashAfter)
		got, err := r.run(t.Context(), plans.Finalize, nil)
		if r.dead { // the next process learns it from the journal
			if !w.journal.Assurances.SourceGone {
				t.Fatalf("%s: the journal forgets it: %+v", name, w.journal.Assurances)
			}
			r = w.process()
			r.word.SourceGone = w.journal.Assurances.SourceGone
			got, err = r.run(t.Context(), plans.Finalize, nil)
		}
		if err != nil || got.outcome != plans.Finalized || w.on[plans.Source].version != before {
			t.Fatalf("%s: ended with %q (%v)", name, got, err)
		}
		w.rest()
		unbroken(t, w)
		onTwo := func(m map[string]any) map[string]any {
			out := map[string]any{}
			for k, v := range m {
				if strings.HasPrefix(k, "two ") {
					out[k] = v
				}
			}
			return out
		}
		if diff := cmp.Diff(onTwo(done.end), onTwo(w.snapshot())); diff != "" {
			t.Errorf("%s: the destination is not as it has to be (-want +got):\n%s", name, diff)
		}
		for _, marked := range w.marked() {
			if strings.HasPrefix(marked, "two ") {
				t.Errorf("%s: our marks are still on %s", name, marked)
			}
		}
	}
}

// A deletion cannot be undone. A claim with a foreign finalizer is therefore not deleted, with its ordinal up
// or down, and abort does not wait for it.
func TestAClaimThatSomebodyKeepsIsNotDeleted(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		for _, after := range []string{"2/Grow", "1/Vacate"} {
			w := newWorld(threeOrdinals(mode))
			kept, did := finalized(plans.Source), false
			got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
				if !did && p.Kind == engine.Advanced && p.Step.ID() == after {
					did, w.foreign = true, true
					kept.do(w)
				}
				return false
			})
			w.rest()
			claim, there := get[*corev1.PersistentVolumeClaim](w.on[plans.Source], blue, "data-web-1")
			if err != nil || got.kind != engine.Waiting || !strings.Contains(got.reason, foreignFinalizer) || !there || claim.DeletionTimestamp != nil {
				t.Errorf("%s, after %s: ended with %q (%v)", mode, after, got, err)
			}
			if got, err = w.process().run(t.Context(), plans.Abort, nil); err != nil || got.outcome != plans.Aborted {
				t.Errorf("%s, after %s: abort ended with %q (%v)", mode, after, got, err)
			}
			kept.undo(w)
			cleanEnd(t, w, w.start)
		}
	}
}

// Under such a retention policy the claims of a set would be deleted with its pods.
func TestASetThatDoesNotKeepItsClaimsLosesNoOrdinal(t *testing.T) {
	t.Parallel()
	for _, side := range plans.Sides() {
		w := newWorld(threeOrdinals(plans.Rebind))
		away, did := foreignWrites()["the retention policy is set back on the set of the "+string(side)], false
		got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
			if !did && p.Kind == engine.Advanced && p.Step.ID() == "2/Grow" {
				w.foreign = true
				did = away.do(w)
			}
			return false
		})
		if err != nil || !did || got.kind != engine.Blocked || !strings.Contains(got.reason, w.plan.On(side).Set()+" no longer keeps its claims") || w.inFlight() {
			t.Errorf("%s: ended with %q (%v)", side, got, err)
		}
	}
}
