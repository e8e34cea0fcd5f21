package check

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Shared finds the volumes behind the claims that the pod template itself names. It skips a claim that
// already exists on the destination: the user is responsible for that one.
func Shared(ctx context.Context, w clusters.Pair, set *appsv1.StatefulSet) ([]plans.SharedVolume, error) {
	var out []plans.SharedVolume
	for _, name := range build.SharedClaims(set) {
		there, err := w.Claim(ctx, plans.Destination, name)
		if err != nil {
			return nil, err
		}
		here, err := w.Claim(ctx, plans.Source, name)
		if err != nil {
			return nil, err
		}
		if there != nil || here == nil || here.Spec.VolumeName == "" {
			continue // the check reports the cause
		}
		var pv corev1.PersistentVolume
		err = w.On[plans.Source].Get(ctx, client.ObjectKey{Name: here.Spec.VolumeName}, &pv)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading volume %s: %w", here.Spec.VolumeName, err)
		}
		out = append(out, plans.SharedVolume{Claim: name, Volume: pv.Name, Handle: storage.HandleFor(w.Plan, &pv)})
	}
	return out, nil
}
