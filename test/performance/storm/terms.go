package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// window is a time, and what the orchestrators have requested in it.
type window struct {
	name     string
	from, to time.Time
	// plans are those that came and ended in it, and ordinals theirs.
	plans, ordinals int
	// resting is how many minutes plans were at rest in it, in total.
	resting float64
	of      map[string]asked
	cores   string
	memory  int64         // of the largest orchestrator at its end, in bytes
	cpu     time.Duration // of all orchestrators
}

func (w *window) minutes() float64 { return w.to.Sub(w.from).Minutes() }

// measured are the windows of a run that measures.
type measured struct {
	storm   *storm
	windows []*window
	// moved has the plans at rest, and since when.
	moved map[string]time.Time
}

// measure moves plans of two sizes, one group after the other, while others rest. The requests of both groups and of
// the times of rest give what a plan costs, what an ordinal costs, and what a plan costs in a minute of rest.
func (s *storm) measure(ctx context.Context) error {
	if err := s.populate(ctx); err != nil {
		return err
	}
	groups := map[string][]*moving{}
	for name, g := range map[string]struct{ plans, pods int }{"rest": {s.resting, 1}, "wide": {s.plans, s.pods}, "narrow": {s.plans, 1}} {
		var err error
		if groups[name], err = s.sets(ctx, name, g.plans, g.pods); err != nil {
			return err
		}
	}
	if err := s.replicas.start(s.processes); err != nil {
		return err
	}
	defer s.replicas.stop()
	m := &measured{storm: s, moved: map[string]time.Time{}}
	if err := errors.Join(m.alone(ctx), m.group(ctx, "rest", groups["rest"]), m.rest(ctx)); err != nil {
		return err
	}
	for _, name := range []string{"wide", "narrow"} {
		if err := m.group(ctx, name, groups[name]); err != nil {
			return err
		}
		if err := m.finalize(ctx, name, groups[name]); err != nil {
			return err
		}
	}
	if err := m.stirred(ctx); err != nil {
		return err
	}
	return m.print()
}

