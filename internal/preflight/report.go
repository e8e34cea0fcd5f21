package preflight

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Result is the outcome of one check.
type Result struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// About is the state that the check requires, in words.
	About string `json:"about"`
	// Level is the worst of its findings.
	Level    check.Level     `json:"level"`
	Findings []check.Finding `json:"findings,omitempty"`
}

// Report is the outcome of all checks of a plan, in the order of the catalogue. Its JSON form is stable
// within an API version.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Plan       string    `json:"plan"`
	Source     plans.Ref `json:"source"`
	// Destination is where the set moves to.
	Destination plans.Ref `json:"destination"`
	Checks      []Result  `json:"checks"`
	// Backends lists, for a move between two clusters, what the clusters must share.
	Backends []volumes.Backend `json:"backends,omitempty"`
	// Clients are the Services of the source, beside the governing one, by which clients find the pods.
	Clients []ClientService `json:"clients,omitempty"`
	// NotRun is how many checks were left out because the access checks failed, or because a move of the set is under way:
	// they would only fail for the same reason.
	NotRun int `json:"notRun,omitempty"`
}

// Served says how many endpoints of its own each Service of clients has with each wave, in lines of a plan.
func (r *Report) Served() string {
	var b strings.Builder
	for _, s := range r.Clients {
		left := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Endpoints), " ", ", "), "[]")
		how := "not bridged: it loses them"
		if s.Bridged {
			how = "bridged until finalize: every ordinal is served on both sides"
		}
		fmt.Fprintf(&b, "  Service %s: %s endpoints of its own with the waves; %s\n", s.Name, left, how)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nClients find the pods by:\n" + b.String()
}

// Stumble says why checks were not run.
func (r *Report) Stumble() string {
	for _, c := range r.Checks {
		if c.Name == notMigrating && c.Level == check.Fail {
			return "they would only stumble over the move that is under way"
		}
	}
	return "without the right to look they would only stumble"
}

// Failed returns the findings that block, in the order of the report.
func (r *Report) Failed() []check.Finding { return r.findings(check.Fail) }

// Warned returns the findings that do not block, in the order of the report. It leaves out ignored findings.
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

// Answers returns what is kept of a report: what passed, and what was found, each in one line.
func (r *Report) Answers(at time.Time) journal.Checked {
	out := journal.Checked{At: metav1.Time{Time: at.UTC().Truncate(time.Second)}}
	for _, c := range r.Checks {
		if len(c.Findings) == 0 {
			out.Passed = append(out.Passed, c.Name)
		}
		for _, f := range c.Findings {
			out.Add(journal.Found{Check: c.Name, What: f.String(), Ignored: f.Ignored})
		}
	}
	return out
}

// Names returns the checks that block the plan or warn, as kubectl names objects.
func (r *Report) Names() []string {
	names := []string{}
	for _, c := range r.Checks {
		if c.Level != check.Pass {
			names = append(names, "check/"+c.Name)
		}
	}
	return names
}

// Common lists what both clusters must share so that a volume means the same disk in both.
func (r *Report) Common() string {
	if len(r.Backends) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nBoth clusters must share the following, which this program cannot verify:\n")
	for _, one := range r.Backends {
		fmt.Fprintf(&b, "  %s: %s\n", one.Driver, one.Share)
	}
	return b.String()
}
