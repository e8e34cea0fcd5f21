package records

import (
	"strings"

	"github.com/stsmigrate/stsmigrate/plans"
)

// MaxReasonBytes limits a reason in bytes, so that it fits into a journal whatever it contains.
const MaxReasonBytes = 4 << 10

// Brief returns a reason in the form for journals and events. A reason may quote an API server, which is
// not trusted. The result is therefore one line of printable text, cut where it is too long.
func Brief(reason string) string {
	if reason = plans.Line(reason); len(reason) <= MaxReasonBytes {
		return reason
	}
	return strings.ToValidUTF8(reason[:MaxReasonBytes], "") + " ... (cut)"
}

// Shortened returns a text of several lines, cut where it is too long for an object's status.
func Shortened(text string) string {
	if len(text) <= 8*MaxReasonBytes {
		return text
	}
	return strings.ToValidUTF8(text[:8*MaxReasonBytes], "") + "... (cut)"
}
