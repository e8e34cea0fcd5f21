package dns

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Rehearse creates what a Syncer would create first, for the pods as they are. The clients must send dry runs only, and
// show the answers to later reads (clusters.Rehearsal).
func Rehearse(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client) error {
	pods := map[plans.Side][]*corev1.Pod{}
	for _, side := range plans.Sides() {
		var list corev1.PodList
		if err := on[side].List(ctx, &list, client.InNamespace(p.On(side).Namespace)); err != nil {
			return fmt.Errorf("listing the pods of %s: %w", p.On(side), err)
		}
		for i := range list.Items {
			pods[side] = append(pods[side], &list.Items[i])
		}
	}
	var model *corev1.Service
	at := map[plans.Directory]*corev1.Service{}
	for _, d := range p.Directories() {
		var s corev1.Service
		if err := on[d.On].Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: p.Names.ServiceOf(d)}, &s); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Service %s/%s on the %s: %w", d.Namespace, p.Names.ServiceOf(d), d.On, err)
		} else if err == nil {
			at[d] = &s
			if d.Lists != "" && d.Client == "" {
				model = &s
			}
		}
	}
	for _, d := range p.Directories() {
		service := at[d]
		if service == nil && d.Lists == "" && model != nil {
			service = standIn(p, d, model)
			_ = on[d.On].Create(ctx, service) // the client has the answer
		}
		if service == nil {
			continue // a slice without a Service is never resolved
		}
		for _, s := range Want(p, d, service, pods, nil) {
			_ = on[d.On].Create(ctx, s)
		}
	}
	return nil
}
