package volumes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// Accepted sends the writes that the steps will make to volumes as a dry run: it changes the protected
// volumes, and makes those that a side lacks. Otherwise a refusal by the clusters' policies would be met with
// an ordinal on neither side (S17).
func Accepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	found := func(f []check.Finding, err error) error {
		out = append(out, f...)
		return err
	}
	names, err := volumesAsked(ctx, i)
	if err != nil {
		return nil, err
	}
	if !i.Midway {
		if err := found(limited(ctx, i, names)); err != nil {
			return nil, err
		}
		if err := found(protectable(ctx, i, names)); err != nil {
			return nil, err
		}
	}
	for _, side := range plans.Sides() {
		if i.Plan.OneCluster() && side == plans.Source {
			continue // it is the same cluster
		}
		tried, err := oneOfEach(ctx, i, side, names)
		if err != nil {
			return nil, err
		}
		if err := found(eachAccepted(ctx, i, side, tried)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// oneOfEach returns the first volume of each kind, of those that the plan creates on a side: an API server that lets in
// one lets in the others. Where a policy may list the volumes one by one, and for a wave, it returns all of them.
func oneOfEach(ctx context.Context, i check.Inspection, side plans.Side, names []string) ([]string, error) {
	if i.Midway || len(names) < 2 {
		return names, nil
	}
	if _, gone := i.On[side].(clusters.Gone); gone {
		return nil, nil
	}
	if err := i.On[side].Get(ctx, client.ObjectKey{Name: access.NewVolumesPolicy}, &admissionv1.ValidatingAdmissionPolicyBinding{}); !apierrors.IsNotFound(err) {
		return names, client.IgnoreNotFound(ignoreForbidden(err))
	}
	var out []string
	tried := map[string]bool{}
	for _, name := range names {
		pv, there, why, err := storage.Made(ctx, i.Plan, i.On, side, name)
		if err != nil {
			return nil, err
		}
		if pv == nil || there || why != "" {
			continue
		}
		k, err := kind(pv)
		if err != nil {
			return nil, err
		}
		if !tried[k] {
			out = append(out, name)
		}
		tried[k] = true
	}
	return out, nil
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// kind returns all of a volume but what differs between any two: its name, claim and disk, the values of the driver's
// attributes, and what this program notes on it.
func kind(pv *corev1.PersistentVolume) (string, error) {
	like := pv.DeepCopy()
	like.Name, like.Spec.ClaimRef = "", nil
	maps.DeleteFunc(like.Annotations, func(k, _ string) bool { return strings.HasPrefix(k, "stsmigrate.dev/") })
	if csi := like.Spec.CSI; csi != nil {
		csi.VolumeHandle = ""
		for k := range csi.VolumeAttributes {
			csi.VolumeAttributes[k] = ""
		}
	}
	if nfs := like.Spec.NFS; nfs != nil {
		nfs.Path = ""
	}
	out, err := json.Marshal(like)
	return string(out), err
}

// eachAccepted tries volumes concurrently, and returns the findings in the order of the volumes.
func eachAccepted(ctx context.Context, i check.Inspection, side plans.Side, names []string) ([]check.Finding, error) {
	found := make([][]check.Finding, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(check.MaxConcurrentRequests)
	for k, name := range names {
		g.Go(func() (err error) {
			defer plans.RecoverPanic(&err)
			found[k], err = volumeAccepted(ctx, i, side, name)
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(found...), err
}

// volumesAsked returns the names of the volumes that the check is about: those of the ordinals and, before
// the first write, the second objects of the volumes that all pods share.
func volumesAsked(ctx context.Context, i check.Inspection) ([]string, error) {
	var out []string
	for o := range i.Ordinals.All() {
		b, err := i.Volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, v := range b.Volumes {
			out = append(out, v.Name)
		}
	}
	if !i.Midway {
		for _, s := range i.Plan.Shared {
			out = append(out, i.Plan.SecondVolume(s))
		}
	}
	return out, nil
}

func volumeAccepted(ctx context.Context, i check.Inspection, side plans.Side, name string) ([]check.Finding, error) {
	if _, gone := i.On[side].(clusters.Gone); gone {
		return nil, nil
	}
	pv, there, why, err := storage.Made(ctx, i.Plan, i.On, side, name)
	if err != nil || pv == nil || why != "" {
		return nil, err // other checks and the looks report it
	}
	f := check.Finding{Object: fmt.Sprintf("volume %s on the %s (%s)", name, side, i.Plan.On(side).Context)}
	switch {
	case !there:
		f.Want = fmt.Sprintf("permission to create it, for claim %s/%s", pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
		f.Remedy = fmt.Sprintf("`stsmigrate consent --cluster --plan FILE --side %s` prints the VolumeConsent, if the policies of stsmigrate require it: the cluster's administrator reviews the disks and applies it", side)
		next := pv.DeepCopy()
		err = i.On[side].Create(ctx, next, client.DryRunAll)
		f = unreadable(f, err)
		if saw := altered(pv, next); err == nil && saw != "" {
			f.Saw, f.Want = "admission changes "+saw+" (dry run)", "the disk to be kept, and bound to its claim"
			f.Remedy = "let the owner of the policy or webhook that changes volumes leave these alone for the time of the move"
			return []check.Finding{f}, nil
		}
	case i.Midway && plans.Stamp{Plan: i.Plan.ID}.Mine(pv):
		f.Want = "permission to change the stamp that this plan has put on it"
		f.Remedy = nameMovers
		err = touch(ctx, i, side, pv)
	default:
		return nil, nil
	}
	return refused(f, err)
}

const nameMovers = "let the cluster's administrator name the accounts that carry plans out: values policies.accounts (orchestrators) and policies.movers (users) of `stsmigrate install policies`"

// protectable tries to protect the first volume, as the first step on volumes does: a policy that is about the user would
// stop the plan there, after the sets and budgets were changed. An orchestrator has other rights than who asks.
func protectable(ctx context.Context, i check.Inspection, names []string) ([]check.Finding, error) {
	if i.Orchestrated != nil || i.Account != "" || len(names) == 0 || len(i.Plan.Moved()) == 0 {
		return nil, nil
	}
	pv, there, _, err := storage.Made(ctx, i.Plan, i.On, plans.Source, names[0])
	if err != nil || pv == nil || !there {
		return nil, err // other checks report it
	}
	if _, held := plans.Stamped(pv); held {
		return nil, nil
	}
	f := check.Finding{Object: fmt.Sprintf("volume %s on the %s (%s)", pv.Name, plans.Source, i.Plan.Source.Context), Want: "permission to protect it", Remedy: nameMovers}
	err = protect(ctx, i, plans.Source, pv)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource") {
		return nil, nil // the user lacks the right itself, which the check of the permissions reports
	}
	if out, err := refused(f, err); err != nil || len(out) > 0 || i.Plan.OneCluster() {
		return ofDraft(i, out), err
	}
	out, err := protectableThere(ctx, i)
	return ofDraft(i, out), err
}

// ofDraft makes what is about the user a warning, as long as it may be an orchestrator that carries the plan out.
func ofDraft(i check.Inspection, found []check.Finding) []check.Finding {
	for k := range found {
		if i.Draft {
			found[k].Level, found[k].Want = check.Warn, found[k].Want+", if you carry the plan out yourself"
		}
	}
	return found
}

// protectableThere tries it with some volume of the destination's cluster: those of the plan are not there yet, and could
// neither be given back nor settled. The policy of stsmigrate looks at who writes its marks, on every volume. What others
// refuse about that volume says nothing about those of the plan.
func protectableThere(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if _, gone := i.On[plans.Destination].(clusters.Gone); gone {
		return nil, nil
	}
	var some corev1.PersistentVolumeList
	if err := i.On[plans.Destination].List(ctx, &some, client.Limit(samples)); err != nil {
		return nil, ignoreForbidden(err)
	}
	for k := range some.Items {
		pv := &some.Items[k]
		if _, held := plans.Stamped(pv); held || pv.DeletionTimestamp != nil {
			continue
		}
		err := protect(ctx, i, plans.Destination, pv)
		if err == nil || !strings.Contains(err.Error(), access.ProtectedVolumesPolicy) {
			return nil, nil // it is about that volume
		}
		return refused(check.Finding{
			Object: fmt.Sprintf("volumes on the %s (%s)", plans.Destination, i.Plan.Destination.Context), Want: "permission to change those that the plan protects there", Remedy: nameMovers,
		}, err)
	}
	return nil, nil
}

// samples is how many volumes are read to find one that no plan protects.
const samples = 200

// protect sends the write that protects a volume as a dry run.
func protect(ctx context.Context, i check.Inspection, side plans.Side, pv *corev1.PersistentVolume) error {
	next := pv.DeepCopy()
	plans.Stamp{Plan: i.Plan.ID, Epoch: 1, Seq: 1}.Put(next)
	next.Annotations[plans.PolicyAnnotation] = string(pv.Spec.PersistentVolumeReclaimPolicy)
	next.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return writes.Change(ctx, i.On[side], pv, next, client.DryRunAll)
}

// refused returns the finding of a dry run, if the API server has refused it.
func refused(f check.Finding, err error) ([]check.Finding, error) {
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil, nil // another write came first: the looks observe the result
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		f.Saw, f.Passing = "the API server refuses it (dry run): "+err.Error(), answers.MayPass(err)
		return []check.Finding{f}, nil
	}
	return nil, fmt.Errorf("trying %s: %w", f.Object, err)
}

// touch stamps a protected volume again, as every step does that changes it.
func touch(ctx context.Context, i check.Inspection, side plans.Side, pv *corev1.PersistentVolume) error {
	next := pv.DeepCopy()
	stamp, _ := plans.Stamped(pv)
	stamp.Seq++
	stamp.Put(next)
	return writes.Change(ctx, i.On[side], pv, next, client.DryRunAll)
}

// limited reports, for an orchestrator that makes volumes in a cluster, whether a policy limits it to the
// volumes that the cluster has agreed to. It returns no finding where the user may not read the policy: the
// dry runs of the orchestrator itself decide.
func limited(ctx context.Context, i check.Inspection, names []string) ([]check.Finding, error) {
	if i.Orchestrated == nil || i.Plan.OneCluster() || len(i.Plan.Moved())+len(i.Plan.Shared) == 0 {
		return nil, nil
	}
	on := i.On[plans.Destination]
	f := check.Finding{Object: fmt.Sprintf("ValidatingAdmissionPolicyBinding %s on the destination (%s)", access.NewVolumesPolicy, i.Plan.Destination.Context)}
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	switch err := on.Get(ctx, client.ObjectKey{Name: access.NewVolumesPolicy}, &binding); {
	case apierrors.IsNotFound(err):
		f.Level, f.Saw, f.Want = check.Warn, "there is none", "a policy that limits the disks of which an orchestrator may make volumes; without it, an orchestrator may make volumes of any disk, for any namespace"
		f.Remedy = "stsmigrate install" + i.Flags[plans.Destination] + " policies --apply, and then stsmigrate consent --cluster"
		return []check.Finding{f}, nil
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ValidatingAdmissionPolicyBinding %s on the destination: %w", access.NewVolumesPolicy, err)
	}
	if binding.Spec.ParamRef != nil && binding.Spec.ParamRef.Namespace != "" {
		return outdated(i, f, binding.Spec.ParamRef), nil
	}
	return unagreed(ctx, i, names)
}

// outdated is the finding of a policy that compares volumes with a ConfigMap.
func outdated(i check.Inspection, f check.Finding, with *admissionv1.ParamRef) []check.Finding {
	f.Level, f.Saw = check.Warn, "it is that of an older release, which reads ConfigMap "+with.Namespace+"/"+with.Name
	f.Want = "the policies of this release: what the cluster takes back from a ConfigMap may stay in force"
	f.Remedy = "stsmigrate install" + i.Flags[plans.Destination] + " policies --apply, which says how what was agreed to is kept"
	return []check.Finding{f}
}

// unagreed names the volumes that the destination's cluster has not agreed to, as far as that may be read.
func unagreed(ctx context.Context, i check.Inspection, names []string) ([]check.Finding, error) {
	have, err := access.AgreedVolumes(ctx, i.On[plans.Destination], plans.Destination)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := check.Finding{
		Object: fmt.Sprintf("VolumeConsent %s on the destination (%s)", access.VolumeConsent().GetName(), i.Plan.Destination.Context),
		Want:   "the cluster to agree to the disks that plan " + i.Plan.ID + " makes volumes of there",
		Remedy: "`stsmigrate consent --cluster --plan FILE --side destination` prints it: the cluster's administrator reviews the disks and applies it",
	}
	wanted, err := access.NewVolumes(ctx, i.Plan, i.On, plans.Destination, names)
	if err != nil {
		f.Saw, f.Remedy = err.Error(), "move its data by another mode (--mode)"
		return []check.Finding{f}, nil //nolint:nilerr // it is what the check finds
	}
	var missing []string
	var first string
	for _, v := range wanted {
		lines, err := access.Unagreed(v, have)
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 {
			continue
		}
		missing = append(missing, v.Name)
		if first == "" {
			first = check.Few(lines)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	f.Saw = fmt.Sprintf("it does not agree to volume %s as the plan makes it; of %s it lacks %s", check.Few(missing), missing[0], first)
	return []check.Finding{f}, nil
}

// withoutParameter is in the words of an API server that does not find the object with which a policy compares.
const withoutParameter = "no params found"

// unreadable completes the finding of a refusal by an API server that does not find what the cluster agrees to: the policy
// refuses all volumes of plans then, from any user.
func unreadable(f check.Finding, err error) check.Finding {
	if err == nil || !strings.Contains(err.Error(), withoutParameter) {
		return f
	}
	f.Remedy = "what the cluster agrees to is missing: " + f.Remedy + ". If it is there (kubectl get volumeconsent cluster; in older releases: kubectl -n kube-system get configmap " + access.OldVolumesMap +
		"), the API server does not read it any more, as those of Kubernetes do with built-in kinds where policies were deleted and installed again: install the policies of this release (stsmigrate install policies --apply), or let the cluster's administrator restart the API servers"
	return f
}
