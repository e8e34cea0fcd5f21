package preflight

import (
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight/check"
	"github.com/stsmigrate/stsmigrate/preflight/volumes"
)

// Result is how one check came out.
type Result struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// About is what the check wants, in words.
	About string `json:"about"`
	// Level is the worst of its findings.
	Level    check.Level     `json:"level"`
	Findings []check.Finding `json:"findings,omitempty"`
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
	Backends []volumes.Backend `json:"backends,omitempty"`
	// NotRun is how many checks were left out: without the right to look they would
	// only stumble.
	NotRun int `json:"notRun,omitempty"`
}

// Failed gives the findings that block, in the order of the report.
func (r *Report) Failed() []check.Finding { return r.findings(check.Fail) }

// Warned gives the findings that do not block, in the order of the report. Those that
// are ignored are not among them.
func (r *Report) Warned() []check.Finding { return r.findings(check.Warn) }

func (r *Report) findings(l check.Level) []check.Finding {
	var out []check.Finding
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			if f.Level == l && !f.Ignored {
				out = append(out, f)
			}
		}
	}
	return out
}
