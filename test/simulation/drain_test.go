package simulation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/plans"
)

// The eviction API believes the budgets. If these are correct at every instant, no drain takes an ordinal
// down while another is in flight (S2, S3).
func TestNodesMayBeDrainedDuringAMove(t *testing.T) {
	t.Parallel()
	from, to := seedsOf(4, 200)
	for name, sc := range variants() {
		if sc.Budget == nil {
			continue // without the user's own budget any pod may be evicted
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newWorld(sc)
			for seed := from; seed <= to; seed++ {
				w := first.fork(seed)
				w.evictions = 4
				walk(t, w, plans.Move, nil)
				w.evictions += 4
				walk(t, w, plans.Abort, nil)
				w.evictions = 0
				cleanEnd(t, w, w.start)
			}
		})
	}
}

// drainsOf returns the ways in which a drain of a node begins.
func drainsOf() map[string]func(*corev1.Node) {
	taint := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	now := metav1.Unix(1, 0)
	return map[string]func(*corev1.Node){
		"cordoned":                      func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"by Karpenter":                  taint("karpenter.sh/disrupted"),
		"by Karpenter before v1":        taint("karpenter.sh/disruption"),
		"by the cluster-autoscaler":     taint("ToBeDeletedByClusterAutoscaler"),
		"deleted, and kept to be empty": func(n *corev1.Node) { n.DeletionTimestamp, n.Finalizers = &now, []string{"karpenter.sh/termination"} },
	}
}

// oneByOne moves five ordinals of which one may be unavailable, each on a node of its own.
func oneByOne(mode plans.Mode) options {
	sc := threeOrdinals(mode)
	sc.Ordinals, sc.Spread = 5, true
	return sc
}

// drain begins to drain the node of an ordinal, and returns the pod that must be evicted.
func (w *world) drain(side plans.Side, ordinal int32, begin func(*corev1.Node)) *corev1.Pod {
	pod := w.pod(side, ordinal)
	node, _ := get[*corev1.Node](w.on[side], "", pod.Spec.NodeName)
	next := clone(node)
	begin(next)
	w.on[side].put(next)
	w.drains, w.evictions = true, w.evictions+1
	return pod
}

// gone requires that the pod was evicted, and is ready again on another node.
func (w *world) gone(t *testing.T, side plans.Side, old *corev1.Pod) {
	t.Helper()
	now := w.pod(side, ordinalOf(old.Name))
	if now == nil || now.UID == old.UID || now.Spec.NodeName == old.Spec.NodeName || !ready(now) {
		t.Errorf("%s of the %s, on %s, was not evicted in time", old.Name, side, old.Spec.NodeName)
	}
}

// With d = 1 one side has the only unit of the budget. Between two waves it has to be the side that needs it
// (L5). S3 is checked after every write.
func TestADrainOfEitherSideSucceedsWithinOneWave(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		first := newWorld(oneByOne(mode))
		for name, begin := range drainsOf() {
			for _, c := range []struct {
				side           plans.Side // the side with fewer ordinals
				flying, victim int32
			}{{plans.Source, 2, 0}, {plans.Destination, 3, 4}} {
				t.Run(fmt.Sprintf("%s, on the %s, %s", mode, c.side, name), func(t *testing.T) {
					for seed := range uint64(3) {
						w := first.fork(seed)
						var old *corev1.Pod
						_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
							if p.Step.ID() == fmt.Sprintf("%d/Vacate", c.flying) && old == nil {
								old = w.drain(c.side, c.victim, begin)
							}
							return p.Step.ID() == fmt.Sprintf("%d/Shrink", c.flying-1)
						})
						if err != nil {
							t.Fatal(err)
						}
						w.gone(t, c.side, old)
						unbroken(t, w)
						walk(t, w, plans.Move, nil)
					}
				})
			}
		}
	}
}