// during calls do, and adds its window.
func (m *measured) during(ctx context.Context, name string, do func(context.Context) error) (*window, error) {
	before, err := lookAtCPU()
	if err != nil {
		return nil, err
	}
	m.storm.say("%s", name)
	if err := do(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	after, err := lookAtCPU()
	if err != nil {
		return nil, err
	}
	w := &window{name: name, from: before.at, to: after.at, of: map[string]asked{}, cores: after.since(before), cpu: after.named("orchestrator") - before.named("orchestrator"), memory: m.storm.replicas.most()}
	w.resting = restIn(w.from, w.to, m.moved)
	m.windows = append(m.windows, w)
	return w, nil
}

// restIn returns how many minutes plans were at rest between two times, in total.
func restIn(from, to time.Time, moved map[string]time.Time) (minutes float64) {
	for _, since := range moved {
		if since.Before(to) {
			minutes += to.Sub(later(since, from)).Minutes()
		}
	}
	return minutes
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// alone waits while there is no plan.
func (m *measured) alone(ctx context.Context) error { return m.calm(ctx, "no plan") }

// rest waits while plans are at rest.
func (m *measured) rest(ctx context.Context) error { return m.calm(ctx, "plans at rest") }

func (m *measured) calm(ctx context.Context, name string) error {
	_, err := m.during(ctx, name, func(ctx context.Context) error {
		pause(ctx, m.storm.quiet)
		return ctx.Err()
	})
	return err
}

// group hands a group over and waits until it has moved.
func (m *measured) group(ctx context.Context, name string, all []*moving) error {
	if len(all) == 0 {
		return nil
	}
	w, err := m.during(ctx, name+": handed over and moved", func(ctx context.Context) error {
		if err := m.storm.detach(ctx, all); err != nil {
			return err
		}
		there, err := m.storm.until(ctx, all, "Moved")
		maps.Copy(m.moved, there)
		return err
	})
	if err == nil {
		w.plans, w.ordinals = len(all), len(all)*int(all[0].Replicas)
	}
	return err
}

// finalize finalizes a group.
func (m *measured) finalize(ctx context.Context, name string, all []*moving) error {
	w, err := m.during(ctx, name+": finalized", func(ctx context.Context) error {
		if err := m.storm.finalize(ctx, all); err != nil {
			return err
		}
		for _, one := range all {
			delete(m.moved, one.name)
		}
		return nil
	})
	if err == nil {
		w.plans, w.ordinals = len(all), len(all)*int(all[0].Replicas)
	}
	return err
}

// stirred changes objects of others, which is no business of any plan.
func (m *measured) stirred(ctx context.Context) error {
	if m.storm.foreign == 0 || m.storm.events == 0 {
		return nil
	}
	w, err := m.during(ctx, "volumes of others change", func(ctx context.Context) error { return m.storm.stir(ctx, m.storm.events) })
	if err == nil {
		calm := m.find("plans at rest")
		own := w.cpu - time.Duration(float64(calm.cpu)*w.minutes()/calm.minutes())
		m.storm.say("%.1f us of an orchestrator's CPU time for a change of an object of others", own.Seconds()*1e6/float64(m.storm.events))
	}
	return err
}

func (m *measured) find(name string) *window {
	for _, w := range m.windows {
		if w.name == name {
			return w
		}
	}
	return &window{of: map[string]asked{}}
}

// read sorts the requests of the audit logs into the windows.
func (m *measured) read() error {
	for _, c := range []*cluster.Cluster{m.storm.bed.East, m.storm.bed.West} {
		err := readAudit(c.AuditLog(), func(e audited) {
			for _, w := range m.windows {
				if at := e.RequestReceivedTimestamp; e.ours() && !at.Before(w.from) && at.Before(w.to) {
					w.add(e)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *window) add(e audited) {
	if e.Verb == "watch" {
		return
	}
	if w.of[e.resource()] == nil {
		w.of[e.resource()] = asked{}
	}
	w.of[e.resource()][e.verb()]++
}

// terms are what the requests of one kind depend on.
type terms struct {
	process float64 // for an orchestrator and a minute
	rest    float64 // for a plan at rest and a minute
	plan    float64 // for a plan, whatever its size
	ordinal float64
}

// of returns the terms of what count counts.
func (m *measured) of(count func(*window) int) (t terms) {
	alone, rest := m.find("no plan"), m.find("plans at rest")
	t.process = float64(count(alone)) / alone.minutes()
	if rest.resting > 0 {
		t.rest = (float64(count(rest)) - t.process*rest.minutes()) / rest.resting
	}
	spent := func(group string) (all, plans, ordinals float64) {
		for _, name := range []string{group + ": handed over and moved", group + ": finalized"} {
			w := m.find(name)
			all += float64(count(w)) - t.process*w.minutes() - t.rest*w.resting
			plans, ordinals = float64(w.plans), float64(w.ordinals)
		}
		return all, plans, ordinals
	}
	wide, plans, most := spent("wide")
	narrow, _, least := spent("narrow")
	if plans > 0 && most > least {
		t.ordinal = (wide - narrow) / (most - least)
		t.plan = narrow/plans - t.ordinal*least/plans
	}
	t.process /= float64(m.storm.processes)
	return t
}

// print prints the terms by kind of request, and the windows.
func (m *measured) print() error {
	if err := m.read(); err != nil {
		return err
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "requests\tper ordinal\tper plan\tper plan at rest and minute\tper process and minute\t\n")
	row := func(name string, count func(*window) int) {
		t := m.of(count)
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.3f\t%.2f\t\n", name, t.ordinal, t.plan, t.rest, t.process)
	}
	for _, resource := range m.resources() {
		row(resource, func(w *window) int { return w.of[resource].all() })
	}
	sum := func(count func(asked) int) func(*window) int {
		return func(w *window) (n int) {
			for _, a := range w.of {
				n += count(a)
			}
			return n
		}
	}
	row("all", sum(asked.all))
	row("of these, writes", sum(asked.writes))
	_ = w.Flush() // into memory
	fmt.Fprintln(&out)
	fmt.Fprintf(w, "window\tseconds\trequests\tper second\tmost memory of one\t\n")
	for _, at := range m.windows {
		n := sum(asked.all)(at)
		fmt.Fprintf(w, "%s\t%.1f\t%d\t%.2f\t%d MiB\t\n", at.name, at.to.Sub(at.from).Seconds(), n, float64(n)/at.to.Sub(at.from).Seconds(), at.memory>>20)
	}
	_ = w.Flush() // into memory
	fmt.Fprintln(&out)
	for _, at := range m.windows {
		fmt.Fprintf(&out, "%s: %s\n", at.name, at.cores)
	}
	fmt.Printf("\n%s", out.String())
	return nil
}

// resources returns the resources of all windows, those first that plans of ten ordinals ask for most.
func (m *measured) resources() []string {
	all := map[string]float64{}
	for _, w := range m.windows {
		for r := range w.of {
			t := m.of(func(w *window) int { return w.of[r].all() })
			all[r] = t.ordinal*10 + t.plan
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
}
