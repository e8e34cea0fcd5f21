// Package remarks adds comments to the Roles and consents that commands print.
package remarks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Remarks are the comments that are added to printed objects.
type Remarks struct {
	disks []access.Disk
	users bool
	above string // the first object
}

// Of returns the remarks about disks.
func Of(disks []access.Disk) Remarks { return Remarks{disks: disks} }

// ForUsers returns the remarks for Roles of users. The installed policies limit the volumes of orchestrators alone.
func (r Remarks) ForUsers() Remarks {
	r.users = true
	return r
}

// anyVolume is the remark above a rule by which users may create any volume.
const anyVolume = `
# WARNING: RBAC cannot limit the volumes that these users create. One of them can create a hostPath volume, mount
# it in a pod, and read and write the files of a node. Grant this rule only to users who may do that anyway. For
# others let an orchestrator carry the plan out: the policies limit its account to the disks of its plans.`

// anyPod is the remark above a rule by which placeholders are made.
const anyPod = `
# WARNING: RBAC cannot limit the pods that are created by this rule. A user who has it can run any program in the
# namespace, with each of its Secrets. The policies limit an orchestrator to pods that do nothing. A plan that is
# made with --placeholder off needs no such rule.`

// OfConsent returns what a namespace should know of a plan to which it agrees.
func OfConsent(p *plans.Plan, side plans.Side) Remarks {
	if !p.Placeholder.Used() {
		return Remarks{}
	}
	when := "before an ordinal comes here"
	if side == plans.Source {
		when = "in an abort, before an ordinal comes back here"
	}
	return Remarks{above: fmt.Sprintf("# The plan also makes pods in namespace %s: %s, a pod\n# such as %s takes its place. It has its images and resources, none of its data, and does nothing (placeholder: %s).\n",
		p.On(side).Namespace, when, p.Place(side, p.Start), p.Placeholder.Proof)}
}

// In adds the remarks to an object in YAML, rule by rule: which disk a volume stands for, which rights no Role
// can limit, and what users can do by one of them.
func (r Remarks) In(text string) string {
	const rule = "\n- apiGroups:"
	rules := strings.Split(text, rule)
	for k := 1; k < len(rules); k++ {
		beside := map[string]string{}
		if !strings.Contains(rules[k], "\n  resourceNames:\n") {
			beside["create"] = "RBAC cannot limit this to names"
		}
		rules[k-1] += r.warning(rules[k])
		if strings.Contains(rules[k], "\n  - persistentvolumes\n") {
			for _, d := range r.disks {
				if d.Handle != "" {
					beside[d.Name] = printable(d.Handle)
				}
			}
		}
		lines := strings.Split(rules[k], "\n")
		for n, line := range lines {
			if item, ok := strings.CutPrefix(line, "  - "); ok && beside[strings.Trim(item, `"`)] != "" {
				lines[n] += " # " + beside[strings.Trim(item, `"`)]
			}
		}
		rules[k] = strings.Join(lines, "\n")
	}
	return r.above + strings.Join(rules, rule)
}

// warning returns the remark above a rule by which more can be done than what it is for, or "".
func (r Remarks) warning(rule string) string {
	switch {
	case !strings.Contains(rule+"\n", "\n  - create\n"):
	case strings.Contains(rule, "\n  - pods\n"):
		return anyPod
	case strings.Contains(rule, "\n  - persistentvolumes\n") && r.users:
		return anyVolume
	}
	return ""
}

// printable returns untrusted text in a form that cannot leave its line.
func printable(s string) string {
	if quoted := strconv.QuoteToASCII(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
