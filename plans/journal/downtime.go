package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Downtime sums the spans of all waves that have arrived.
type Downtime struct {
	// Waves is how many waves have arrived.
	Waves int `json:"waves"`
	// Total is how long each span took, over all waves together.
	Total map[plans.Span]metav1.Duration `json:"total"`
	// Longest is how long each span took at most.
	Longest map[plans.Span]metav1.Duration `json:"longest"`
	// Lasts has the seconds of each span of the last waves, at most 15, the oldest first.
	Lasts [][]float64 `json:"lasts,omitempty"`
}

// maxLasts is of how many waves the usual time is the median. It follows a change, and one wave that took long does not
// move it.
const maxLasts = 15

// with returns the downtime with that of one more wave.
func (d *Downtime) with(took map[plans.Span]time.Duration, seconds []float64) *Downtime {
	next := &Downtime{Waves: 1, Total: map[plans.Span]metav1.Duration{}, Longest: map[plans.Span]metav1.Duration{}}
	if d == nil {
		d = &Downtime{}
	} else {
		next.Waves = d.Waves + 1
	}
	for _, s := range plans.AllSpans() {
		total := d.Total[s].Duration + took[s]
		if total == 0 && s == plans.Unattended {
			continue
		}
		next.Total[s] = metav1.Duration{Duration: total}
		next.Longest[s] = metav1.Duration{Duration: max(took[s], d.Longest[s].Duration)}
	}
	next.Lasts = append(slices.Clone(d.Lasts), seconds)
	next.Lasts = next.Lasts[max(len(next.Lasts)-maxLasts, 0):]
	return next
}

// Usual returns how long a span usually takes: the median over the last waves. A journal of an earlier version has the
// sums alone: then it is the mean.
func (d *Downtime) Usual(s plans.Span) time.Duration {
	var took []float64
	at := slices.Index(plans.Spans(), s)
	for _, wave := range d.Lasts {
		if at >= 0 && at < len(wave) {
			took = append(took, wave[at])
		}
	}
	if len(took) == 0 {
		return d.Total[s].Duration / time.Duration(max(d.Waves, 1))
	}
	slices.Sort(took)
	return inDuration((took[(len(took)-1)/2] + took[len(took)/2]) / 2)
}

// PerWave returns how long a wave is usually on neither side, while a process carries it on.
func (d *Downtime) PerWave() (sum time.Duration) {
	for _, s := range plans.Spans() {
		sum += d.Usual(s)
	}
	return sum
}

// Forecast returns how long the waves that are left will be on neither side, in words, or "" if no wave is known or left.
func (d *Downtime) Forecast(left int) string {
	if d == nil || d.Waves == 0 || left < 1 {
		return ""
	}
	return plans.Forecast(d.Waves, d.PerWave(), time.Duration(left)*d.PerWave())
}

// String returns one line for the user.
func (d *Downtime) String() string {
	var parts []string
	for _, s := range plans.Spans() {
		parts = append(parts, fmt.Sprintf("%s %.2f s (longest %.2f)", s, d.Usual(s).Seconds(), d.Longest[s].Seconds()))
	}
	out := fmt.Sprintf("usually %.2f s on neither side: %s", d.PerWave().Seconds(), strings.Join(parts, ", "))
	if unattended := d.Total[plans.Unattended].Duration; unattended > 0 {
		out += fmt.Sprintf("; for %s more a wave was away and no process carried it on", plans.Brief(unattended))
	}
	return out
}

// DownSeconds is how long the waves were on neither side, in seconds by span.
type DownSeconds struct {
	Waves   int                    `json:"waves"`          // Waves is how many waves have arrived.
	Total   map[plans.Span]float64 `json:"totalSeconds"`   // Total is how long each span took, over all waves together.
	Longest map[plans.Span]float64 `json:"longestSeconds"` // Longest is how long each span took at most.
	Usual   map[plans.Span]float64 `json:"usualSeconds"`   // Usual is the median of each span over the last waves.
}

// InSeconds returns the downtime in seconds, or nil if nothing was measured.
func (d *Downtime) InSeconds() *DownSeconds {
	if d == nil {
		return nil
	}
	out := &DownSeconds{Waves: d.Waves, Total: map[plans.Span]float64{}, Longest: map[plans.Span]float64{}, Usual: map[plans.Span]float64{}}
	for s, took := range d.Total {
		out.Total[s] = took.Seconds()
	}
	for s, took := range d.Longest {
		out.Longest[s] = took.Seconds()
	}
	for _, s := range plans.Spans() {
		out.Usual[s] = d.Usual(s).Seconds()
	}
	return out
}
