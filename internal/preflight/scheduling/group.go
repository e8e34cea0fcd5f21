package scheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// group finds the nodes that need not be told apart. Those of a group differ at most in how many of the pods they take:
// any of them will do as long as the group has room. Groups of one kind may be swapped.
func (s *search) group() {
	narrow, alike, leaving := s.narrow(), s.alike(), s.leaving()
	counted := s.topologies(narrow, alike)
	var single, wide, tight []string // the topologies for which a node stands alone, those of many nodes, all of one node
	for _, key := range slices.Sorted(maps.Keys(counted)) {
		switch {
		case !narrow[key]:
			wide = append(wide, key)
			continue
		case counted[key]:
			single = append(single, key)
		}
		tight = append(tight, key)
	}
	known := map[string]int{}
	for n := range s.nodes {
		has := func(key string) bool { _, there := s.nodes[n].Labels[key]; return there }
		group := s.bars(n)
		for _, key := range slices.Concat(wide, single) {
			if group += fmt.Sprintf(" %s %t", key, has(key)); !narrow[key] {
				group += fmt.Sprintf(" %q", s.nodes[n].Labels[key])
			}
		}
		kind := group
		if alone := !alike || slices.ContainsFunc(single, has); alone {
			group += fmt.Sprint(" node ", n)
			kind += s.roomFor(n)
			for _, key := range tight {
				kind += s.standing(domain{key, s.nodes[n].Labels[key]})
			}
			if !alike || leaving[n] {
				kind = group
			}
		}
		if _, is := known[group]; !is {
			known[group] = len(known)
		}
		s.groups, s.kinds = append(s.groups, known[group]), append(s.kinds, kind)
	}
}

// topologies returns those that a rule names, and whether it matters in which place of them a pod is. Of a topology of
// single nodes, anti-affinity only says how many pods a node takes.
func (s *search) topologies(narrow map[string]bool, alike bool) map[string]bool {
	counted := map[string]bool{}
	for _, a := range s.asked {
		for _, t := range a.Pod.rules.affinity {
			counted[t.key] = true
		}
		for _, c := range a.Pod.rules.spread {
			counted[c.key] = true
		}
		for _, t := range a.Pod.rules.apart {
			counted[t.key] = counted[t.key] || !narrow[t.key] || !alike
		}
		for d := range a.base.existing {
			counted[d.key] = counted[d.key] || !narrow[d.key]
		}
	}
	for _, wave := range s.waves {
		for _, p := range wave.Leaves {
			for _, t := range p.rules.apart {
				counted[t.key] = counted[t.key] || !narrow[t.key]
			}
		}
	}
	return counted
}

// leaving returns the nodes from which a pod leaves.
func (s *search) leaving() map[int]bool {
	out := map[int]bool{}
	for _, wave := range s.waves {
		for _, p := range wave.Leaves {
			if n, known := s.at[p.Node]; known {
				out[n] = true
			}
		}
	}
	return out
}

// alike reports whether all pods that arrive take the same of a node, and the same rules are about them all.
func (s *search) alike() bool {
	if len(s.asked) == 0 {
		return true
	}
	first := s.asked[0]
	of := func(a *asked) string {
		drivers := map[string]int{}
		for _, d := range a.Pod.Disks {
			drivers[d.Driver]++
		}
		return fmt.Sprint(drivers, a.Pod.takes, a.Pod.Priority)
	}
	for _, a := range s.asked[1:] {
		if of(a) != of(first) || !s.sameRules(a, first) {
			return false
		}
	}
	return true
}

// sameRules reports whether the same rules are about two pods.
func (s *search) sameRules(a, b *asked) bool {
	one, two := a.base, b.base
	same := maps.Equal(one.affinity, two.affinity) && maps.Equal(one.apart, two.apart) && maps.Equal(one.existing, two.existing)
	for _, from := range s.asked {
		for _, t := range slices.Concat(from.Pod.rules.affinity, from.Pod.rules.apart) {
			same = same && t.about(s.world, &a.Pod) == t.about(s.world, &b.Pod)
		}
		for _, c := range from.Pod.rules.spread {
			same = same && c.pods.Matches(a.Pod.Labels) == c.pods.Matches(b.Pod.Labels)
		}
	}
	for _, wave := range s.waves {
		for k := range wave.Leaves {
			for _, t := range wave.Leaves[k].rules.apart {
				same = same && t.about(s.world, &a.Pod) == t.about(s.world, &b.Pod)
			}
			for j, t := range a.Pod.rules.apart {
				same = same && t.about(s.world, &wave.Leaves[k]) == b.Pod.rules.apart[j].about(s.world, &wave.Leaves[k])
			}
		}
	}
	return same
}

// narrow returns the topologies of which each place is one node, such as the host name.
func (s *search) narrow() map[string]bool {
	out, seen := map[string]bool{}, map[domain]bool{}
	for n := range s.nodes {
		for key, value := range s.nodes[n].Labels {
			if _, known := out[key]; !known {
				out[key] = true
			}
			if seen[domain{key, value}] {
				out[key] = false
			}
			seen[domain{key, value}] = true
		}
	}
	return out
}

// bars says which pods a node would not take at all, and which of their constraints count it.
func (s *search) bars(n int) string {
	var b strings.Builder
	seen := map[int]bool{}
	for _, a := range s.asked {
		if seen[a.kind] {
			continue
		}
		seen[a.kind] = true
		fmt.Fprint(&b, a.barredBy[n] == "")
		for k := range a.counted {
			fmt.Fprint(&b, a.counted[k][n])
		}
	}
	return b.String()
}

// standing says what the rules of the pods have counted in a place that is one node.
func (s *search) standing(d domain) string {
	var b strings.Builder
	seen := map[int]bool{}
	for _, a := range s.asked {
		if seen[a.kind] {
			continue
		}
		seen[a.kind] = true
		fmt.Fprint(&b, " ", a.base.affinity[d], a.base.apart[d], a.base.existing[d])
		for k, c := range a.Pod.rules.spread {
			if c.key == d.key {
				fmt.Fprint(&b, " ", a.base.spread[k][d.value])
			}
		}
	}
	return b.String()
}

// roomFor says how many of the pods a node takes beside those that are there now.
func (s *search) roomFor(n int) string {
	node, a := &s.nodes[n], s.asked[0]
	most := int64(len(s.asked))
	for name, wanted := range a.Pod.takes.requests {
		if wanted > 0 {
			most = min(most, max(node.room[name], 0)/wanted)
		}
	}
	for _, want := range a.Pod.takes.ports {
		most = min(most, 1)
		if slices.ContainsFunc(node.ports, want.conflicts) {
			most = 0
		}
	}
	for driver, limit := range node.limits {
		if wanted := ofDriver(a.Pod.Disks, driver); wanted > 0 {
			most = min(most, int64(max(limit-node.attached(driver, nil), 0)/wanted))
		}
	}
	return fmt.Sprint(" takes ", most)
}
