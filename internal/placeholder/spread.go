package placeholder

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
)

// Full returns the places in which the topology spread of a pod leaves no room, by topology key. peers are the pods of its
// namespace, and others its placeholders: each of these counts like the pod that it stands for. The scheduler counts a
// placeholder for no spread, since it has none of the labels of the set.
func Full(pod *corev1.Pod, nodes []corev1.Node, peers, others []corev1.Pod) (map[string][]string, error) {
	out := map[string][]string{}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(scheduling.Meant(pod.Labels, c.LabelSelector, c.MatchLabelKeys, nil))
		if err != nil {
			return nil, fmt.Errorf("the topology spread of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue // it does not count for its own spread: the scheduler sees the placeholder as it sees the pod
		}
		counts, domain := map[string]int{}, map[string]string{}
		for k := range nodes {
			if where, there := nodes[k].Labels[c.TopologyKey]; there && scheduling.Counts(pod, c, &nodes[k]) {
				domain[nodes[k].Name] = where
				counts[where] += 0
			}
		}
		like := slices.DeleteFunc(slices.Clone(peers), func(p corev1.Pod) bool { return !selector.Matches(labels.Set(p.Labels)) })
		for _, p := range slices.Concat(like, others) {
			if where, there := domain[p.Spec.NodeName]; there && p.DeletionTimestamp == nil {
				counts[where]++
			}
		}
		out[c.TopologyKey] = slices.Compact(slices.Sorted(slices.Values(append(out[c.TopologyKey], over(c, counts)...))))
		if len(out[c.TopologyKey]) == 0 {
			delete(out, c.TopologyKey)
		}
	}
	return out, nil
}

// over returns the domains that would have too many with one more.
func over(c corev1.TopologySpreadConstraint, counts map[string]int) (out []string) {
	fewest := -1
	for _, n := range counts {
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	if c.MinDomains != nil && len(counts) < int(*c.MinDomains) || fewest < 0 {
		fewest = 0
	}
	for where, n := range counts {
		if n+1-fewest > int(c.MaxSkew) {
			out = append(out, where)
		}
	}
	return out
}
