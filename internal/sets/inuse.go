package sets

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
)

// usedElsewhere names, for each dependency that a workload of the destination's namespace other than the plan's set
// uses, one that does: another plan may have found the copies equal to its own, and left them to this one. It reads
// pods and StatefulSets, to which a plan has the right. Other workloads are seen by their pods. The lists are read in
// pages, which are never kept: the lists that are kept have only the pods of the set.
func (w Copies) usedElsewhere(ctx context.Context) (map[plans.Dependency]string, error) {
	on, out := w.On[plans.Destination], map[plans.Dependency]string{}
	there := client.InNamespace(w.Plan.Destination.Namespace)
	uses := func(who, service string, template corev1.PodSpec) {
		set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{ServiceName: service, Template: corev1.PodTemplateSpec{Spec: template}}}
		for _, d := range build.Dependencies(set) {
			out[bare(d)] = who
		}
	}
	err := clusters.Each(ctx, on, func() client.ObjectList { return &corev1.PodList{} }, func(p *corev1.Pod) {
		if !w.Plan.HasPod(plans.Destination, p.Name) {
			uses("pod "+p.Name, p.Spec.Subdomain, p.Spec)
		}
	}, there)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", w.Plan.Destination.Namespace, err)
	}
	if w.Plan.Destination.SetKind() == plans.NativeKind { // a plan of another kind has no right to these
		err = clusters.Each(ctx, on, func() client.ObjectList { return &appsv1.StatefulSetList{} }, func(s *appsv1.StatefulSet) {
			if s.Name != w.Plan.Destination.Name {
				uses("StatefulSet "+s.Name, s.Spec.ServiceName, s.Spec.Template.Spec)
			}
		}, there)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the StatefulSets of namespace %s: %w", w.Plan.Destination.Namespace, err)
	}
	return out, w.withSecrets(ctx, out)
}

// withSecrets adds the Secrets of the accounts that are used.
func (w Copies) withSecrets(ctx context.Context, used map[plans.Dependency]string) error {
	for _, d := range w.Plan.Dependencies {
		if d.Kind != "ServiceAccount" || used[bare(d)] == "" {
			continue
		}
		o, err := w.Dependency(ctx, plans.Destination, d)
		if err != nil {
			return err
		}
		account, ok := o.(*corev1.ServiceAccount)
		if !ok {
			continue
		}
		for _, s := range account.ImagePullSecrets {
			used[plans.Dependency{Kind: "Secret", Name: s.Name}] = d.String()
		}
		for _, s := range account.Secrets {
			used[plans.Dependency{Kind: "Secret", Name: s.Name}] = d.String()
		}
	}
	return nil
}

// bare returns a dependency by its kind and name alone.
func bare(d plans.Dependency) plans.Dependency { return plans.Dependency{Kind: d.Kind, Name: d.Name} }
