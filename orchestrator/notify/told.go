package notify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// quoting returns the IDs of the reasons that quote a pod, a gate, a driver or the program of another cluster behind
// the first colon.
func quoting() []string {
	return []string{"GateFailed", "GateNotPassed", "PodNotReady", "OrdinalDown", "ExportConflict", "ExportNotReady", "VolumeAttached"}
}

var (
	// foreign matches the words of a reason behind which another program is quoted: a webhook or a policy, an API
	// server that repeats what it refuses, a pod, or a text that could not be read.
	foreign = regexp.MustCompile(`\bdenied (?:the )?request\b|\bis invalid:|\bfailed calling webhook(?: "[^"]*")?|\bcannot be handled as\b|` +
		`\bcannot unmarshal\b|\bmap\[|\bnot Ready:|\bnot scheduled:|\bwithout effect:`)
	// written matches reasons that may quote the text of a gate or of a patch, up to where they do.
	written = regexp.MustCompile(`\bgate [a-z0-9-]+:|\bspec\.gates\b\S*|\bpatch(?:es)?\b[^:]*:|\bspec cannot be read:`)
)

// Told returns what a message says of a reason: its text, without what it quotes of others. more is the command that
// shows the rest. The readers of messages may not be allowed to see what the users of the clusters see.
func Told(id, reason, more string) string {
	text := strings.TrimPrefix(reason, "overdue: ")
	late, end := reason[:len(reason)-len(text)], len(text)
	if at := foreign.FindStringIndex(text); at != nil {
		end = at[1]
	}
	switch at := strings.Index(text, ": "); {
	case slices.Contains(quoting(), id) && at >= 0:
		end = min(end, at)
	case id == "" || id == "DeclarationInvalid":
		if at := written.FindStringIndex(text); at != nil {
			end = min(end, at[1])
		}
	}
	if end == len(text) {
		return reason
	}
	said := strings.TrimRight(text[:end], ":[ ")
	if strings.Count(said, "(") > strings.Count(said, ")") {
		said += ")"
	}
	if id != "" {
		said += " (" + id + ")"
	}
	return fmt.Sprintf("%s%s: %s shows the rest", late, said, more)
}
