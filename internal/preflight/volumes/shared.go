package volumes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// SharedVolumes requires each claim that the pod template names on the destination, or a volume that can be
// mounted on both sides at once.
func SharedVolumes(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	if i.Midway {
		return madeByHand(ctx, i)
	}
	for _, name := range build.SharedClaims(i.Now.Set) {
		f, err := sharedClaim(ctx, i, name)
		if err != nil {
			return nil, err
		}
		for _, one := range f {
			one.Object = fmt.Sprintf("claim %s, which the pod template names", name)
			out = append(out, one)
		}
	}
	return out, nil
}

// madeByHand requires the claims that the user has made on the side where the ordinals arrive: a pod waits for one that
// is gone, with its ordinal down. Shrink looks at those that the plan has made (S17). A process needs no right to read
// these, and one without it learns nothing of them.
func madeByHand(ctx context.Context, i check.Inspection) (out []check.Finding, err error) {
	to := i.From.Other()
	for _, name := range build.SharedClaims(i.Now.Set) {
		if slices.ContainsFunc(i.Plan.Shared, func(s plans.SharedVolume) bool { return s.Claim == name }) {
			continue
		}
		claim, err := i.Claim(ctx, to, name)
		saw := ""
		switch {
		case apierrors.IsForbidden(err):
			continue
		case err != nil:
			return nil, err
		case claim == nil:
			saw = "it does not exist any more"
		case claim.DeletionTimestamp != nil:
			saw = "it is being deleted by another writer"
		default:
			continue
		}
		out = append(out, check.Finding{
			Object: fmt.Sprintf("claim %s of namespace %s on the %s, which the pod template names", name, i.Plan.On(to).Namespace, to), Saw: saw,
			Want: "the claim that the pods which arrive there mount", Remedy: "recreate it for its volume",
		})
	}
	return out, nil
}

func sharedClaim(ctx context.Context, i check.Inspection, name string) ([]check.Finding, error) {
	at := slices.IndexFunc(i.Plan.Shared, func(s plans.SharedVolume) bool { return s.Claim == name })
	there, err := i.Claim(ctx, plans.Destination, name)
	switch {
	case err != nil:
		return nil, err
	case there != nil && there.Status.Phase != corev1.ClaimBound:
		return []check.Finding{{Saw: fmt.Sprintf("it is %s on the destination", there.Status.Phase), Want: "it to be Bound, since all pods mount it", Remedy: "repair it, or delete it and let it be made"}}, nil
	case there != nil && at < 0, there != nil && i.Ours(there):
		return nil, nil // left as it is
	case there != nil:
		return []check.Finding{{Saw: "it was made on the destination since the plan was made", Want: "everything as it was", Remedy: "make a new plan, which then leaves it alone"}}, nil
	case at < 0:
		return []check.Finding{{Saw: "neither side has it bound to a volume", Want: "a claim that all pods can mount", Remedy: "make it on the destination"}}, nil
	}
	here, err := i.Claim(ctx, plans.Source, name)
	if err != nil || here == nil {
		return nil, err // gone since: the step Share reports it
	}
	return shareable(ctx, i, here, i.Plan.Shared[at])
}

func shareable(ctx context.Context, i check.Inspection, here *corev1.PersistentVolumeClaim, s plans.SharedVolume) ([]check.Finding, error) {
	shelf, err := On(ctx, i, plans.Source)
	if err != nil {
		return nil, err
	}
	pv := shelf.ByName[s.Volume]
	if pv == nil {
		return nil, nil
	}
	byHand := fmt.Sprintf("make a claim %s in namespace %s of the destination by hand, for a volume that both sides can mount; it is then left alone", s.Claim, i.Plan.Destination.Namespace)
	var out []check.Finding
	add := func(saw, want, remedy string) { out = append(out, check.Finding{Saw: saw, Want: want, Remedy: remedy}) }
	readOnly, err := onlyRead(i, s.Claim)
	if err != nil {
		return nil, err
	}
	if modes := here.Spec.AccessModes; !many(modes, readOnly) {
		add(fmt.Sprintf("it is %v, and pods of both sides mount it at the same time", modes), "ReadWriteMany, or nothing but ReadOnlyMany with every mount of it readOnly", byHand)
	} else if !many(pv.Spec.AccessModes, readOnly) {
		add(fmt.Sprintf("its volume is %v and can be mounted by one node only", pv.Spec.AccessModes), "ReadWriteMany, or nothing but ReadOnlyMany with every mount of it readOnly", byHand)
	}
	if len(here.OwnerReferences) > 0 {
		o := here.OwnerReferences[0]
		add(fmt.Sprintf("it is owned by %s %s", o.Kind, o.Name), "no owner: it would be deleted together with it", "take the owner reference off, or "+byHand)
	}
	if i.Plan.OneCluster() && pv.Spec.NFS == nil {
		add("its volume is not an nfs one, and a second volume object for one disk in the same cluster confuses the kubelet", "an nfs volume", byHand)
	}
	pods, err := i.EveryPod(ctx, plans.Source)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return metav1.IsControlledBy(&p, i.Now.Set) })
	if users := storage.Users(others, s.Claim); users != "" {
		add("pod "+users+", which is not the set's, mounts it too", "no other pods: its claim on the source goes at the end", "let its owner end it, or "+byHand)
	}
	return out, nil
}

// many reports whether nodes of two clusters may mount a volume at once with these modes. A volume that a
// single node may also write would be written by the node that mounts it first.
func many(modes []corev1.PersistentVolumeAccessMode, readOnly bool) bool {
	if slices.Contains(modes, corev1.ReadWriteMany) {
		return true
	}
	return readOnly && len(modes) > 0 && !slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany })
}

// onlyRead reports whether the pods of both sides mount a claim for reading only.
func onlyRead(i check.Inspection, claim string) (bool, error) {
	there, err := i.Arriving()
	return err == nil && readOnly(i.Now.Set.Spec.Template.Spec, claim) && readOnly(there.Spec, claim), err
}

func readOnly(spec corev1.PodSpec, claim string) bool {
	for _, v := range spec.Volumes {
		c := v.PersistentVolumeClaim
		if c == nil || c.ClaimName != claim || c.ReadOnly {
			continue
		}
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			if slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name && !m.ReadOnly }) ||
				slices.ContainsFunc(container.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == v.Name }) {
				return false
			}
		}
	}
	return true
}
