package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// missing is one finding about all rights that a user lacks on a side, with the rules that give them: to ask for them one
// after the other would cost as many nights. Each right has the verbs that are denied. stranded reports whether the user may
// delete the pods that a controller does not come to.
func missing(i check.Inspection, side plans.Side, rights []part.Right, stranded bool) []check.Finding {
	rights = slices.DeleteFunc(rights, func(r part.Right) bool { return len(r.Verbs) == 0 })
	f := check.Finding{
		Object: fmt.Sprintf("the %s (%s)", side, i.Plan.On(side).Context), Want: "the right to do so", Passing: true,
	}
	than := ""
	switch {
	case len(rights) == 0 && stranded:
		return nil
	case len(rights) == 0:
		f.Level, f.Passing, than = check.Warn, false, "an abort from pods that do not work would wait for a user who deletes those that their set's controller does not come to; "
	case i.Draft && !slices.ContainsFunc(rights, looks):
		f.Level, f.Want, than = check.Warn, "the right to do so, if you carry the plan out yourself", "apply asks again; "
	}
	if !stranded {
		rights = append(rights, ForStranded(i.Plan, side))
	}
	if slices.ContainsFunc(rights, makesPods) {
		than += "make the plan with --placeholder off, which creates no pods; or "
	}
	var saw []string
	for _, r := range rights {
		saw = append(saw, strings.Join(r.Verbs, ", ")+" "+r.Where(i.Plan, side))
	}
	f.Saw = "you may not " + strings.Join(saw, "; ")
	f.Remedy = fmt.Sprintf("%sask for the Roles that `stsmigrate rbac %s prints, or for these rules:\n%s", than, rbacFor(i), rulesToAsk(i.Plan, side, rights))
	return []check.Finding{f}
}

// makesPods reports whether a right is to make placeholders: nothing else of a plan is a pod that it makes.
func makesPods(r part.Right) bool { return r.Resource == "pods" && slices.Contains(r.Verbs, "create") }

// rbacFor returns the arguments of rbac that print the Roles of who lacks a right.
func rbacFor(i check.Inspection) string {
	switch {
	case i.Orchestrated != nil:
		return "--plan FILE`"
	case i.Draft:
		return i.Plan.Source.Typed() + " --user NAME` with your flags"
	}
	return "--plan FILE --user NAME`"
}

// looks reports whether a right has a verb without which nothing can be planned.
func looks(r part.Right) bool {
	return slices.Contains(r.Verbs, "get") || slices.Contains(r.Verbs, "list")
}

// rulesToAsk returns rights as the rules of a ClusterRole, and of a Role in each namespace, one rule a line.
func rulesToAsk(p *plans.Plan, side plans.Side, rights []part.Right) string {
	rules := map[string][]string{}
	for _, r := range rights {
		in := "# ClusterRole"
		if !r.ClusterWide {
			in = "# Role in namespace " + r.In(p, side)
		}
		if r.Resource == "persistentvolumes" {
			r = about(r, r.Names)
		}
		for _, rule := range policyRules(r) {
			rules[in] = append(rules[in], "- "+oneLine(rule))
		}
	}
	var out []string
	for _, in := range slices.Sorted(maps.Keys(rules)) {
		out = append(out, in, "rules:")
		out = append(out, rules[in]...)
	}
	return strings.Join(out, "\n")
}

// oneLine returns a rule as YAML in one line. Names are quoted: that of an object may be a number.
func oneLine(r rbacv1.PolicyRule) string {
	list := func(of []string) string {
		raw, _ := json.Marshal(of) // strings
		return strings.ReplaceAll(string(raw), `","`, `", "`)
	}
	names := ""
	if len(r.ResourceNames) > 0 {
		names = ", resourceNames: " + list(r.ResourceNames)
	}
	return fmt.Sprintf("{apiGroups: %s, resources: %s%s, verbs: [%s]}", list(r.APIGroups), list(r.Resources), names, strings.Join(r.Verbs, ", "))
}
