package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"
)

// Outcome is what the scheduler can do with the pods of a question.
type Outcome int

const (
	// Fits means that every pod gets a node, whatever the scheduler chooses.
	Fits Outcome = iota
	// Stuck means that some pod gets none, whatever it chooses.
	Stuck
	// Depends means that it depends on its choices.
	Depends
	// Unknown means that there are more choices than were tried.
	Unknown
)

// Verdict is the answer to a question.
type Verdict struct {
	Outcome Outcome
	// Pod is the index of the pod that gets no node, in the order in which the pods arrive, and Why is the reason in the
	// style of the scheduler. After are the choices that come before.
	Pod   int
	Why   string
	After []Choice
	// Evicts reports that the scheduler would have to evict pods of a lower priority.
	Evicts bool
}

// Choice is a pod, by its index, and the node that it gets.
type Choice struct {
	Pod  int
	Node string
}

// maxWork bounds a search, in nodes and pods that were looked at. So the answer depends on no clock.
const maxWork = 2_000_000

// Ask answers a question. A pod of a high priority may get the room of others, which the scheduler evicts for it: that
// it would is not known, so the answer depends on it.
func Ask(w *World, q Question) Verdict {
	s := newSearch(w, q)
	v := s.verdict()
	if v.Outcome != Stuck {
		return v
	}
	of := s.asked[v.Pod]
	if ptr.Deref(of.Spec.PreemptionPolicy, "") == corev1.PreemptNever {
		return v
	}
	without := *w
	without.Pods = slices.DeleteFunc(slices.Clone(w.Pods), func(p Pod) bool { return p.Priority < of.Pod.Priority })
	if len(without.Pods) < len(w.Pods) && newSearch(&without, q).verdict().Outcome != Stuck {
		v.Outcome, v.Evicts = Depends, true
	}
	return v
}

// verdict explores everything.
func (s *search) verdict() Verdict {
	got := s.explore(state{at: slices.Repeat([]int{-1}, len(s.asked))})
	v := s.stuck
	switch {
	case got.can && got.cannot:
		v = s.first
		v.Outcome = Depends
	case s.work > maxWork:
		v = Verdict{Outcome: Unknown}
	case got.cannot:
		v.Outcome = Stuck
	default:
		v = Verdict{}
	}
	return v
}

// search is one question, as far as it is answered.
type search struct {
	world  *World
	nodes  []place
	at     map[string]int // nodes by name
	waves  []Wave
	asked  []*asked // the pods that arrive, in their order
	wave   []int    // by pod, the wave that it comes with
	order  bool     // each pod of a wave waits for the one before
	groups []int    // by node: nodes of a group differ only in how many pods they take
	kinds  []string // by node, or "" for a node that is like no other
	known  map[string]answer
	work   int
	// stuck is the reason on the way that came farthest, and first the one that was found first.
	stuck, first Verdict
	reached      int
	found        bool
}

// asked is a pod that arrives, with what is worked out once.
type asked struct {
	Arrival

	nodes       ownNodes
	wants       []corev1.ResourceName
	reach       []selector
	kind        int      // pods of one kind are alike for every rule
	barredBy    []string // by node
	counted     [][]bool // by constraint and node, whether the node counts
	values      []map[string]bool
	base        counts // of the pods that stay
	ownAffinity bool
}

// state is where the pods are that have arrived: -1 for those that have not.
type state struct{ at []int }

// answer is whether all pods can get a node from a state on, and whether one can end without.
type answer struct{ can, cannot bool }

func (a answer) and(b answer) answer { return answer{a.can || b.can, a.cannot || b.cannot} }

func newSearch(w *World, q Question) *search {
	s := &search{world: w, waves: q.Waves, order: !q.Together, known: map[string]answer{}, reached: -1}
	s.nodes, s.at = places(w)
	told := s.tell()
	bars := map[int]*asked{}
	for n, wave := range q.Waves {
		for _, arrival := range wave.Arrives {
			a := &asked{Arrival: arrival, nodes: nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *arrival.Spec}), kind: told(&arrival)}
			a.wants = slices.DeleteFunc(slices.Sorted(maps.Keys(arrival.Pod.takes.requests)), func(r corev1.ResourceName) bool { return arrival.Pod.takes.requests[r] <= 0 })
			for _, r := range arrival.Reach {
				a.reach = append(a.reach, nodeaffinity.NewLazyErrorNodeSelector(r))
			}
			s.asked, s.wave = append(s.asked, a), append(s.wave, n)
			if like := bars[a.kind]; like != nil {
				a.barredBy, a.counted, a.values, a.base, a.ownAffinity = like.barredBy, like.counted, like.values, like.base, like.ownAffinity
				continue
			}
			bars[a.kind] = a
			s.prepare(a)
		}
	}
	s.group()
	return s
}

