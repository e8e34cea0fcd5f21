package dns

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Export returns the look that exports the governing Service of both sides to the other cluster (KEP-1645)
// and waits until the clusters' own implementation reports the export as valid. An export that already exists
// is left unchanged. Unless the plan's mode is MCS, there is nothing to do.
func Export(p *plans.Plan, on map[plans.Side]client.Client) plans.Look {
	return func(ctx context.Context, _ plans.StepContext) (plans.Observation, error) {
		for _, side := range p.Exports() {
			e, err := export(ctx, p, on, side)
			if err != nil {
				return plans.Observation{}, err
			}
			if e == nil {
				return plans.Write(fmt.Sprintf("%s: export Service %s", side, p.Names.Service), plans.Undo{}, func(ctx context.Context) error {
					return on[side].Create(ctx, MadeExport(p, side))
				}), nil
			}
			name := fmt.Sprintf("ServiceExport %s/%s on the %s", e.Namespace, e.Name, side)
			if c := meta.FindStatusCondition(e.Status.Conditions, string(mcsv1alpha1.ServiceExportConditionConflict)); c != nil && c.Status == metav1.ConditionTrue {
				return plans.Stop(reasons.ExportConflict, fmt.Sprintf("%s conflicts with that of another cluster: %s %s; make the Services alike", name, c.Reason, c.Message)), nil
			}
			if why := unexported(e); why != "" {
				return plans.Wait(reasons.ExportNotReady, name+" "+why), nil
			}
		}
		return plans.Done(), nil
	}
}

// unexported returns the reason why an export is not yet in effect, or "". Not every implementation sets the
// condition Ready.
func unexported(e *mcsv1alpha1.ServiceExport) string {
	valid := meta.FindStatusCondition(e.Status.Conditions, string(mcsv1alpha1.ServiceExportConditionValid))
	ready := meta.FindStatusCondition(e.Status.Conditions, string(mcsv1alpha1.ServiceExportConditionReady))
	switch {
	case valid == nil:
		return "waits for the cluster's Multi-Cluster Services"
	case valid.Status != metav1.ConditionTrue:
		return fmt.Sprintf("is not valid: %s %s", valid.Reason, valid.Message)
	case ready != nil && ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("is not ready: %s %s", ready.Reason, ready.Message)
	}
	return ""
}

// unexport deletes the exports that Export has created. After finalize, the export of the destination stays
// as the destination's own: clients may know the pods by it.
func unexport(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, m plans.StepContext) (plans.Observation, error) {
	for _, side := range p.Exports() {
		e, err := export(ctx, p, on, side)
		if err != nil {
			return plans.Observation{}, err
		}
		if e == nil || e.Labels[PlanLabel] != p.ID || e.DeletionTimestamp != nil {
			continue
		}
		if side != plans.Destination || m.To() != plans.Destination {
			return remove(on[side], p.On(side).Namespace, "ServiceExport", e, side), nil
		}
		own := e.DeepCopy()
		delete(own.Labels, PlanLabel)
		return plans.Write(fmt.Sprintf("destination: ServiceExport %s stays, mark off", e.Name), plans.Undo{},
			func(ctx context.Context) error { return writes.Change(ctx, on[side], e, own) }), nil
	}
	return plans.Done(), nil
}

func export(ctx context.Context, p *plans.Plan, on map[plans.Side]client.Client, side plans.Side) (*mcsv1alpha1.ServiceExport, error) {
	var e mcsv1alpha1.ServiceExport
	key := client.ObjectKey{Namespace: p.On(side).Namespace, Name: p.Names.Service}
	if err := on[side].Get(ctx, key, &e); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading ServiceExport %s on the %s: %w", key, side, err)
	}
	return &e, nil
}
