package dashboard

import (
	"cmp"
	"strings"
	"time"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Row is what the page shows of one plan.
type Row struct {
	Namespace   string      `json:"namespace"`
	Plan        string      `json:"plan"`
	Source      string      `json:"source,omitempty"`
	Destination string      `json:"destination,omitempty"`
	State       plans.State `json:"state"`
	// Moved is how many of the Ordinals are on the destination, by the journal.
	Moved    int32 `json:"moved"`
	Ordinals int32 `json:"ordinals"`
	// InFlight is how many ordinals may be on neither side. MaxUnavailable is how many may be unavailable.
	InFlight       int32  `json:"inFlight"`
	MaxUnavailable int32  `json:"maxUnavailable"`
	Reason         string `json:"reason,omitempty"`
	// ReasonID names the reason, and Runbook is the address of the page that explains it.
	ReasonID string     `json:"reasonID,omitempty"`
	Runbook  string     `json:"runbook,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Next     string     `json:"next,omitempty"`
	// Attention reports that the plan needs the user.
	Attention bool `json:"attention,omitempty"`
}

// New returns the row of a plan. Plan and journal are nil as long as there is none, or if it cannot be read.
func New(namespace, name string, state plans.State, p *plans.Plan, j *journal.Journal) Row {
	r := Row{Namespace: namespace, Plan: name, State: state, Attention: state.Attention()}
	if p == nil {
		return r
	}
	r.Source, r.Destination, r.Ordinals, r.MaxUnavailable = p.Source.String(), p.Destination.String(), p.Count, p.MaxUnavailable
	if j == nil {
		return r
	}
	r.Moved, r.InFlight = j.Places(p)
	r.Attention = r.Attention || j.Overdue != ""
	return r
}

// Explained adds the ID of the reason, if it has one, and the address of the page about it.
func (r *Row) Explained(id, runbook string) {
	if id != "" {
		r.ReasonID, r.Runbook = id, runbook
	}
}

// before orders rows: those that need the user first, then those under way, then the others by name.
func before(a, b Row) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Plan, b.Plan), strings.Compare(a.Namespace, b.Namespace))
}

func rank(r Row) int {
	switch {
	case r.Attention:
		return 0
	case r.State.Continues():
		return 1
	case r.State.Ended():
		return 3
	}
	return 2
}