// prepare works out what stays the same about a pod.
func (s *search) prepare(a *asked) {
	for n := range s.nodes {
		a.barredBy = append(a.barredBy, a.barred(s.nodes[n].Node))
	}
	for _, c := range a.Pod.rules.spread {
		counted, values := make([]bool, len(s.nodes)), map[string]bool{}
		for n := range s.nodes {
			if counted[n] = a.counts(c, s.nodes[n].Node); counted[n] {
				values[s.nodes[n].Labels[c.key]] = true
			}
		}
		a.counted, a.values = append(a.counted, counted), append(a.values, values)
	}
	a.base = a.none()
	for k := range s.world.Pods {
		if n, there := s.at[s.world.Pods[k].Node]; there {
			a.count(s.world, a.base, &s.world.Pods[k], n, s.nodes[n].Node)
		}
	}
	a.ownAffinity = allAbout(s.world, a.Pod.rules.affinity, &a.Pod)
}

// tell returns what tells the kinds of arriving pods apart. Pods of one set differ in their volumes, and in two labels
// that hardly any rule asks for.
func (s *search) tell() func(*Arrival) int {
	own := map[string]bool{appsv1.StatefulSetPodNameLabel: false, appsv1.PodIndexLabel: false}
	mark := func(p *Pod) {
		selectors := append(slices.Clone(p.rules.affinity), p.rules.apart...)
		for _, c := range p.rules.spread {
			selectors = append(selectors, term{pods: c.pods})
		}
		for _, t := range selectors {
			all, _ := t.pods.Requirements()
			for _, r := range all {
				if _, is := own[r.Key()]; is {
					own[r.Key()] = true
				}
			}
		}
	}
	for k := range s.world.Pods {
		mark(&s.world.Pods[k])
	}
	for _, wave := range s.waves {
		for k := range wave.Leaves {
			mark(&wave.Leaves[k])
		}
		for k := range wave.Arrives {
			mark(&wave.Arrives[k].Pod)
		}
	}
	seen := map[string]int{}
	return func(a *Arrival) int {
		of := maps.Clone(a.Pod.Labels)
		for key, asked := range own {
			if !asked {
				delete(of, key)
			}
		}
		var drivers []string
		for _, d := range a.Pod.Disks {
			drivers = append(drivers, d.Driver)
		}
		slices.Sort(drivers)
		text := fmt.Sprint(of, a.Pod.Node, drivers, a.Pod.takes)
		for _, r := range a.Reach {
			text += r.String()
		}
		if _, known := seen[text]; !known {
			seen[text] = len(seen)
		}
		return seen[text]
	}
}

// look is what a pod finds in a state.
type look struct {
	counts counts
	fewest []int
	there  map[int][]*Pod // by node, the pods that leave later or have arrived
}

// look puts the pods in their places, and counts them.
func (s *search) look(of int, st state) look {
	a := s.asked[of]
	l := look{counts: a.base.clone(), there: map[int][]*Pod{}}
	put := func(p *Pod, n int) {
		l.there[n] = append(l.there[n], p)
		a.count(s.world, l.counts, p, n, s.nodes[n].Node)
	}
	for n := s.wave[of] + 1; n < len(s.waves); n++ {
		for k := range s.waves[n].Leaves {
			if at, known := s.at[s.waves[n].Leaves[k].Node]; known {
				put(&s.waves[n].Leaves[k], at)
			}
		}
	}
	for k, n := range st.at {
		if n >= 0 {
			put(&s.asked[k].Pod, n)
		}
	}
	l.fewest = a.fewest(l.counts)
	s.work += len(s.nodes) + len(st.at)
	return l
}

