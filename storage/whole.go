package storage

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// wholeManifest returns the Manifest of a claim as its API server has it, including the fields that this
// program does not know.
func wholeManifest(ctx context.Context, on client.Client, c *corev1.PersistentVolumeClaim) (string, error) {
	whole, err := writes.Read(ctx, on, c)
	if err != nil {
		return "", err
	}
	all, err := whole.Like(lasting(c))
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(all)
	return string(raw), err
}

// savedClaim returns the complete manifest that is saved on a volume.
func savedClaim(pv *corev1.PersistentVolume) (writes.Whole, error) {
	return writes.Decode(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), []byte(pv.Annotations[plans.ClaimAnnotation]), &corev1.PersistentVolumeClaim{})
}
