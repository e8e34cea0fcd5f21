package live

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// downOf returns what is down while no process carries the plan on, or "".
func downOf(v *engine.View) string {
	if v.InFlight == nil {
		return ""
	}
	return plans.Line(v.InFlight.Message)
}

// placesOf returns what is known of the places of the ordinals that leave next, or "".
func placesOf(v *engine.View) string {
	if v.Places == nil {
		return ""
	}
	return plans.Line(v.Places.Message)
}

// Table formats the status as text.
func Table(v *engine.View) string {
	var b strings.Builder
	down := "?"
	if v.Unavailable != nil {
		down = strconv.Itoa(int(*v.Unavailable))
	}
	fmt.Fprintf(&b, "%s  %s -> %s  %s  d=%d unavailable=%s epoch=%d\n", v.Plan, v.Source, v.Destination, v.State, v.MaxUnavailable, down, v.Epoch)
	w := printers.GetNewTabWriter(&b)
	fmt.Fprintln(w, "ORDINAL\tSOURCE\tDESTINATION\tPHASE")
	for _, o := range v.Ordinals {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", o.Ordinal, o.Source, o.Destination, o.Phase)
	}
	_ = w.Flush() // into memory
	var budgets []string
	for _, one := range v.Budgets {
		budgets = append(budgets, fmt.Sprintf("%s %d of %d may go", one.Side, one.MayGo, one.Healthy))
	}
	if v.BudgetsTightSince != nil {
		budgets = append(budgets, "tight since "+v.BudgetsTightSince.UTC().Format("15:04:05 MST"))
	}
	if v.BudgetsTightLongest > 0 {
		budgets = append(budgets, fmt.Sprintf("tight for at most %.1f s per wave", v.BudgetsTightLongest))
	}
	downtime := ""
	if v.Downtime != nil {
		downtime = v.Downtime.String()
	}
	for _, side := range plans.Sides() {
		if why := v.Unseen[side]; why != "" {
			fmt.Fprintf(&b, "unseen:  %s\n", why)
		}
	}
	for _, line := range []struct{ name, value string }{{"step", v.Step}, {"down", downOf(v)}, {"places", placesOf(v)}, {"budgets", strings.Join(budgets, ", ")}, {"drains", v.Drains}, {"added", v.Added}, {"differs", strings.Join(v.Differs, "; ")}, {"names", v.Names}, {"downtime", downtime}, {"forecast", v.Forecast}, {"reason", reasons.Tagged(v.ReasonID, v.Reason)}, {"overdue", reasons.Tagged(v.OverdueID, v.Overdue)}, {"gates", v.Gates}, {"vouched", strings.Join(v.Assurances, "; ")}, {"process", v.Holder}, {"orchestrator", plans.Line(v.Orchestrator)}, {"next", v.Next}} {
		if line.value != "" {
			fmt.Fprintf(&b, "%-8s %s\n", line.name+":", line.value)
		}
	}
	return b.String()
}
