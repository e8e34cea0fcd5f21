package preflight

import "github.com/stsmigrate/stsmigrate/internal/preflight/check"

// Description is what a check is about, for users.
type Description struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// Wants is the state that the check requires, and Remedy the general advice.
	Wants  string `json:"wants"`
	Remedy string `json:"remedy"`
	// Worst is the worst level of its findings.
	Worst     check.Level `json:"worst"`
	Ignorable bool        `json:"ignorable,omitempty"`
	// Repeated reports that the check runs again between waves.
	Repeated bool `json:"repeated,omitempty"`
}

// Described returns every check, in the order of the report.
func Described() []Description {
	var out []Description
	for _, c := range catalogue() {
		out = append(out, Description{Group: c.group, Name: c.name, Wants: c.about, Remedy: c.remedy, Worst: c.worst, Ignorable: c.ignorable, Repeated: c.wave != never})
	}
	return out
}
