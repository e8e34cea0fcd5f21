// Package remarks adds comments to the Roles and consents that commands print.
package remarks

import (
	"strconv"
	"strings"

	"github.com/stsmigrate/stsmigrate/preflight/access"
)

// Remarks are the comments that are added to printed objects.
type Remarks struct{ disks []access.Disk }

// Of returns the remarks about disks.
func Of(disks []access.Disk) Remarks { return Remarks{disks} }

// In adds the remarks to an object in YAML, rule by rule: which disk a volume stands for, and which rights no
// Role can limit.
func (r Remarks) In(text string) string {
	const rule = "\n- apiGroups:"
	rules := strings.Split(text, rule)
	for k := 1; k < len(rules); k++ {
		beside := map[string]string{}
		if !strings.Contains(rules[k], "\n  resourceNames:\n") {
			beside["create"] = "RBAC cannot limit this to names"
		}
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
	return strings.Join(rules, rule)
}

// printable returns untrusted text in a form that cannot leave its line.
func printable(s string) string {
	if quoted := strconv.QuoteToASCII(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
