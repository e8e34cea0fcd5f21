package scheduling

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// domain is one place of a topology, such as a zone.
type domain struct{ key, value string }

// counts are the pods that rules are about, by the place where they run.
type counts struct {
	affinity, apart, existing map[domain]int
	spread                    []map[string]int // by constraint and place
}

func (c counts) clone() counts {
	out := counts{affinity: maps.Clone(c.affinity), apart: maps.Clone(c.apart), existing: maps.Clone(c.existing)}
	for _, s := range c.spread {
		out.spread = append(out.spread, maps.Clone(s))
	}
	return out
}

// barred returns why a node would not take the pod even if no other pod were there, or "".
func (a *asked) barred(node *corev1.Node) string {
	if a.Pod.Node != "" && a.Pod.Node != node.Name {
		return "other than " + a.Pod.Node + ", which it names"
	}
	if t, found := a.taint(node); found {
		return "with taint " + t.Key
	}
	if ok, err := a.nodes.Match(node); err != nil || !ok {
		return "not what nodeSelector or node affinity ask for"
	}
	for _, s := range a.reach {
		if ok, err := s.Match(node); err != nil || !ok {
			return "where its volume cannot be reached"
		}
	}
	return ""
}

// taint returns a taint that keeps the pod away. A pod that names its node is only kept away by one that would end it.
func (a *asked) taint(node *corev1.Node) (corev1.Taint, bool) {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable { // the taint of that name follows a moment later
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	binding := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute || t.Effect == corev1.TaintEffectNoSchedule && a.Pod.Node == ""
	}
	return scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, a.Spec.Tolerations, binding, false)
}

// full returns why a node has no room for the pod beside those that are there, or "".
func (a *asked) full(s *search, n int, there []*Pod) string {
	node := &s.nodes[n]
	for _, name := range a.wants {
		if a.Pod.takes.requests[name] > node.free(name, there) {
			return "with too little " + string(name)
		}
	}
	for _, want := range a.Pod.takes.ports {
		taken := slices.ContainsFunc(node.ports, want.conflicts)
		for _, p := range there {
			taken = taken || slices.ContainsFunc(p.takes.ports, want.conflicts)
		}
		if taken {
			return fmt.Sprintf("where host port %d is taken", want.port)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(node.limits)) {
		if wanted := ofDriver(a.Pod.Disks, driver); wanted > 0 && wanted > node.limits[driver]-node.attached(driver, there) {
			return "that can attach no more volumes of " + driver
		}
	}
	return ""
}

func ofDriver(disks []Disk, driver string) (n int) {
	for _, d := range disks {
		if d.Driver == driver {
			n++
		}
	}
	return n
}

// place is a node with what stays on it.
type place struct {
	*corev1.Node

	room   amounts // what the pods that stay leave of it
	ports  []hostPort
	limits map[string]int
	disks  map[Disk]bool
}

func (p *place) free(name corev1.ResourceName, there []*Pod) int64 {
	free := p.room[name]
	for _, pod := range there {
		free -= pod.takes.requests[name]
	}
	return free
}

func (p *place) attached(driver string, there []*Pod) (n int) {
	for d := range p.disks {
		if d.Driver == driver {
			n++
		}
	}
	for _, pod := range there {
		n += ofDriver(pod.Disks, driver)
	}
	return n
}

// places puts the pods that stay on their nodes.
func places(w *World) ([]place, map[string]int) {
	out, at := make([]place, len(w.Nodes)), make(map[string]int, len(w.Nodes))
	for n := range w.Nodes {
		node := &w.Nodes[n]
		at[node.Name] = n
		out[n] = place{Node: node, room: amountsOf(node.Status.Allocatable), limits: w.Limits[node.Name], disks: w.Attached[node.Name]}
	}
	for k := range w.Pods {
		n, known := at[w.Pods[k].Node]
		if !known {
			continue
		}
		for name, amount := range w.Pods[k].takes.requests {
			out[n].room[name] -= amount
		}
		out[n].ports = append(out[n].ports, w.Pods[k].takes.ports...)
	}
	return out, at
}

// none are the counts of no pods.
func (a *asked) none() counts {
	c := counts{affinity: map[domain]int{}, apart: map[domain]int{}, existing: map[domain]int{}}
	for range a.Pod.rules.spread {
		c.spread = append(c.spread, map[string]int{})
	}
	return c
}

// count adds a pod on a node to what the rules of the pod that arrives, and its own ones, are about.
func (a *asked) count(w *World, c counts, p *Pod, n int, node *corev1.Node) {
	add := func(to map[domain]int, terms []term) {
		for _, t := range terms {
			if value, there := node.Labels[t.key]; there {
				to[domain{t.key, value}]++
			}
		}
	}
	if allAbout(w, a.Pod.rules.affinity, p) {
		add(c.affinity, a.Pod.rules.affinity)
	}
	for _, t := range a.Pod.rules.apart {
		if t.about(w, p) {
			add(c.apart, []term{t})
		}
	}
	for _, t := range p.rules.apart {
		if t.about(w, &a.Pod) {
			add(c.existing, []term{t})
		}
	}
	for k, s := range a.Pod.rules.spread {
		if a.counted[k][n] && s.about(p, a.Pod.Namespace) {
			c.spread[k][node.Labels[s.key]]++
		}
	}
}

// counts reports whether a node counts for a constraint of the pod.
func (a *asked) counts(s spread, node *corev1.Node) bool {
	for _, other := range a.Pod.rules.spread {
		if _, there := node.Labels[other.key]; !there {
			return false
		}
	}
	return s.count(a.nodes, a.Spec.Tolerations, node)
}

// honors is what a constraint of topology spread asks of the nodes that it counts.
type honors struct{ nodes, taints bool }

func honorsOf(c corev1.TopologySpreadConstraint) honors {
	return honors{
		nodes:  ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor,
		taints: ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor,
	}
}

func (h honors) count(affinity ownNodes, tolerations []corev1.Toleration, node *corev1.Node) bool {
	if h.nodes {
		if ok, _ := affinity.Match(node); !ok {
			return false
		}
	}
	if h.taints {
		binding := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
		if _, found := scheduling.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, binding, false); found {
			return false
		}
	}
	return true
}

