package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// placeholder reports whether a pod has the place of an ordinal of this very plan: it goes when its ordinal comes, so nothing
// of what it takes is taken.
func placeholder(i check.Inspection, p *corev1.Pod) bool {
	return i.Plan.Placeholder.Used() && p.Labels[plans.PlaceholderLabel] == i.Plan.Name && p.Namespace == i.Plan.On(i.To()).Namespace && plans.Stamp{Plan: i.Plan.ID}.Mine(p)
}

// placeholders lists those on the side that the ordinals come to, as far as quotas count them.
func placeholders(ctx context.Context, i check.Inspection) (out []corev1.Pod, err error) {
	if !i.Plan.Placeholder.Used() {
		return nil, nil
	}
	var list corev1.PodList
	to := i.Plan.On(i.To())
	err = i.On[i.To()].List(ctx, &list, client.InNamespace(to.Namespace), client.MatchingLabels{plans.PlaceholderLabel: i.Plan.Name})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing the placeholders of %s: %w", to, err)
	}
	for k := range list.Items {
		if p := &list.Items[k]; placeholder(i, p) && !ended(p) {
			out = append(out, *p)
		}
	}
	return out, nil
}
