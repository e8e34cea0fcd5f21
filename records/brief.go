package records

import (
	"strings"

	"github.com/stsmigrate/stsmigrate/plans"
)

// MaxReasonBytes is how long a reason is at most, in bytes, so that it fits into a journal whatever it is made of.
const MaxReasonBytes = 4 << 10

// Brief makes of a reason what journals and events have of it: it may quote an API server, which
// may be anybody's, so it is one line of what can be shown, and cut where it is too long.
func Brief(reason string) string {
	if reason = plans.Line(reason); len(reason) <= MaxReasonBytes {
		return reason
	}
	return strings.ToValidUTF8(reason[:MaxReasonBytes], "") + " ... (cut)"
}

// Shortened is a text of several lines, cut where it is too long to be shown within an object.
func Shortened(text string) string {
	if len(text) <= 8*MaxReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:8*MaxReasonBytes], "") + "... (cut)"
}