// why returns why a node does not take a pod, or "".
func (s *search) why(of, n int, l look) string {
	a := s.asked[of]
	if why := a.barredBy[n]; why != "" {
		return why
	}
	if why := a.full(s, n, l.there[n]); why != "" {
		return why
	}
	return a.kept(l.counts, l.fewest, s.nodes[n].Node)
}

// explore tries all choices from a state on, as far as the answer needs them.
func (s *search) explore(st state) (out answer) {
	next := s.next(st)
	if len(next) == 0 {
		return answer{can: true}
	}
	key := s.key(st)
	if known, is := s.known[key]; is {
		return known
	}
	moved := false
	for _, of := range next {
		l := s.look(of, st)
		for _, n := range s.choices(of, st, l) {
			moved = true
			if s.work > maxWork {
				return out
			}
			then := state{slices.Clone(st.at)}
			then.at[of] = n
			if out = out.and(s.explore(then)); out.can && out.cannot {
				return out
			}
		}
	}
	if !moved {
		s.note(next[0], st)
		out.cannot = true
	}
	if s.work <= maxWork {
		s.known[key] = out
	}
	return out
}

// next returns the pods that the scheduler may place now, one of each kind: those of the first wave that has not arrived.
func (s *search) next(st state) (out []int) {
	seen := map[int]bool{}
	for k, n := range st.at {
		switch {
		case n >= 0 || seen[s.asked[k].kind]:
			continue
		case len(out) > 0 && (s.order || s.wave[k] != s.wave[out[0]]):
			return out
		}
		seen[s.asked[k].kind] = true
		out = append(out, k)
	}
	return out
}

// choices returns the nodes that a pod may get, one of those that are alike.
func (s *search) choices(of int, st state, l look) (out []int) {
	holds := s.holds(st)
	seen := map[string]bool{}
	for n := range s.nodes {
		if s.asked[of].barredBy[n] != "" {
			continue
		}
		like := s.kinds[n] + "/" + holds[s.groups[n]]
		if seen[like] || s.why(of, n, l) != "" {
			continue
		}
		seen[like] = true
		out = append(out, n)
	}
	return out
}

// holds says which kinds of arrived pods a group of nodes has.
func (s *search) holds(st state) map[int]string {
	kinds := map[int][]int{}
	for k, n := range st.at {
		if n >= 0 {
			kinds[s.groups[n]] = append(kinds[s.groups[n]], s.asked[k].kind)
		}
	}
	out := map[int]string{}
	for group, list := range kinds {
		slices.Sort(list)
		out[group] = fmt.Sprint(list)
	}
	return out
}

// key is the same for states from which everything goes the same way.
func (s *search) key(st state) string {
	var pending, filled []string
	for k, n := range st.at {
		if n < 0 {
			pending = append(pending, fmt.Sprint(s.asked[k].kind))
		}
	}
	kindOf := map[int]string{}
	for n, group := range s.groups {
		kindOf[group] = s.kinds[n]
	}
	for group, holds := range s.holds(st) {
		filled = append(filled, kindOf[group]+holds)
	}
	slices.Sort(filled)
	return strings.Join(pending, ",") + ";" + strings.Join(filled, ";")
}

// note keeps the reason why a pod gets no node.
func (s *search) note(of int, st state) {
	l := s.look(of, st)
	whys := map[string]int{}
	for n := range s.nodes {
		whys[s.why(of, n, l)]++
	}
	v := Verdict{Pod: of, Why: summary(whys, len(s.nodes))}
	arrived := 0
	for k, n := range st.at {
		if n >= 0 {
			v.After = append(v.After, Choice{k, s.nodes[n].Name})
			arrived++
		}
	}
	if !s.found {
		s.first, s.found = v, true
	}
	if arrived > s.reached {
		s.stuck, s.reached = v, arrived
	}
}

// summary says why no node takes a pod, in the style of the scheduler.
func summary(whys map[string]int, nodes int) string {
	if nodes == 0 {
		return "there are no nodes"
	}
	var out []string
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		out = append(out, fmt.Sprintf("%d %s", whys[why], why))
	}
	return fmt.Sprintf("none of %d nodes can take it: %s", nodes, strings.Join(out, ", "))
}