// Counts reports whether a constraint of topology spread of a pod counts a node that has its topology.
func Counts(pod *corev1.Pod, c corev1.TopologySpreadConstraint, node *corev1.Node) bool {
	return honorsOf(c).count(nodeaffinity.GetRequiredNodeAffinity(pod), pod.Spec.Tolerations, node)
}

// kept returns why the pods that are anywhere keep the pod away from a node, or "".
func (a *asked) kept(c counts, fewest []int, node *corev1.Node) string {
	if a.Pod.Node != "" {
		return "" // no scheduler is asked
	}
	if !a.close(c, node) {
		return "without the pods that its pod affinity asks for"
	}
	for _, t := range a.Pod.rules.apart {
		if value, there := node.Labels[t.key]; there && c.apart[domain{t.key, value}] > 0 {
			return "with pods that its pod anti-affinity keeps away from"
		}
	}
	for d := range c.existing {
		if value, there := node.Labels[d.key]; there && value == d.value {
			return "with pods whose pod anti-affinity keeps it away"
		}
	}
	for k, s := range a.Pod.rules.spread {
		value, there := node.Labels[s.key]
		if !there {
			return "without label " + s.key + ", over which it is spread"
		}
		self := 0
		if s.pods.Matches(a.Pod.Labels) {
			self = 1
		}
		if c.spread[k][value]+self-fewest[k] > s.maxSkew {
			return "where its topology spread over " + s.key + " lets no more in"
		}
	}
	return ""
}

// close reports whether the pods that the affinity asks for are near a node. The first pod of many that ask for each other
// may go anywhere.
func (a *asked) close(c counts, node *corev1.Node) bool {
	near := true
	for _, t := range a.Pod.rules.affinity {
		value, there := node.Labels[t.key]
		if !there {
			return false
		}
		near = near && c.affinity[domain{t.key, value}] > 0
	}
	return near || len(c.affinity) == 0 && a.ownAffinity
}

// fewest returns how many pods the emptiest place of each constraint has.
func (a *asked) fewest(c counts) []int {
	out := make([]int, len(a.Pod.rules.spread))
	for k, s := range a.Pod.rules.spread {
		first := true
		for value := range a.values[k] {
			if n := c.spread[k][value]; first || n < out[k] {
				out[k], first = n, false
			}
		}
		if first {
			out[k] = noPlace
		}
		if len(a.values[k]) < s.minDomains {
			out[k] = 0
		}
	}
	return out
}

// noPlace is what the emptiest place has where there is none: as in the scheduler, no pod is too many then.
const noPlace = math.MaxInt32

// node selectors, parsed once.
type (
	ownNodes = nodeaffinity.RequiredNodeAffinity
	selector = *nodeaffinity.LazyErrorNodeSelector
)
