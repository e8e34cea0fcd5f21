package expanded

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/owners"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// monitors finds monitors of the source's namespace that see the pods, where the destination's has none that does.
func monitors(ctx context.Context, i check.Inspection, s sides) (out []check.Finding, err error) {
	for _, kind := range []string{"ServiceMonitor", "PodMonitor"} {
		see := map[plans.Side][]string{}
		for _, side := range plans.Sides() {
			all, unseen, err := owners.Custom(ctx, i, side, schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind})
			if err != nil {
				return nil, err
			}
			out = append(out, unseen...)
			for k := range all {
				if sees(s, side, kind, &all[k]) {
					see[side] = append(see[side], all[k].GetName())
				}
			}
		}
		if len(see[plans.Source]) == 0 || len(see[plans.Destination]) > 0 {
			continue
		}
		from, to := i.Plan.Source.Namespace, i.Plan.Destination.Namespace
		out = append(out, check.Finding{
			Level: check.Warn, Object: fmt.Sprintf("%s %s/%s on the source", kind, from, check.Few(see[plans.Source])), Saw: "it has the pods here, and none of namespace " + to + " has those over there",
			Want: "ordinals that are monitored on both sides", Remedy: fmt.Sprintf("it is not copied; make one like it in namespace %s before the move, without a namespaceSelector for %s", to, from),
		})
	}
	return out, nil
}

// sees reports whether a monitor selects the pods of its own namespace, by their labels or by a Service that has them.
func sees(s sides, side plans.Side, kind string, o *unstructured.Unstructured) bool {
	raw, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	text, err := json.Marshal(raw)
	var by metav1.LabelSelector
	if err != nil || weight.Unmarshal(text, &by) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&by)
	if err != nil {
		return false
	}
	names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "namespaceSelector", "matchNames")
	if len(names) > 0 && !slices.Contains(names, s.at[side].Namespace) {
		return false
	}
	pod := s.labelled(side, s.ordinal)
	if kind == "PodMonitor" {
		return selector.Matches(pod)
	}
	for _, svc := range s.services[side] {
		if len(svc.Spec.Selector) > 0 && labels.SelectorFromSet(svc.Spec.Selector).Matches(pod) && selector.Matches(labels.Set(svc.Labels)) {
			return true
		}
	}
	return false
}
