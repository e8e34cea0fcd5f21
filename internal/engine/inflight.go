package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// InFlight is a wave that has left one side and not arrived on the other, and that no process carries on.
type InFlight struct {
	Pods  string       `json:"pods"`            // Pods names the pods of the wave, such as web-3 or web-2..3.
	Since *metav1.Time `json:"since,omitempty"` // Since is when the wave left; missing if that is not known.
	// Down names the pods of the wave that are Ready on neither side; missing if a side was not read.
	Down    []string `json:"down,omitempty"`
	Message string   `json:"message"` // Message is what is down since when, and which nodes cannot be drained meanwhile.
}

// flies fills in the wave that is in flight while no process carries the plan on. The journal knows the wave, and the
// clusters whether it is down.
func (v *View) flies(p *plans.Plan, j *journal.Journal, now time.Time) {
	step, _, _ := j.Next(p)
	if _, flying := j.Places(p); flying == 0 || v.Holder != "" {
		return
	}
	f := &InFlight{Pods: p.Pods(step.Ordinals)}
	since, begun := "", ""
	if left := j.Left(); !left.IsZero() {
		f.Since, since = &metav1.Time{Time: left}, " since "+plans.Clock(left, now)
		begun = ", under way" + since + ","
	}
	down, known := v.notReady(p, step.Ordinals)
	f.Down = down
	are := "is"
	if len(f.Down) > 1 || step.Ordinals.Replicas > 1 {
		are = "are"
	}
	switch {
	case !known:
		f.Down = nil
		f.Message = fmt.Sprintf("%s %s between the two sides%s, by the journal: not both sides could be read", f.Pods, are, since)
	case len(f.Down) == 0:
		f.Message = fmt.Sprintf("the wave of %s%s is not finished, and nothing of it is down now", f.Pods, begun)
	default:
		if len(f.Down) == 1 {
			are = "is"
		}
		f.Message = fmt.Sprintf("%s %s down on both sides%s", strings.Join(f.Down, ", "), are, since)
	}
	if which := v.undrained(); which != "" {
		f.Message += ", no node of " + which + " can be drained"
	}
	v.InFlight = f
}

// notReady names the pods of a wave that are Ready on neither side, the lowest first. known reports that both sides were
// read for all of them.
func (v *View) notReady(p *plans.Plan, wave plans.Slice) (pods []string, known bool) {
	known = true
	for _, o := range v.Ordinals {
		if !wave.Has(o.Ordinal) || o.Source == "Ready" || o.Destination == "Ready" {
			continue
		}
		known = known && o.Source != "?" && o.Destination != "?"
		pods = append(pods, p.Pod(plans.Source, o.Ordinal))
	}
	slices.Reverse(pods)
	return pods, known
}

// undrained names the sides whose budgets let no pod go, or "".
func (v *View) undrained() string {
	var shut []string
	for _, b := range v.Budgets {
		if b.MayGo == 0 {
			shut = append(shut, "the "+string(b.Side))
		}
	}
	if len(shut) == len(plans.Sides()) {
		return "either side"
	}
	return strings.Join(shut, "")
}
