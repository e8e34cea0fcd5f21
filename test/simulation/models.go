package simulation

import (
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Models is one cluster of the simulation and its controllers, with nothing that moves. test/models plays the same
// scripts on it and on a real control plane.
type Models struct {
	client.Client // that of a user
	w             *world
	s             *store
}

// NewModels returns a cluster with Ready nodes of these names. The seed decides which controller acts next.
func NewModels(seed uint64, nodes ...string) *Models {
	w := emptyWorld(options{})
	w.rng = rand.New(rand.NewPCG(seed, 11))
	s := newStore("one")
	w.stores = []*store{s}
	for _, name := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Conditions = nodeIsReady()
		s.put(node)
	}
	return &Models{s, w, s}
}

// Watch calls told for every version of every object from now on, and for its end.
func (m *Models) Watch(told func(o client.Object, gone bool)) { m.s.seen = told }

// Rest lets the controllers act until none of them has anything to do.
func (m *Models) Rest() {
	for m.acts() {
	}
}

func (m *Models) acts() bool {
	actors := m.w.actors()
	for _, k := range m.w.rng.Perm(len(actors)) {
		if actors[k].act(m.s) {
			return true
		}
	}
	return false
}

// Evict asks for the eviction of a pod.
func (m *Models) Evict(pod *corev1.Pod) error { return m.w.evicts(m.s, pod) }

// Break lets the application of a pod fail, and Mend lets it serve again.
func (m *Models) Break(pod *corev1.Pod) {
	next := clone(pod)
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	m.w.crashing = append(m.w.crashing, pod.UID)
	m.s.put(next)
}

// Mend is the opposite of Break.
func (m *Models) Mend(pod *corev1.Pod) {
	k := slices.Index(m.w.crashing, pod.UID)
	m.w.crashing = slices.Delete(m.w.crashing, k, k+1)
}

// Report writes an object as the component writes it whose status it has, such as a kubelet.
func (m *Models) Report(o client.Object) { m.s.put(clone(o)) }
