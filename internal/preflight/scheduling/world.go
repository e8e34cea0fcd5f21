package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// World is a cluster as its scheduler sees it.
type World struct {
	Nodes []corev1.Node
	// Pods are those that have a node and stay, those that have ended left out.
	Pods []Pod
	// Namespaces are the labels of namespaces by name. Those of a namespace that is missing are not known.
	Namespaces map[string]labels.Set
	// Limits are how many volumes of a driver may be attached to a node, by node and driver, and Attached those that are,
	// without those of the pods that leave.
	Limits   map[string]map[string]int
	Attached map[string]map[Disk]bool
}

// Question is which pods come, and which ones leave the same cluster before.
type Question struct {
	Waves []Wave
	// Together reports that the pods of a wave are created at the same time. Otherwise each waits for the one before it.
	Together bool
}

// Wave is what leaves and arrives in one step.
type Wave struct {
	Leaves  []Pod
	Arrives []Arrival
}

// Arrival is a pod that is to be placed.
type Arrival struct {
	Pod Pod
	// Spec is its spec: nodes are chosen by it.
	Spec *corev1.PodSpec
	// Reach is where its volumes can be reached: each must match.
	Reach []*corev1.NodeSelector
}

// in reports whether a term is about the pods of a namespace.
func (t term) in(w *World, namespace string) bool {
	if t.namespaces[namespace] {
		return true
	}
	of, known := w.Namespaces[namespace]
	return t.selected.Empty() || known && t.selected.Matches(of)
}

// about reports whether a term is about a pod.
func (t term) about(w *World, p *Pod) bool { return t.in(w, p.Namespace) && t.pods.Matches(p.Labels) }

// allAbout reports whether all terms are about a pod. Pod affinity looks for pods of which that is so.
func allAbout(w *World, terms []term, p *Pod) bool {
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t term) bool { return !t.about(w, p) })
}

// about reports whether a spread counts a pod for one of that namespace.
func (s spread) about(p *Pod, namespace string) bool {
	return !p.Going && p.Namespace == namespace && !s.pods.Empty() && s.pods.Matches(p.Labels)
}

// Means reports whether a term of a pod is about another one.
func (w *World) Means(of *corev1.Pod, t corev1.PodAffinityTerm, other *corev1.Pod) bool {
	parsed, err := termOf(of, t)
	return err == nil && parsed.about(w, &Pod{Namespace: other.Namespace, Labels: other.Labels})
}

// Spreads reports whether a topology spread constraint of a pod counts another one.
func Spreads(of *corev1.Pod, c corev1.TopologySpreadConstraint, other *corev1.Pod) bool {
	pods, err := selects(of.Labels, c.LabelSelector, c.MatchLabelKeys, nil)
	return err == nil && spread{pods: pods}.about(&Pod{Namespace: other.Namespace, Labels: other.Labels}, of.Namespace)
}
