package preflight

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// sharedVolumes finds the volumes behind the claims that the pod template itself
// names. Those whose claim the destination has already are the person's to answer for.
func (w survey) sharedVolumes(ctx context.Context, set *appsv1.StatefulSet) ([]plans.SharedVolume, error) {
	var out []plans.SharedVolume
	for _, name := range plans.SharedClaims(set) {
		there, err := w.Claim(ctx, plans.Destination, name)
		if err != nil {
			return nil, err
		}
		here, err := w.Claim(ctx, plans.Source, name)
		if err != nil {
			return nil, err
		}
		if there != nil || here == nil || here.Spec.VolumeName == "" {
			continue // the check says what is wrong
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

// sharedUsable wants each claim that the pod template names on the destination, or a
// volume that can be mounted on both sides at once.
func sharedUsable(ctx context.Context, i inspection) ([]Finding, error) {
	var out []Finding
	for _, name := range plans.SharedClaims(i.now.Set) {
		f, err := i.sharedClaim(ctx, name)
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

func (i inspection) sharedClaim(ctx context.Context, name string) ([]Finding, error) {
	at := slices.IndexFunc(i.Plan.Shared, func(s plans.SharedVolume) bool { return s.Claim == name })
	there, err := i.Claim(ctx, plans.Destination, name)
	switch {
	case err != nil:
		return nil, err
	case there != nil && there.Status.Phase != corev1.ClaimBound:
		return []Finding{{Saw: fmt.Sprintf("it is %s on the destination", there.Status.Phase), Want: "it to be Bound, since all pods mount it", Remedy: "repair it, or delete it and let it be made"}}, nil
	case there != nil && at < 0, there != nil && i.ours(there):
		return nil, nil // left as it is
	case there != nil:
		return []Finding{{Saw: "it was made on the destination since the plan was made", Want: "everything as it was", Remedy: "make a new plan, which then leaves it alone"}}, nil
	case at < 0:
		return []Finding{{Saw: "neither side has it bound to a volume", Want: "a claim that all pods can mount", Remedy: "make it on the destination"}}, nil
	}
	here, err := i.Claim(ctx, plans.Source, name)
	if err != nil || here == nil {
		return nil, err // gone since: the step Share says so
	}
	return i.shareable(ctx, here, i.Plan.Shared[at])
}

func (i inspection) shareable(ctx context.Context, here *corev1.PersistentVolumeClaim, s plans.SharedVolume) ([]Finding, error) {
	shelf, err := i.shelf(ctx, plans.Source)
	if err != nil {
		return nil, err
	}
	pv := shelf.byName[s.Volume]
	if pv == nil {
		return nil, nil
	}
	byHand := fmt.Sprintf("make a claim %s in namespace %s of the destination by hand, for a volume that both sides can mount; it is then left alone", s.Claim, i.Plan.Destination.Namespace)
	var out []Finding
	add := func(saw, want, remedy string) { out = append(out, Finding{Saw: saw, Want: want, Remedy: remedy}) }
	readOnly, err := i.onlyRead(s.Claim)
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
	others := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return metav1.IsControlledBy(&p, i.now.Set) })
	if users := storage.Users(others, s.Claim); users != "" {
		add("pod "+users+", which is not the set's, mounts it too", "no other pods: its claim on the source goes at the end", "delete that pod, or "+byHand)
	}
	return out, nil
}

// many says whether nodes of two clusters may mount a volume at once by these modes. One that
// may also be written by a single node is written by whoever mounts it first.
func many(modes []corev1.PersistentVolumeAccessMode, readOnly bool) bool {
	if slices.Contains(modes, corev1.ReadWriteMany) {
		return true
	}
	return readOnly && len(modes) > 0 && !slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany })
}

// onlyRead says whether the pods of both sides mount a claim for reading only.
func (i inspection) onlyRead(claim string) (bool, error) {
	there, err := i.arriving()
	return err == nil && readOnly(i.now.Set.Spec.Template.Spec, claim) && readOnly(there.Spec, claim), err
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
