package simulation

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/engine/recovery"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// at returns a world whose process stopped after the first step with this operation.
func at(t *testing.T, mode plans.Mode, direction plans.Direction, op plans.Op) *world {
	t.Helper()
	w := newWorld(apart(threeOrdinals(mode)))
	if direction != plans.Move {
		walk(t, w, plans.Move, nil)
	}
	_, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
		return p.Kind == engine.Advanced && p.Step.Op == op
	})
	if err != nil && !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	w.rest()
	w.foreign = true
	return w
}

// edits changes an object as another writer does.
func edits[T client.Object](w *world, side plans.Side, namespace, name string, change func(T)) {
	o, there := get[T](w.on[side], namespace, name)
	if !there {
		panic("--kubeconfig is missing," + name)
	}
	next := clone(o)
	change(next)
	w.on[side].put(next)
}

// older removes the annotations that earlier releases did not write.
func older(w *world) {
	for _, side := range plans.Sides() {
		for _, k := range w.on[side].order {
			o := clone(w.on[side].objects[k])
			notes := o.GetAnnotations()
			n := len(notes)
			delete(notes, plans.DirectionAnnotation)
			delete(notes, plans.BeforeAnnotation)
			if len(notes) != n {
				o.SetAnnotations(notes)
				w.on[side].put(o)
			}
		}
	}
}

