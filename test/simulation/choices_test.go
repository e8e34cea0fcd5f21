package simulation

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// A controller that goes through its objects, and for each through others, does each thing that it could do once.
func TestEveryWayIsChosenOnce(t *testing.T) {
	t.Parallel()
	asks := map[string]bool{"a2": true, "a3": true, "c1": true, "late": true}
	act := func(w *world) string {
		for outer := range shuffle(w, []string{"a", "b", "c"}) {
			for inner := range shuffle(w, []string{"1", "2", "3"}) {
				if asks[outer+inner] {
					return outer + inner
				}
			}
		}
		return ""
	}
	var did []string
	w := &world{choices: &choices{}}
	for {
		patient := w.chance(4)
		what := act(w)
		if !w.choices.repeated {
			did = append(did, map[bool]string{true: "at once ", false: "then "}[patient]+what)
		}
		if !w.choices.next() {
			break
		}
	}
	want := []string{"at once a2", "at once a3", "at once c1", "then a2", "then a3", "then c1"}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("what a controller did in turn (-want +got):\n%s", diff)
	}
	clear(asks)
	w.choices = &choices{}
	if what := act(w); what != "" || w.choices.next() {
		t.Errorf("a controller that has nothing to do did %q, or is asked again", what)
	}
}

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