func TestBothSidesAreDrainedWithinOneWave(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		w := newWorld(oneByOne(mode))
		var here, there *corev1.Pod
		_, err := w.process().run(t.Context(), plans.Move, func(p engine.Progress) bool {
			if p.Step.ID() == "3/Vacate" && here == nil {
				here, there = w.drain(plans.Source, 0, drainsOf()["cordoned"]), w.drain(plans.Destination, 4, drainsOf()["cordoned"])
			}
			return p.Step.ID() == "2/Shrink"
		})
		if err != nil {
			t.Fatal(err)
		}
		w.gone(t, plans.Source, here)
		w.gone(t, plans.Destination, there)
		walk(t, w, plans.Move, nil)
	}
}

// tend lets a process tend a plan at rest, until there is nothing left to do.
func (w *world) tend(t *testing.T, r *process) {
	t.Helper()
	e, err := r.engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		r.tell()
		r.takingOver = true // a takeover may be part of Tend
		_, err := e.Drains.Tend(t.Context())
		r.takingOver = false
		if r.dead {
			return
		}
		if err != nil && r.at == nil {
			t.Fatal(err)
		}
		w.others(r, engine.Waiting)
	}
	w.rest()
}

// drainable returns the line of the status about drains.
func (w *world) drainable(t *testing.T) string {
	t.Helper()
	return w.status(t).Drains
}

func TestASplitAtRestLetsBothSidesBeDrained(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		first, split := newWorld(oneByOne(mode)), int32(2)
		first.take(t, plans.Limits{Until: &split})
		first.goes(t, engine.Finished, plans.Split, split)
		for _, sides := range [][]plans.Side{{plans.Source}, {plans.Destination}, {plans.Source, plans.Destination}} {
			t.Run(fmt.Sprintf("%s, %s", mode, sides), func(t *testing.T) {
				for seed := range uint64(5) {
					w := first.fork(seed)
					if says := w.drainable(t); !strings.HasPrefix(says, "nodes of the destination can be drained, those of the source cannot; names -w lets") {
						t.Errorf("status says %q", says)
					}
					old := map[plans.Side]*corev1.Pod{}
					for _, side := range sides {
						old[side] = w.drain(side, w.slice(side).Start, drainsOf()["cordoned"])
					}
					w.tend(t, w.process())
					for side, pod := range old {
						w.gone(t, side, pod)
					}
					if w.journal.Outcome != plans.Split || w.journal.Done != w.journal.Begun {
						t.Errorf("the journal says %q, done %d of %d begun", w.journal.Outcome, w.journal.Done, w.journal.Begun)
					}
					unbroken(t, w)
					back := w.fork(1)
					walk(t, back, plans.Abort, nil)
					cleanEnd(t, back, back.start)
					w.take(t, plans.Limits{})
					walk(t, w, plans.Move, nil)
				}
			})
		}
	}
}

// A process that tends a plan may die at any write. The next process that moves the plan then finds a
// consistent state.
func TestADeathWhileAPlanIsTendedIsSurvived(t *testing.T) {
	t.Parallel()
	for _, mode := range modes() {
		first, split := newWorld(oneByOne(mode)), int32(2)
		first.take(t, plans.Limits{Until: &split})
		first.goes(t, engine.Finished, plans.Split, split)
		before := first.fork(0)
		first.drain(plans.Source, 0, drainsOf()["cordoned"])
		whole := first.fork(0)
		whole.tend(t, whole.process())
		if whole.writes == first.writes {
			t.Fatal("nothing was written")
		}
		for n := first.writes; n < whole.writes; n++ {
			for k, f := range faults() {
				if !fifth.playsFault(n, k, len(faults())) {
					continue
				}
				w := first.fork(uint64(n))
				r := w.process()
				r.at = once(n, f)
				w.tend(t, r)
				on := w.fork(1)
				on.tend(t, on.process())
				if pod := on.pod(plans.Source, 0); pod == nil || pod.UID == before.pod(plans.Source, 0).UID {
					t.Errorf("%s at write %d: the drain is refused for good", f, n)
				}
				unbroken(t, on)
				on.drains, on.evictions = false, 0
				on.take(t, plans.Limits{})
				walk(t, on, plans.Move, nil)
				walk(t, w, plans.Abort, nil)
				cleanEnd(t, w, w.start)
			}
		}
	}
}