// Where the marks do not prove enough, or contradict one another, nothing is recovered. The error names the
// flag to give or the object to repair. Where a flag can help, the recovery with it leads to an end.
func TestWhatTheMarksDoNotProveIsRefused(t *testing.T) {
	t.Parallel()
	done := goldenOf(t, newWorld(threeOrdinals(plans.Reimport)), journey{plans.Move, plans.Finalize}).end
	user := plans.Saved{Budgets: map[plans.Side]policyv1.PodDisruptionBudgetSpec{plans.Source: *threeOrdinals(plans.Reimport).Budget}}
	for name, c := range map[string]struct {
		direction plans.Direction
		op        plans.Op
		do        func(*world)
		want      string
		said      *recovery.Said // the flags with which it is recovered
	}{
		"the sets are another plan's": {plans.Move, plans.Shrink, func(w *world) {
			edits(w, plans.Source, blue, setName, func(s *appsv1.StatefulSet) { plans.Stamp{Plan: "other", Epoch: 1, Seq: 1}.Put(s) })
		}, "belongs to plan other", nil},
		"a volume is another plan's": {plans.Move, plans.Shrink, func(w *world) {
			edits(w, plans.Source, "", w.journal.Flight.Volumes[0].Name, func(pv *corev1.PersistentVolume) { plans.Stamp{Plan: "other"}.Put(pv) })
		}, "belongs to plan other", nil},
		"an ordinal is in both ranges": {plans.Move, plans.Relax, func(w *world) {
			edits(w, plans.Source, blue, setName, func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 3 })
		}, "ordinal 2 is in both ranges", nil},
		"more is in flight than a wave has": {plans.Move, plans.Relax, func(w *world) {
			edits(w, plans.Source, blue, setName, func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 0 })
		}, "2 ordinals are on neither side", nil},
		"the destination is gone half way, with its claims": {plans.Move, plans.Relax, func(w *world) {
			edits(w, plans.Source, blue, setName, func(s *appsv1.StatefulSet) { *s.Spec.Replicas = 1 })
			w.on[plans.Destination].remove(key{"StatefulSet", green, setName})
		}, "so that their claims get them again, and only then recreate the set, with the ordinals [1..2]", nil},
		"a range begins elsewhere": {plans.Move, plans.Relax, func(w *world) {
			edits(w, plans.Source, blue, setName, func(s *appsv1.StatefulSet) {
				s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1}
				*s.Spec.Replicas = 1
			})
		}, "expected ranges that begin with 0 and end with 2", nil},
		"the source is gone half way": {plans.Move, plans.Relax, func(w *world) {
			w.on[plans.Source].remove(key{"StatefulSet", blue, setName})
		}, "recreate it as it was, with the ordinals [0..1]", nil},
		"nothing is marked": {plans.Move, plans.Freeze, func(w *world) {
			for _, s := range w.stores {
				for _, k := range append([]key{}, s.order...) {
					if o := clone(s.objects[k]); plans.Unmark(o) {
						s.put(o)
					}
				}
			}
		}, "it has not begun, or has come to its end", nil},
		"an earlier release marked it, on the way there": {plans.Move, plans.Release, older, "do not show the direction of plan move-web", &recovery.Said{Direction: plans.Move, Was: user}},
		"an earlier release marked it, during an abort":  {plans.Abort, plans.Release, older, "--direction to move, abort or finalize,", &recovery.Said{Direction: plans.Abort, Was: user}},
		"what the budget was is noted nowhere": {plans.Move, plans.Release, func(w *world) {
			edits(w, plans.Source, blue, "web-budget", func(b *policyv1.PodDisruptionBudget) { delete(b.Annotations, plans.BeforeAnnotation) })
		}, "--was source-budget=", &recovery.Said{Was: user}},
		"what is noted cannot be read": {plans.Move, plans.Release, func(w *world) {
			edits(w, plans.Source, blue, setName, func(s *appsv1.StatefulSet) { s.Annotations[plans.BeforeAnnotation] = "{" })
		}, "was not written by this program", nil},
		"the volume in flight lost its marks, and its claim": {plans.Move, plans.Release, func(w *world) {
			lost := w.journal.Flight.Volumes[0].Name
			edits(w, plans.Source, "", lost, func(pv *corev1.PersistentVolume) { pv.Annotations = maps.Clone(pv.Annotations); plans.Unmark(pv) })
			w.on[plans.Destination].remove(key{"PersistentVolume", "", lost}) // it was made before the wave left
			w.on[plans.Destination].remove(key{"PersistentVolumeClaim", green, "data-web-2"})
		}, "no volume of the source carries a mark", nil},
		"a claim got another volume than the one with its data": {plans.Move, plans.Relax, func(w *world) {
			claim, _ := get[*corev1.PersistentVolumeClaim](w.on[plans.Destination], green, "data-web-2")
			w.on[plans.Destination].remove(keyOf(claim))
			w.on[plans.Destination].remove(keyOf(w.pod(plans.Destination, 2)))
			w.rest()
		}, "claim data-web-2 of the destination is bound to volume", nil},
		"nobody knows where the pod ran, and a node is not Ready": {plans.Move, plans.Shrink, func(w *world) {
			edits(w, plans.Source, "", "one-node-b", func(n *corev1.Node) { n.Status.Conditions = nil })
		}, "node one-node-b is not Ready", &recovery.Said{Ended: []string{"web-2"}}},
		"it is said to go against its mark": {plans.Abort, plans.Release, func(*world) {}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := at(t, plans.Reimport, c.direction, c.op)
			c.do(w)
			w.lose(true)
			on := clusters.Clusters{}
			for side, s := range w.on {
				on[side] = s
			}
			said := recovery.Said{}
			if c.want == "" {
				said.Direction, c.want = plans.Move, "omit --direction; after the recovery the direction"
			}
			got, err := recovery.Recovery{Plan: w.plan, On: on, Said: said}.Look(t.Context())
			if got != nil && strings.Contains(strings.Join(got.Found, "\n"), "on node ,") {
				t.Errorf("a node without a name is reported: %q", got.Found)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("it says %v, expected %q", err, c.want)
			}
			if c.said == nil {
				return
			}
			w.foreign = false
			w.recovers(t, *c.said)
			for _, n := range all[*corev1.Node](w.on[plans.Source]) {
				edits(w, plans.Source, "", n.Name, func(n *corev1.Node) { n.Status.Conditions = nodeIsReady() }) // it is back
			}
			w.leads(t, c.direction, plans.Assurance{}, done)
		})
	}
}

