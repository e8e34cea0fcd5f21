package placeholder

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
)

// affinity returns the rules of the pod, with three of our own. It goes where the volumes that will arrive can be reached.
// It keeps to the other placeholders of its set, or away from them, as its pods do to one another: these have none of the
// labels of the set. And it goes where the spread of the set leaves room, since a pod counts for its own spread only if it
// has the labels of the set.
func (p Place) affinity(pod *corev1.Pod) (*corev1.Affinity, error) {
	a := pod.Spec.Affinity.DeepCopy()
	if a == nil {
		a = &corev1.Affinity{}
	}
	var err error
	if apart := a.PodAntiAffinity; apart != nil {
		if apart.RequiredDuringSchedulingIgnoredDuringExecution, err = p.apart(pod, apart.RequiredDuringSchedulingIgnoredDuringExecution); err != nil {
			return nil, err
		}
		preferred(pod, apart.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if together := a.PodAffinity; together != nil {
		if together.RequiredDuringSchedulingIgnoredDuringExecution, err = p.together(pod, together.RequiredDuringSchedulingIgnoredDuringExecution); err != nil {
			return nil, err
		}
		preferred(pod, together.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	terms, err := p.nodes(a.NodeAffinity)
	if err != nil {
		return nil, err
	}
	if len(terms) > 0 {
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
	return a, nil
}

// apart returns terms of anti-affinity, and for each that is about the pods of the set one about its placeholders.
func (p Place) apart(pod *corev1.Pod, terms []corev1.PodAffinityTerm) (out []corev1.PodAffinityTerm, err error) {
	for _, t := range terms {
		own, err := selectsItself(pod, t)
		if err != nil {
			return nil, err
		}
		if out = append(out, resolved(pod, t)); own {
			out = append(out, p.others(t))
		}
	}
	return out, nil
}

// together returns terms of affinity. The scheduler lets the first pod of a group in since its own labels match. A
// placeholder does not have them: it goes to the other placeholders, or anywhere if it is the first.
func (p Place) together(pod *corev1.Pod, terms []corev1.PodAffinityTerm) (out []corev1.PodAffinityTerm, err error) {
	all := true
	for _, t := range terms {
		own, err := selectsItself(pod, t)
		if err != nil {
			return nil, err
		}
		all = all && own
	}
	for _, t := range terms {
		switch {
		case !p.Alone || !all:
			out = append(out, resolved(pod, t))
		case p.Others:
			out = append(out, p.others(t))
		}
	}
	return out, nil
}

// others returns the term about the placeholders of the set.
func (p Place) others(t corev1.PodAffinityTerm) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: t.TopologyKey, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{Label: p.Plan, SetLabel: p.Set}}}
}

// selectsItself reports whether a term is about the pod that has it.
func selectsItself(pod *corev1.Pod, t corev1.PodAffinityTerm) (bool, error) {
	return selects(pod, t, pod.Labels)
}

// selects reports whether a term of a pod is about a pod of its namespace with these labels. Terms about namespaces by their
// labels are taken for such: then it is only more careful.
func selects(pod *corev1.Pod, t corev1.PodAffinityTerm, of map[string]string) (bool, error) {
	s, err := metav1.LabelSelectorAsSelector(scheduling.Meant(pod.Labels, t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys))
	if err != nil {
		return false, fmt.Errorf("the affinity of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	here := len(t.Namespaces) == 0 && t.NamespaceSelector == nil || slices.Contains(t.Namespaces, pod.Namespace) || t.NamespaceSelector != nil
	return here && s.Matches(labels.Set(of)), nil
}

func preferred(pod *corev1.Pod, terms []corev1.WeightedPodAffinityTerm) {
	for k := range terms {
		terms[k].PodAffinityTerm = resolved(pod, terms[k].PodAffinityTerm)
	}
}

// resolved returns a term as it is meant in the pod of the ordinal: its keys stand for the labels of that pod.
func resolved(pod *corev1.Pod, t corev1.PodAffinityTerm) corev1.PodAffinityTerm {
	t.LabelSelector = scheduling.Meant(pod.Labels, t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)
	t.MatchLabelKeys, t.MismatchLabelKeys = nil, nil
	return t
}

// nodes returns the terms of node affinity: what the pod asks, and where each volume can be reached, and none of the places
// that are full. Terms are alternatives, so each alternative of the one is joined with each of the other.
func (p Place) nodes(own *corev1.NodeAffinity) ([]corev1.NodeSelectorTerm, error) {
	terms := []corev1.NodeSelectorTerm{{}}
	all := p.Reach
	if own != nil && own.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		all = append([]corev1.NodeSelector{*own.RequiredDuringSchedulingIgnoredDuringExecution}, all...)
	}
	for _, s := range all {
		var joined []corev1.NodeSelectorTerm
		for _, t := range terms {
			for _, with := range s.NodeSelectorTerms {
				joined = append(joined, corev1.NodeSelectorTerm{
					MatchExpressions: slices.Concat(t.MatchExpressions, with.MatchExpressions),
					MatchFields:      slices.Concat(t.MatchFields, with.MatchFields),
				})
			}
		}
		if terms = joined; len(terms) > maxTerms {
			return nil, fmt.Errorf("the node affinity of pod %s and its volumes has more than %d alternatives", p.Pod.Name, maxTerms)
		}
	}
	for k := range terms {
		for _, key := range slices.Sorted(maps.Keys(p.Full)) {
			terms[k].MatchExpressions = append(terms[k].MatchExpressions, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: p.Full[key]})
		}
	}
	return slices.DeleteFunc(terms, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchExpressions)+len(t.MatchFields) == 0 }), nil
}

// spread says of a pod without rules of its own what the scheduler by default says of each pod of a set: it prefers nodes
// with fewer pods of that set. A placeholder is of no set. Without this it would take a node that the pod then does not take,
// and what it has pulled there would be of no use.
func (p Place) spread(spec *corev1.PodSpec) {
	if len(spec.TopologySpreadConstraints) > 0 || p.Like == nil {
		return
	}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		TopologyKey: corev1.LabelHostname, MaxSkew: 3, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: p.Like,
	}}
	others := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname}
	apart := &corev1.PodAntiAffinity{}
	if spec.Affinity.PodAntiAffinity != nil {
		apart = spec.Affinity.PodAntiAffinity
	}
	apart.PreferredDuringSchedulingIgnoredDuringExecution = append(apart.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: p.others(others)})
	spec.Affinity.PodAntiAffinity = apart
}
