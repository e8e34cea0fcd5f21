// Package remarks adds comments to the Roles and consents that commands print.
package remarks

import (
	"strconv"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
)

// Remarks are the comments that are added to printed objects.
type Remarks struct {
	disks []access.Disk
	users bool
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
		if strings.Contains(rules[k], "\n  - persistentvolumes\n") {
			if r.users && strings.Contains(rules[k]+"\n", "\n  - create\n") {
				rules[k-1] += anyVolume
			}
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
	return strings.Join(rules, rule)
}

// printable returns untrusted text in a form that cannot leave its line.
func printable(s string) string {
	if quoted := strconv.QuoteToASCII(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
