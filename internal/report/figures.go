package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Between is the name of the sum of all spans.
const Between plans.Span = "neither side"

// until returns the time at which a wave was available again, or up to which it has been measured.
func (w Wave) until() time.Time {
	if w.Arrived != nil {
		return w.Arrived.Time
	}
	return w.Left.Add(w.away())
}

// away returns how long a wave was on neither side.
func (w Wave) away() time.Duration {
	sum := 0.0
	for _, s := range plans.AllSpans() {
		sum += w.Seconds[s]
	}
	return inDuration(sum)
}

// count returns how many ordinals a wave has: at most the largest window.
func (w Wave) count() int32 { return int32(len(w.Ordinals)) } //nolint:gosec // it fits

// levels returns how many ordinals were away at every time at which that has changed.
func levels(waves []Wave) []Level {
	changes := map[time.Time]int32{}
	for _, w := range waves {
		changes[w.Left.UTC()] += w.count()
		if w.Arrived != nil {
			changes[w.until().UTC()] -= w.count()
		}
	}
	times := make([]time.Time, 0, len(changes))
	for at := range changes {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	out, count := []Level{}, int32(0)
	for _, at := range times {
		if changes[at] == 0 {
			continue
		}
		count += changes[at]
		out = append(out, Level{metav1.NewMicroTime(at), count})
	}
	return out
}

// figures returns the figures of each span and of their sum, over the waves that have arrived.
func figures(waves []Wave) []Span {
	took := map[plans.Span][]float64{}
	for _, w := range waves {
		if w.Arrived == nil {
			continue
		}
		for _, s := range plans.AllSpans() {
			took[s] = append(took[s], w.Seconds[s])
		}
		took[Between] = append(took[Between], w.away().Seconds())
	}
	var out []Span
	for _, s := range append(plans.AllSpans(), Between) {
		f := Span{Name: s}
		if all := took[s]; len(all) > 0 {
			slices.Sort(all)
			f.Median, f.Longest = (all[(len(all)-1)/2]+all[len(all)/2])/2, all[len(all)-1]
			for _, seconds := range all {
				f.Total += seconds
			}
		}
		if s != plans.Unattended || f.Total > 0 {
			out = append(out, f)
		}
	}
	return out
}
