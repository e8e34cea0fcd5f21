package pods

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// ownNamespace warns of rules that keep the members of the set apart, or together, and mean those of one namespace: while
// the set is in two, or from then on, they mean something else. It is about the way there: between waves warnings are not read.
func ownNamespace(i check.Inspection, of map[string]labels.Set) []check.Finding {
	set, err := i.Receives()
	if err != nil || i.Plan.Count < 2 || i.Plan.Source.Namespace == i.Plan.Destination.Namespace {
		return nil
	}
	first := i.Plan.End() - 1
	m := members{
		Inspection: i, world: scheduling.World{Namespaces: of}, pod: build.Pod(set, first),
		here: build.Pod(i.Now.Set, i.Plan.Start), there: build.Pod(set, i.Plan.Start), was: build.Pod(i.Now.Set, first), together: len(here(i)) > 1,
	}
	revision(set, m.pod)
	revision(set, m.there)
	m.was.Labels[appsv1.ControllerRevisionHashLabelKey], m.here.Labels[appsv1.ControllerRevisionHashLabelKey] = m.pod.Labels[appsv1.ControllerRevisionHashLabelKey], m.pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	var out []check.Finding
	affinity := m.pod.Spec.Affinity
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if a := affinity.PodAntiAffinity; a != nil {
		out = append(out, m.required("podAntiAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution)...)
		out = append(out, m.preferred("podAntiAffinity", a.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if a := affinity.PodAffinity; a != nil {
		out = append(out, m.required("podAffinity", a.RequiredDuringSchedulingIgnoredDuringExecution)...)
		out = append(out, m.preferred("podAffinity", a.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return append(out, m.spread()...)
}

// members are pods of the set: the first one that arrives, as it will be and as it was, and another one on either side.
type members struct {
	check.Inspection

	world                 scheduling.World
	pod, was, here, there *corev1.Pod
	together              bool // both sides are in one cluster
}

// shifts reports whether a term that is about members of the set means others after the move, or during it.
func (m members) shifts(t corev1.PodAffinityTerm) bool {
	there := m.world.Means(m.pod, t, m.there)
	if m.together {
		return there != m.world.Means(m.pod, t, m.here)
	}
	return !there && m.world.Means(m.was, t, m.here)
}

func (m members) required(rule string, terms []corev1.PodAffinityTerm) []check.Finding {
	both := slices.Clone(terms)
	var key string
	for k := range both {
		if m.shifts(both[k]) {
			key, both[k] = both[k].TopologyKey, m.widened(both[k])
		}
	}
	return m.finding(key, "required "+named(rule), rule, map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": both})
}

func (m members) preferred(rule string, terms []corev1.WeightedPodAffinityTerm) []check.Finding {
	both := slices.Clone(terms)
	var key string
	for k := range both {
		if m.shifts(both[k].PodAffinityTerm) {
			key, both[k].PodAffinityTerm = both[k].PodAffinityTerm.TopologyKey, m.widened(both[k].PodAffinityTerm)
		}
	}
	return m.finding(key, "preferred "+named(rule), rule, map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": both})
}

func named(rule string) string {
	return map[string]string{"podAntiAffinity": "pod anti-affinity", "podAffinity": "pod affinity"}[rule]
}

// widened is a term about the members of both namespaces.
func (m members) widened(t corev1.PodAffinityTerm) corev1.PodAffinityTerm {
	for _, side := range plans.Sides() {
		if name := m.Plan.On(side).Namespace; !slices.Contains(t.Namespaces, name) {
			t.Namespaces = append(slices.Clone(t.Namespaces), name)
		}
	}
	return t
}

// finding is about the rule of a topology, with the patch that widens it. It is none without one.
func (m members) finding(key, called, rule string, patched map[string]any) []check.Finding {
	if key == "" {
		return nil
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"affinity": map[string]any{rule: patched}}}}})
	if err != nil {
		return nil
	}
	return []check.Finding{{
		Level: check.Warn, Object: m.first(), Saw: fmt.Sprintf("its %s over %s does not see the members in both namespaces: %s", called, key, m.consequence(rule)),
		Want: "a rule about the members of " + m.Plan.Source.Namespace + " and " + m.Plan.Destination.Namespace, Remedy: "name both for the time of the move with --patch '" + string(text) + "', and take " + m.Plan.Source.Namespace + " out after finalize",
	}}
}

func (m members) first() string {
	return fmt.Sprintf("pod %s and those after it on the %s (%s)", m.pod.Name, plans.Destination, m.Plan.Destination.Context)
}

// consequence says what becomes possible.
func (m members) consequence(rule string) string {
	switch {
	case rule == "podAffinity":
		return "they need not come near those that they belong to"
	case m.together:
		return "until all have moved, two of them may come to the same node or place"
	}
	return "two of them may come to the same node or place"
}

// spread warns of topology spread, which counts the pods of one namespace and cannot be told another.
func (m members) spread() (out []check.Finding) {
	if !m.together {
		return nil
	}
	for _, c := range m.pod.Spec.TopologySpreadConstraints {
		if !scheduling.Spreads(m.pod, c, m.there) {
			continue
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: m.first(), Saw: fmt.Sprintf("its topology spread over %s counts the members of its own namespace alone: until all have moved, too many of them may come to the same node or place", c.TopologyKey),
			Want: "members that are spread over both namespaces", Remedy: "see where they run between two waves; a required pod anti-affinity that names both namespaces (--patch) keeps them apart meanwhile",
		})
	}
	return out
}