// A pod that is gone from the wave in flight is expected at the node that its volumes name, whatever the
// journal knew.
func TestTheNodeOfALostPodIsFoundByItsVolumes(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		w, side := newWorld(apart(threeOrdinals(plans.Reimport))), plans.Source
		if direction == plans.Abort {
			walk(t, w, plans.Move, nil)
			side = plans.Destination
		}
		w.stuck = w.on[side].name
		_, err := w.process().run(t.Context(), direction, func(p engine.Progress) bool {
			return p.Kind == engine.Wrote && p.Step.Op == plans.Shrink
		})
		if err != nil {
			t.Fatal(err)
		}
		w.foreign = true
		for _, set := range all[*appsv1.StatefulSet](w.on[side]) {
			w.seen[set.UID] = cached(set) // its controller makes no other pod in the place of the one that goes
		}
		w.off(side, true) // with the volume attached
		w.rest()
		node := w.lastNode()
		w.lose(true)
		w.recovers(t, recovery.Said{})
		if got := w.journal.Flight.Pods; len(got) != 1 || got[0].Node != node || got[0].Stopped != "" {
			t.Errorf("%s: the flight has %+v, expected a pod of node %s that has not been proven to have ended", direction, got, node)
		}
		got, err := w.process().run(t.Context(), direction, nil)
		if err != nil || !strings.Contains(got.reason, "--node-gone "+node) {
			t.Errorf("%s: it ended with %q (%v)", direction, got, err)
		}
		w.stuck = ""
		w.taint(side, node)
		w.proves(t, direction, plans.Assurance{}, "out of service")
	}
}

// A claim that is gone or is being deleted does not tell who deleted it. A claim without the mark of the plan was made by
// somebody else, and so may be one with it, as long as the volume names that of the source. None of them proves that the pod of the ordinal has ended, so its end is still to be proven.
func TestAClaimThatAnotherWriterTouchedProvesNoEndOfAPod(t *testing.T) {
	t.Parallel()
	source := key{"PersistentVolumeClaim", blue, "data-web-1"}
	for name, c := range map[string]struct {
		mode plans.Mode
		do   func(*world)
	}{
		"it is gone":                         {plans.Reimport, func(w *world) { w.on[plans.Source].remove(source) }},
		"it is on its way":                   {plans.Reimport, func(w *world) { edits(w, plans.Source, blue, "data-web-1", ends) }},
		"one without a mark is in its place": {plans.Rebind, func(w *world) { w.stray("data-web-1", "") }},
		// whoever may create claims there can copy the mark of the plan
		"one with a mark, which its volume does not name": {plans.Rebind, func(w *world) { w.stray("data-web-1", w.plan.ID+"/1/1") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, did := newWorld(threeOrdinals(c.mode)), false
			got, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
				if !did && p.Kind == engine.Advanced && p.Step.ID() == "1/Shrink" {
					did, w.foreign = true, true
					killNode(w)
				}
				return false
			})
			if err != nil || got.kind != engine.Waiting || !strings.Contains(got.reason, "where web-1 ran, is not Ready") {
				t.Fatalf("it ended with %q (%v)", got, err)
			}
			c.do(w)
			w.lose(false)
			on := clusters.Clusters{}
			for side, s := range w.on {
				on[side] = s
			}
			r, err := recovery.Recovery{Plan: w.plan, On: on}.Look(t.Context())
			if err == nil || !strings.Contains(err.Error(), "confirm it with --ended web-1") {
				t.Fatalf("it says %v, and recovers %+v", err, r)
			}
			w.recovers(t, recovery.Said{Ended: []string{"web-1"}})
			if next, _, _ := w.journal.Next(w.plan); next.ID() != "1/Shrink" {
				t.Errorf("the next step is %s, expected 1/Shrink", next.ID())
			}
		})
	}
}

// A volume that names the destination's claim proves Release. That all volumes of the wave do so, only a claim proves that
// the plan has made.
func TestAClaimWithoutAMarkProvesNoEndOfReserve(t *testing.T) {
	t.Parallel()
	for want, mark := range map[string]string{"2/Reserve": "", "2/Claim": "/1/1"} {
		w := at(t, plans.Rebind, plans.Move, plans.Reserve)
		if mark != "" {
			mark = w.plan.ID + mark
		}
		w.stray("data-web-2", mark)
		w.lose(false)
		w.recovers(t, recovery.Said{})
		if next, _, _ := w.journal.Next(w.plan); next.ID() != want {
			t.Errorf("with a claim that is marked %q: the next step is %s, expected %s", mark, next.ID(), want)
		}
	}
}

