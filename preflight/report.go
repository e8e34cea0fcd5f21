package preflight

import (
	"fmt"
	"strings"

	"github.com/stsmigrate/stsmigrate/plans"
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

// Result is how one check came out.
type Result struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// About is what the check wants, in words.
	About string `json:"about"`
	// Level is the worst of its findings.
	Level    Level     `json:"level"`
	Findings []Finding `json:"findings,omitempty"`
}

// Report is what all checks of a plan came to, in the order of the catalogue. Its JSON
// form is stable within an API version.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Plan       string    `json:"plan"`
	Source     plans.Ref `json:"source"`
	// Destination is where the set is to go.
	Destination plans.Ref `json:"destination"`
	Checks      []Result  `json:"checks"`
	// Backends says, for two clusters, what they must share.
	Backends []Backend `json:"backends,omitempty"`
	// NotRun is how many checks were left out: without the right to look they would
	// only stumble.
	NotRun int `json:"notRun,omitempty"`
}

// Words puts findings into one sentence, for a plan that is held because of them.
// What a large set has too much of is counted.
func Words(found []Finding) string {
	var said []string
	size := 0
	for k, f := range found {
		if size += len(f.String()); k > 0 && size > records.Brevity {
			return fmt.Sprintf("%s; and %d more: `check` lists them", strings.Join(said, "; "), len(found)-k)
		}
		said = append(said, records.Brief(f.String()))
	}
	return strings.Join(said, "; ")
}

// Failed gives the findings that block, in the order of the report.
func (r *Report) Failed() []Finding { return r.findings(Fail) }

// Warned gives the findings that do not block, in the order of the report. Those that
// are ignored are not among them.
func (r *Report) Warned() []Finding { return r.findings(Warn) }

func (r *Report) findings(l Level) []Finding {
	var out []Finding
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if f.Level == l && !f.Ignored {
				out = append(out, f)
			}
		}
	}
	return out
}
