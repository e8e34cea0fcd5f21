package pods

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/storage"
)

// zones returns the zones of a volume's labels as node affinities. As in the scheduler, a node without any
// such label matches every zone, and the new form of a label also satisfies the old one.
func zones(pv *corev1.PersistentVolume) []*corev1.NodeSelector {
	is := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	var nowhere corev1.NodeSelectorTerm
	for _, key := range storage.ZoneLabels() {
		nowhere.MatchExpressions = append(nowhere.MatchExpressions, is(key, corev1.NodeSelectorOpDoesNotExist))
	}
	newer := map[string]string{corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion}
	var out []*corev1.NodeSelector
	for _, key := range storage.ZoneLabels() {
		value, ok := pv.Labels[key]
		if !ok {
			continue
		}
		in := storage.Zones(value)
		terms := []corev1.NodeSelectorTerm{nowhere, {MatchExpressions: []corev1.NodeSelectorRequirement{is(key, corev1.NodeSelectorOpIn, in...)}}}
		if to, old := newer[key]; old {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{is(key, corev1.NodeSelectorOpDoesNotExist), is(to, corev1.NodeSelectorOpIn, in...)}})
		}
		out = append(out, &corev1.NodeSelector{NodeSelectorTerms: terms})
	}
	return out
}