// stray creates a claim of the destination as somebody else.
func (w *world) stray(name, mark string) {
	c := &corev1.PersistentVolumeClaim{}
	c.Namespace, c.Name = green, name
	if mark != "" {
		c.Annotations = map[string]string{plans.StampAnnotation: mark}
	}
	must(w.on[plans.Destination].Create(context.TODO(), c))
}

// ends marks a claim as one that is being deleted.
func ends(c *corev1.PersistentVolumeClaim) {
	now := metav1.Now()
	c.DeletionTimestamp = &now
}

// The record is stored in an order that can be repeated after a crash, and never overwrites another one.
func TestARebuiltJournalReplacesNothing(t *testing.T) {
	t.Parallel()
	w := at(t, plans.Rebind, plans.Move, plans.Release)
	w.lose(true)
	home := w.on[plans.Destination]
	j := journal.New(w.plan)
	j.Epoch = 200
	dying := deathly{home, 1}
	if err := records.NewStore(&dying, green, planName).Restore(t.Context(), w.plan, j); !errors.Is(err, errDead) {
		t.Fatalf("it survived: %v", err)
	}
	if err := records.NewStore(home, green, planName).Restore(t.Context(), w.plan, j); err != nil {
		t.Fatal(err)
	}
	if err := records.NewStore(home, green, planName).Restore(t.Context(), w.plan, j); err == nil || !strings.Contains(err.Error(), "the journal of plan move-web exists (ConfigMap green") {
		t.Errorf("over a journal: %v", err)
	}
	home.remove(key{"ConfigMap", green, records.RecordName(planName)})
	if err := records.NewStore(home, green, planName).Restore(t.Context(), w.plan, j); err == nil || home.objects[key{"ConfigMap", green, records.RecordName(planName)}] != nil {
		t.Errorf("beside a journal the plan is stored: %v", err)
	}
	w.lose(true)
	if err := records.NewStore(home, green, planName).Restore(t.Context(), w.plan, j); err != nil {
		t.Fatal(err)
	}
	w.lose(false)
	other := *w.plan
	other.ID, other.Hash = "move-web-2", "another"
	if err := records.NewStore(home, green, planName).Lost(t.Context(), &other); err == nil || !strings.Contains(err.Error(), "holds another plan named move-web") {
		t.Errorf("over another plan: %v", err)
	}
}

// deathly is a client whose process dies when it has created lives objects.
type deathly struct {
	*store
	lives int
}

func (d *deathly) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if d.lives--; d.lives < 0 {
		return errDead
	}
	return d.store.Create(ctx, o, opts...)
}

// The final numbers of the destination's budget are noted on that budget too: by then the source's budget may
// be gone with its namespace.
func TestABudgetWithoutItsSourceGetsItsNumbers(t *testing.T) {
	t.Parallel()
	w := at(t, plans.Reimport, plans.Finalize, plans.Retire)
	w.on[plans.Source].remove(key{"PodDisruptionBudget", blue, "web-budget"})
	w.lose(true)
	w.recovers(t, recovery.Said{})
	got, err := w.process().run(t.Context(), plans.Finalize, nil)
	b, there := get[*policyv1.PodDisruptionBudget](w.on[plans.Destination], green, w.plan.Budget.Destination)
	if err != nil || got.outcome != plans.Finalized || !there || b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 1 || b.Spec.MinAvailable != nil {
		t.Errorf("it ended with %q (%v), and the budget is %+v", got, err, b)
	}
	w.rest()
	unbroken(t, w)
}

// An abort takes the names away. A journal that says that they are kept would keep the record of the plan for good.
func TestAnAbortThatIsRecoveredKeepsNoNames(t *testing.T) {
	t.Parallel()
	for _, direction := range []plans.Direction{plans.Move, plans.Abort} {
		w := at(t, plans.Reimport, direction, plans.Release)
		w.lose(true)
		on := clusters.Clusters{}
		for side, s := range w.on {
			on[side] = s
		}
		got, err := recovery.Recovery{Plan: w.plan, On: on, Said: recovery.Said{KeepNames: true}}.Look(t.Context())
		if err != nil || got.Journal.KeepNames != (direction == plans.Move) {
			t.Errorf("%s: %+v, %v", direction, got, err)
		}
	}
}
