package reasons

import (
	"fmt"
	"strings"
)

// docsURL is where the pages are read, and pageURL where docs/reasons.md is. Alerts link to it.
const (
	docsURL = "https://github.com/stsmigrate/stsmigrate/blob/main/docs/"
	pageURL = docsURL + "reasons.md"
)

// CheckPage returns the address of the section about a check.
func CheckPage(name string) string { return docsURL + "checks.md#" + name }

// Runbook returns the address of the explanation of a reason, or of the whole page for "".
func Runbook(id ID) string {
	if id == "" {
		return pageURL
	}
	return pageURL + "#" + strings.ToLower(string(id))
}

// titles are the headings of the topics.
func titles() map[string]string {
	return map[string]string{
		"process": "The process that carries the plan out", "sets": "Sets, ordinals and pods", "storage": "Claims and volumes",
		"budgets": "Budgets and drains", "gates": "Gates and names", "records": "Records and requests",
	}
}

// Page returns docs/reasons.md: every reason under a heading of its own.
func Page(table []Explanation) string {
	var b strings.Builder
	b.WriteString(`# Reasons

Every reason for which a plan is blocked, waits or refuses a request has an ID. ` + "`stsmigrate status PLAN`" + ` shows
it in brackets behind the text, ` + "`-o json`" + ` as reasonID, the StatefulSetMigration as the reason of its condition
Stalled, and Events in their message. ` + "`stsmigrate explain ID`" + ` prints the same as this page, without a network.

Words in capitals, such as PLAN, NAMESPACE and POD, stand for names that the reason itself has. IDs never change
their meaning.
`)
	topic := ""
	for _, e := range table {
		if e.Topic != topic {
			topic = e.Topic
			fmt.Fprintf(&b, "\n## %s\n", titles()[topic])
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s\n\n", e.ID, wrapped(e.What), wrapped("Unchanged: "+e.Unchanged))
		for k, a := range e.Do {
			fmt.Fprintf(&b, "%d. `%s`\n%s\n", k+1, a.Run, indented(a.Why))
		}
	}
	return b.String()
}

// pageWidth is the longest line of prose.
const pageWidth = 105

// wrapped breaks a text into lines.
func wrapped(text string) string {
	var b strings.Builder
	used := 0
	for k, word := range strings.Fields(text) {
		switch {
		case k == 0:
		case used+1+len(word) > pageWidth:
			b.WriteString("\n")
			used = 0
		default:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}

func indented(text string) string {
	return "   " + strings.ReplaceAll(wrapped(text), "\n", "\n   ")
}
