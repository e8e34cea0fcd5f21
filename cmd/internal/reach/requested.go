package reach

import (
	"strings"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

// Requested is a plan that is known by its object alone: it was requested in the namespace of the set, and its record is
// where the orchestrator is, in which the user has no right.
type Requested struct {
	*records.Declared
	Home *End
}

// Command returns another command on this plan, ready to be typed. verb may end with a flag.
func (q *Requested) Command(verb string) string {
	verb, flag, _ := strings.Cut(verb, " ")
	return "`" + strings.TrimSpace("stsmigrate "+verb+" "+q.Object.GetName()+q.Home.Flags+program.Given("-n", q.Home.Namespace)+" "+flag) + "`"
}
