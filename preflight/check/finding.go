package check

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/records"
)

// Level says how a check came out.
type Level string

const (
	// Pass means: nothing to object to.
	Pass Level = "PASS"
	// Warn means: worth knowing; the move goes on.
	Warn Level = "WARN"
	// Fail means: nothing is written before it is mended.
	Fail Level = "FAIL"
)

// Finding is one thing that a check objects to: the object, what was seen, what was
// expected and what to do. A remedy of several lines begins with a sentence; what
// follows is there to be typed.
type Finding struct {
	Check string `json:"check"`
	// Level is Fail unless the check says Warn.
	Level  Level  `json:"level"`
	Object string `json:"object"`
	Saw    string `json:"saw"`
	Want   string `json:"want"`
	Remedy string `json:"remedy"`
	// Ignored says that the person who made the plan accepts it; Level is Warn then.
	Ignored bool `json:"ignored,omitempty"`
}

// String gives the finding in one line, without the lines of the remedy after its
// first.
func (f Finding) String() string {
	remedy, _, _ := strings.Cut(f.Remedy, "\n")
	return fmt.Sprintf("%s: %s: %s, expected %s; %s", f.Check, f.Object, f.Saw, f.Want, remedy)
}

// Words puts findings into one sentence, for a plan that is held because of them.
// What a large set has too much of is counted.
func Words(found []Finding) string {
	var said []string
	size := 0
	for k, f := range found {
		if size += len(f.String()); k > 0 && size > records.MaxReasonBytes {
			return fmt.Sprintf("%s; and %d more: `check` lists them", strings.Join(said, "; "), len(found)-k)
		}
		said = append(said, records.Brief(f.String()))
	}
	return strings.Join(said, "; ")
}

// Few gives the first of a list, and how many more there are.
func Few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Unseen turns a missing right that the move itself does not need into a warning. Other
// errors stay errors.
func Unseen(err error, object, resource string) ([]Finding, error) {
	if !apierrors.IsForbidden(err) {
		return nil, err
	}
	return []Finding{{
		Level: Warn, Object: object, Saw: "you may not look at " + resource, Want: "to be allowed get and list",
		Remedy: "ask for the right, or look yourself; the move goes on without it",
	}}, nil
}

// IgnoreForbidden drops the answer that something may not be read.
func IgnoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// Refused says whether an API server answered that it does not want the object, which
// is a finding, and no error.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
