package doctor

import (
	"cmp"
	"slices"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Diagnosis is what is said of all sets. Its JSON form is stable within an API version.
type Diagnosis struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Context    string `json:"context,omitempty"`
	// Total is how many sets there are, and Movable how many of them could move as they are.
	Total   int `json:"total"`
	Movable int `json:"movable"`
	// Here is how many of the movable ones could move within their cluster only.
	Here    int `json:"onlyHere"`
	Unknown int `json:"unknown"`
	// Items are the sets: those that could not move first.
	Items []Set `json:"items"`
	// Unseen are the rights to look that are missing, once each.
	Unseen []Unseen `json:"unseen,omitempty"`
}

// Unseen is a resource that may not be listed, and what that means.
type Unseen struct {
	Resource string `json:"resource"`
	Group    string `json:"group,omitempty"`
	// Namespaces are where. Empty means the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`
	// Checks were not asked therefore, or not of everything, and Sets is of how many sets. Without checks, sets themselves
	// are not seen.
	Checks []string `json:"checks,omitempty"`
	Sets   int      `json:"sets"`

	of map[plans.Ref]bool
}

// miss notes a right that is missing, for a check of a set, or to see sets at all.
func (d *Diagnosis) miss(r clusters.Right, check string, set plans.Ref) {
	at := slices.IndexFunc(d.Unseen, func(u Unseen) bool {
		return u.Resource == r.Resource && u.Group == r.Group && (len(u.Namespaces) == 0) == (r.Namespace == "")
	})
	if at < 0 {
		at, d.Unseen = len(d.Unseen), append(d.Unseen, Unseen{Resource: r.Resource, Group: r.Group, of: map[plans.Ref]bool{}})
	}
	u := &d.Unseen[at]
	if r.Namespace != "" && !slices.Contains(u.Namespaces, r.Namespace) {
		u.Namespaces = append(u.Namespaces, r.Namespace)
	}
	if check != "" && !slices.Contains(u.Checks, check) {
		u.Checks = append(u.Checks, check)
		slices.Sort(u.Checks)
	}
	if set.Name != "" {
		u.of[set] = true
	}
	u.Sets = len(u.of)
}

// add takes the sets up, and counts them.
func (d *Diagnosis) add(sets []Set) {
	order := []Verdict{No, Unknown, Here, Yes}
	slices.SortStableFunc(sets, func(a, b Set) int {
		return cmp.Compare(slices.Index(order, a.Moves), slices.Index(order, b.Moves))
	})
	for _, s := range sets {
		d.Total++
		switch s.Moves {
		case Yes:
			d.Movable++
		case Here:
			d.Movable, d.Here = d.Movable+1, d.Here+1
		case Unknown:
			d.Unknown++
		case No:
		}
		for _, check := range s.Unasked {
			for _, r := range s.missing[check] {
				d.miss(r, check, s.ref)
			}
		}
	}
	d.Items = append(d.Items, sets...)
	for _, u := range d.Unseen {
		slices.Sort(u.Namespaces)
	}
	slices.SortFunc(d.Unseen, func(a, b Unseen) int { // what hides most is first
		return cmp.Or(cmp.Compare(len(b.Checks), len(a.Checks)), cmp.Compare(a.Resource, b.Resource), cmp.Compare(len(a.Namespaces), len(b.Namespaces)))
	})
}

// cause is one check, and the sets that it is about.
type cause struct {
	check string
	level check.Level
	sets  []Set
}

// causes returns why sets could not move, and then what is worth knowing: what most sets have first.
func (d *Diagnosis) causes() []cause {
	var out []cause
	for _, level := range []check.Level{check.Fail, check.Warn} {
		from := len(out)
		for _, s := range d.Items {
			for _, f := range s.Findings {
				if f.Level != level {
					continue
				}
				at := slices.IndexFunc(out[from:], func(c cause) bool { return c.check == f.Check })
				if at < 0 {
					at, out = len(out)-from, append(out, cause{check: f.Check, level: level})
				}
				if c := &out[from+at]; len(c.sets) == 0 || c.sets[len(c.sets)-1].ref != s.ref {
					c.sets = append(c.sets, s)
				}
			}
		}
		slices.SortStableFunc(out[from:], func(a, b cause) int {
			return cmp.Or(cmp.Compare(len(b.sets), len(a.sets)), cmp.Compare(a.check, b.check))
		})
	}
	return out
}
