package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// objects reads the claims and volumes of both sides of a plan, and who uses them.
type objects struct{ clusters.Pair }

// claimOf reads the claim of a volume on a side. It returns nil if there is none.
func (v objects) claimOf(ctx context.Context, side plans.Side, vol plans.Volume) (*corev1.PersistentVolumeClaim, error) {
	return v.Claim(ctx, side, v.claim(side, vol))
}

// claim returns the name of the claim of a volume on a side.
func (v objects) claim(side plans.Side, vol plans.Volume) string {
	return v.Plan.ClaimName(side, vol.Template, vol.Ordinal)
}

// volumeOf reads a volume. It returns nil if there is none.
func (v objects) volumeOf(ctx context.Context, side plans.Side, name string) (*corev1.PersistentVolume, error) {
	return clusters.Get[corev1.PersistentVolume](ctx, v.On[side], "", name, "the "+string(side))
}

// named reports whether a claimRef names the claim of a volume on this side.
func (v objects) named(ref *corev1.ObjectReference, side plans.Side, vol plans.Volume) bool {
	return ref != nil && ref.Namespace == v.Plan.On(side).Namespace && ref.Name == v.claim(side, vol)
}

func uidOf(c *corev1.PersistentVolumeClaim) types.UID {
	if c == nil {
		return ""
	}
	return c.UID
}

// bound reads a claim and the volume it is bound to, in both directions. The returned reason describes what
// is wrong with the binding, or is "".
func (v objects) bound(ctx context.Context, side plans.Side, template string, ordinal int32) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, string, error) {
	name := v.Plan.ClaimName(side, template, ordinal)
	claim, err := v.Claim(ctx, side, name)
	if err != nil {
		return nil, nil, "", err
	}
	if claim == nil {
		return nil, nil, fmt.Sprintf("claim %s of %s does not exist, expected it to be bound", name, v.Plan.On(side)), nil
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil, fmt.Sprintf("claim %s of %s is %s, expected Bound", name, v.Plan.On(side), claim.Status.Phase), nil
	}
	if claim.DeletionTimestamp != nil {
		return nil, nil, fmt.Sprintf("claim %s of %s is being deleted by another writer; its data is lost to the set when its pod stops", name, v.Plan.On(side)), nil
	}
	pv, err := v.volumeOf(ctx, side, claim.Spec.VolumeName)
	if err != nil {
		return nil, nil, "", err
	}
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return nil, nil, fmt.Sprintf("claim %s of %s and volume %s do not name each other; repair the binding first", name, v.Plan.On(side), claim.Spec.VolumeName), nil
	}
	return claim, pv, "", nil
}

// users names the pods, in any phase, that mount a claim.
//
// A claim with the usual finalizer is not removed while a pod mounts it: the controller in the control plane
// reads the pods live before it removes the finalizer. This read then only decides whether to wait before the
// deletion rather than after it, and a kept list will do. Without the finalizer, this read is the proof (S1).
func (v objects) users(ctx context.Context, side plans.Side, claim *corev1.PersistentVolumeClaim) (string, error) {
	if controllerutil.ContainsFinalizer(claim, PVCProtection) {
		pods, err := v.EveryPod(ctx, side)
		return Users(pods, claim.Name), err
	}
	var pods corev1.PodList
	if err := v.On[side].List(ctx, &pods, client.InNamespace(v.Plan.On(side).Namespace)); err != nil {
		return "", fmt.Errorf("listing pods on the %s: %w", side, err)
	}
	return Users(pods.Items, claim.Name), nil
}

// Users names the pods, in any phase, that mount a claim.
func Users(pods []corev1.Pod, claim string) string {
	var names []string
	for i := range pods {
		if Mounts(&pods[i], claim) {
			names = append(names, pods[i].Name)
		}
	}
	return strings.Join(names, ", ")
}

// Mounts reports whether the pod names the claim among its volumes.
func Mounts(p *corev1.Pod, claim string) bool {
	for _, vol := range p.Spec.Volumes {
		if c := vol.PersistentVolumeClaim; c != nil && c.ClaimName == claim {
			return true
		}
	}
	return false
}
