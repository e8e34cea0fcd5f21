package simulation

import (
	"crypto/sha256"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Two worlds that differ in which of two nodes is which are one state. A pod that is not ready makes another one.
func TestStatesThatDifferInTheNamesOfNodesAreOne(t *testing.T) {
	t.Parallel()
	x, w := &exploration{texts: map[client.Object]*text{}}, newWorld(inWaves(plans.Rebind))
	exchanged, names := w.fork(1), strings.NewReplacer("one-node-a", "one-node-b", "one-node-b", "one-node-a")
	s := exchanged.stores[0]
	s.objects, s.order = map[key]client.Object{}, nil
	moved := 0
	for _, o := range w.stores[0].objects {
		raw, err := json.Marshal(o)
		must(err)
		next := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
		must(json.Unmarshal([]byte(names.Replace(string(raw))), next))
		if node, ok := o.(*corev1.Node); ok { // its UID goes with its name
			namesake, _ := get[*corev1.Node](w.stores[0], "", names.Replace(node.Name))
			next.SetUID(namesake.UID)
		}
		if _, ok := o.(*corev1.Pod); ok {
			moved++
		}
		s.objects[keyOf(next)] = next
	}
	s.order = slices.SortedFunc(maps.Keys(s.objects), compareKeys)
	one, other := x.identity(&state{w: w}), x.identity(&state{w: exchanged})
	if moved == 0 || one != other {
		t.Errorf("%d pods are on other nodes: it is another state", moved)
	}
	pod, _ := get[*corev1.Pod](s, blue, setName+"-0")
	pod = clone(pod)
	pod.Status.Conditions = nil
	s.put(pod)
	if one == x.identity(&state{w: exchanged}) {
		t.Error("a pod is no longer ready: it is the same state")
	}
}

// A process that took the plan over and died makes no other state. One that is alive, and can write no more, does, and
// so does one that has died and leaves less that can go wrong.
func TestStatesThatDifferInTheProcessesThatDiedAreOne(t *testing.T) {
	t.Parallel()
	x, w := &exploration{ctx: t.Context(), texts: map[client.Object]*text{}, seen: map[[sha256.Size]byte][]limits{}}, newWorld(threeOrdinals(plans.Rebind))
	takes := func(w *world) *world {
		w = w.fork(1)
		if _, err := w.process().takeOver(t.Context(), plans.Move); err != nil {
			t.Fatal(err)
		}
		return w
	}
	once := takes(w)
	twice := takes(once)
	if once.journal.Epoch != 1 || twice.journal.Epoch != 2 {
		t.Fatalf("the epochs are %d and %d", once.journal.Epoch, twice.journal.Epoch)
	}
	if x.identity(&state{w: once}) != x.identity(&state{w: twice}) {
		t.Error("the process of epoch 1 is dead: it is another state")
	}
	alive := []runnerOf{{epoch: 1}}
	if x.identity(&state{w: once, procs: alive}) == x.identity(&state{w: twice, procs: alive}) {
		t.Error("the process of epoch 1 can write no more: it is the same state")
	}
	by := func(epoch int64, seq int) [sha256.Size]byte {
		w := twice.fork(1)
		edits(w, plans.Source, blue, setName, func(set *appsv1.StatefulSet) { plans.Stamp{Plan: w.plan.ID, Epoch: epoch, Seq: seq}.Put(set) })
		return x.identity(&state{w: w})
	}
	if by(1, 0) != by(2, 0) || by(1, 7) != by(2, 0) {
		t.Error("a stamp that bars nobody makes another state")
	}
	if by(2, 7) == by(2, 0) || by(3, 0) == by(2, 0) {
		t.Error("a stamp that is ahead of the journal makes no other state")
	}
	for _, c := range []struct {
		w    *world
		left limits
		want int
	}{
		{twice, limits{deaths: 1}, 1},
		{once, limits{}, 1},
		{once, limits{deaths: 1}, 1},
		{once, limits{delays: 1}, 2},
		{twice, limits{deaths: 2, delays: 1}, 3},
		{once, limits{deaths: 1, delays: 1}, 3},
	} {
		x.reach(&state{w: c.w, left: c.left})
		if x.count != c.want {
			t.Errorf("with %+v left there are %d states to go on from, expected %d", c.left, x.count, c.want)
		}
	}
}
