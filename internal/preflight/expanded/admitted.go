package expanded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/expansion"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/pods"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// admission is what the two sides make of the same template: the pod that runs on the source, and the one that the
// destination would let in.
type admission struct {
	made, real map[plans.Side]*corev1.Pod
	// alone reports that the account is not there yet, so that the pod was tried with the default one.
	alone bool
}

// admitted finds what admission makes of a pod on one side alone. What the template or a patch says is in neither.
func (s sides) admitted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	a, err := s.admission(ctx, i)
	if a == nil || err != nil {
		return nil, err
	}
	found, err := a.differences()
	if err != nil {
		return nil, err
	}
	groups := map[string][]build.Difference{}
	for _, d := range found {
		if g := a.group(d.Path); g != "" {
			groups[g] = append(groups[g], d)
		}
	}
	var out []check.Finding
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, a.finding(g, groups[g]))
	}
	return out, nil
}

func (s sides) admission(ctx context.Context, i check.Inspection) (*admission, error) {
	there, err := pods.Tried(ctx, i)
	if there == nil || err != nil {
		return nil, err
	}
	here, err := i.Pod(ctx, plans.Source, s.ordinal)
	if here == nil || err != nil {
		return nil, err
	}
	a := &admission{
		made: map[plans.Side]*corev1.Pod{plans.Source: s.source(), plans.Destination: s.arriving()},
		real: map[plans.Side]*corev1.Pod{plans.Source: here.DeepCopy(), plans.Destination: there},
	}
	a.alone = a.made[plans.Destination].Spec.ServiceAccountName != "" && there.Spec.ServiceAccountName != a.made[plans.Destination].Spec.ServiceAccountName
	for _, pod := range a.real {
		plain(pod)
	}
	return a, nil
}

// tokens is how the API server begins the name of the volume with the token of a pod.
const tokens = "kube-api-access-"

// plain takes off a pod what no two pods of a set have alike, and what belongs to its place.
func plain(pod *corev1.Pod) {
	pod.Spec.NodeName, pod.Spec.EphemeralContainers = "", nil
	delete(pod.Labels, "controller-revision-hash")
	maps.DeleteFunc(pod.Labels, func(k, _ string) bool { return strings.HasPrefix(k, "topology.kubernetes.io/") }) // its node's
	for k := range pod.Spec.Volumes {
		pod.Spec.Volumes[k].Name = token(pod.Spec.Volumes[k].Name)
	}
	for _, l := range lists(pod) {
		for _, c := range l.of {
			for k := range c.VolumeMounts {
				c.VolumeMounts[k].Name = token(c.VolumeMounts[k].Name)
			}
		}
	}
}

func token(name string) string {
	if strings.HasPrefix(name, tokens) {
		return tokens + "…"
	}
	return name
}

// differences are the fields that admission has written on one side alone, or otherwise.
func (a *admission) differences() (out []build.Difference, err error) {
	added := map[plans.Side]map[string]build.Difference{}
	for _, side := range plans.Sides() {
		found, err := build.Differences(expansion.Bare(a.made[side]), expansion.Bare(a.real[side]))
		if err != nil {
			return nil, err
		}
		added[side] = map[string]build.Difference{}
		for _, d := range found {
			added[side][d.Path] = d
		}
	}
	patched, err := build.Differences(expansion.Bare(a.made[plans.Source]), expansion.Bare(a.made[plans.Destination]))
	if err != nil {
		return nil, err
	}
	all := maps.Clone(added[plans.Source])
	maps.Copy(all, added[plans.Destination])
	for _, path := range slices.Sorted(maps.Keys(all)) {
		here, one := added[plans.Source][path]
		there, two := added[plans.Destination][path]
		switch {
		case one && two && here.After == there.After, slices.ContainsFunc(patched, func(p build.Difference) bool { return strings.HasPrefix(path, p.Path) }):
			continue
		case !one:
			here.After = there.Before
		case !two:
			there.After = here.Before
		}
		out = append(out, build.Difference{Path: path, Before: here.After, After: there.After})
	}
	return out, nil
}

var ofEntry = regexp.MustCompile(`^spec\.(containers|initContainers|volumes)\[([^\]]+)\]`)

// group returns what the user knows a field by, or "" for one that another check looks at.
func (a *admission) group(path string) string {
	switch {
	case slices.Contains([]string{"spec.serviceAccountName", "spec.serviceAccount", "spec.imagePullSecrets", "spec.hostname", "spec.subdomain"}, path):
		return "" // dependencies
	case a.alone && strings.Contains(path, tokens):
		return ""
	case strings.HasPrefix(path, "spec.priority") || path == "spec.preemptionPolicy":
		if a.made[plans.Destination].Spec.PriorityClassName != "" {
			return "" // classes
		}
		return "spec.priority"
	}
	m := ofEntry.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	if m[1] == "volumes" {
		return m[0]
	}
	if _, own := containerOf(a.made[plans.Destination], m[1], m[2]); !own {
		return m[0]
	}
	rest := strings.TrimPrefix(path, m[0]+".")
	if at := strings.IndexAny(rest, ".["); at >= 0 {
		rest = rest[:at]
	}
	return m[0] + "." + rest
}

// finding is the warning about the differences of one group.
func (a *admission) finding(group string, of []build.Difference) check.Finding {
	f := check.Finding{
		Level: check.Warn, Object: fmt.Sprintf("pod %s: %s", a.made[plans.Source].Name, group), Want: "the pod of the destination to be the one of the source",
		Remedy: "see whether the application minds; admission decides on it (webhooks, policies, LimitRanges, labels of the namespace): make them alike on both sides, or write it with --patch",
	}
	var changes []string
	here, there := false, false
	for _, d := range of {
		changes = append(changes, strings.TrimPrefix(strings.TrimPrefix(d.Path, group), ".")+" "+d.Before+" -> "+d.After)
		here, there = here || d.Before != "(none)", there || d.After != "(none)"
	}
	m := ofEntry.FindStringSubmatch(group)
	switch entry := m != nil && m[0] == group; {
	case entry && !here:
		f.Saw = fmt.Sprintf("admission of the destination adds %s %s, which the pod on the source does not have", word(m[1]), m[2])
	case entry && !there:
		f.Saw = fmt.Sprintf("the pod on the source has %s %s, which admission added and that of the destination does not", word(m[1]), m[2])
	default:
		f.Saw = "admission makes it another one: " + strings.TrimSpace(check.Few(changes))
	}
	if m != nil && strings.HasSuffix(group, ".resources") {
		a.resources(&f, m[1], m[2])
	}
	if a.alone {
		f.Saw += " (tried with the account default: that of the pods is not there yet)"
	}
	return f
}

func word(field string) string {
	return map[string]string{"containers": "container", "initContainers": "init container", "volumes": "volume"}[field]
}

// resources says what other requests and limits mean, and how the pod keeps those that it has.
func (a *admission) resources(f *check.Finding, field, name string) {
	from, to := a.real[plans.Source].Status.QOSClass, a.real[plans.Destination].Status.QOSClass
	if from != to && from != "" && to != "" {
		f.Saw += fmt.Sprintf("; its QoS class is %s there, not %s", to, from)
	}
	c, _ := containerOf(a.real[plans.Source], field, name)
	raw, err := json.Marshal(c.Resources)
	if err != nil {
		return
	}
	f.Remedy = fmt.Sprintf("make the LimitRanges alike, or keep what the pods have with --patch FILE where FILE has\nspec: {template: {spec: {%s: [{name: %s, resources: %s}]}}}", field, name, raw)
}
