package check

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

// Level is the outcome of a check.
type Level string

const (
	// Pass means: no objection.
	Pass Level = "PASS"
	// Warn means: worth knowing; the move continues.
	Warn Level = "WARN"
	// Fail means: nothing is written before it is fixed.
	Fail Level = "FAIL"
)

// Finding is one objection of a check: the object, what was seen, what was expected and the remedy. A remedy
// of several lines begins with a sentence; the following lines are commands to type.
type Finding struct {
	Check string `json:"check"`
	// Level is Fail unless the check sets Warn.
	Level  Level  `json:"level"`
	Object string `json:"object"`
	Saw    string `json:"saw"`
	Want   string `json:"want"`
	Remedy string `json:"remedy"`
	// Ignored reports whether the user who made the plan accepts the finding; Level is Warn then.
	Ignored bool `json:"ignored,omitempty"`
	// Passing reports that the finding is about an answer of an API server that may pass by itself. A user who looks reads
	// it as any other. Who carries a plan out decides nothing upon it (Decided).
	Passing bool `json:"-"`
	// Unseen reports that the finding is about a missing right to look, and not about the set.
	Unseen bool `json:"-"`
}

// String returns the finding in one line, with only the first line of the remedy.
func (f Finding) String() string {
	remedy, _, _ := strings.Cut(f.Remedy, "\n")
	return fmt.Sprintf("%s: %s: %s, expected %s; %s", f.Check, f.Object, f.Saw, f.Want, remedy)
}

// Words joins findings into one sentence, for a plan that is blocked because of them. Beyond
// records.MaxReasonBytes it only counts them.
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

// Decided returns the findings that stop a plan. An API server that has just started refuses for a moment what it grants
// later: where nothing else was found, the error says so, and the caller asks again for as long as for any other refusal
// that may pass.
func Decided(id reasons.ID, failed []Finding) ([]Finding, error) {
	decided := slices.DeleteFunc(slices.Clone(failed), func(f Finding) bool { return f.Passing })
	if len(decided) == 0 && len(failed) > 0 {
		return nil, ErrPassing{ID: id, Findings: failed}
	}
	return decided, nil
}

// ErrPassing lists findings that may pass by themselves.
type ErrPassing struct {
	ID       reasons.ID
	Findings []Finding
}

func (e ErrPassing) Error() string { return Words(e.Findings) }

// ReasonID implements reasons.Reasoned.
func (e ErrPassing) ReasonID() reasons.ID { return e.ID }

// MayPass tells the package answers what the error means.
func (e ErrPassing) MayPass() bool { return true }

// Few returns the first three of a list, and how many more there are.
func Few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Unseen turns a missing right that the move itself does not need into a warning. It returns other errors
// unchanged.
func Unseen(err error, object, resource string) ([]Finding, error) {
	if !apierrors.IsForbidden(err) {
		return nil, err
	}
	return []Finding{{
		Level: Warn, Unseen: true, Object: object, Saw: "you may not look at " + resource, Want: "to be allowed get and list",
		Remedy: "ask for the right, or check it yourself; the move continues without it",
	}}, nil
}

// IgnoreForbidden returns nil for a Forbidden error, and other errors unchanged.
func IgnoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// Refused reports whether err is the refusal of an object by an API server (Invalid, Forbidden or
// BadRequest). A refusal is a finding, not an error.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
