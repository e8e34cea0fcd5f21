package volumes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// ClaimsLeft refuses claims of ordinals that were scaled down long ago and still have an owner reference to
// the set: no controller removes that reference, and the garbage collector would delete the claims with the
// source set at the end.
func ClaimsLeft(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	claims, err := Leaving(ctx, i)
	if err != nil {
		return nil, err
	}
	moving := map[string]bool{}
	for o := range i.Plan.Ordinals().All() {
		for _, c := range i.Plan.Claims {
			moving[i.Plan.ClaimName(plans.Source, c.Template, o)] = true
		}
	}
	var out []check.Finding
	for _, c := range claims {
		for n, owner := range c.OwnerReferences {
			if owner.UID == i.Now.Set.UID && !moving[c.Name] {
				out = append(out, check.Finding{
					Object: "claim " + c.Namespace + "/" + c.Name, Saw: "it belongs to the set and to none of its ordinals, and would be deleted with the set", Want: "no owner",
					Remedy: fmt.Sprintf("take the owner reference off, or delete the claim if its data is not needed\n%s -n %s patch pvc %s --type=json -p '[{\"op\":\"test\",\"path\":\"/metadata/ownerReferences/%d/uid\",\"value\":\"%s\"},{\"op\":\"remove\",\"path\":\"/metadata/ownerReferences/%d\"}]'",
						i.Kubectl(plans.Source), c.Namespace, c.Name, n, owner.UID, n),
				})
			}
		}
	}
	return out, nil
}

// Leaving reads the claims of the source's namespace.
func Leaving(ctx context.Context, i check.Inspection) ([]corev1.PersistentVolumeClaim, error) {
	return check.Once(i, claimsKey{}, func() ([]corev1.PersistentVolumeClaim, error) {
		var list corev1.PersistentVolumeClaimList
		if err := i.On[plans.Source].List(ctx, &list, client.InNamespace(i.Plan.Source.Namespace)); err != nil {
			return nil, fmt.Errorf("listing the claims of namespace %s: %w", i.Plan.Source.Namespace, err)
		}
		return list.Items, nil
	})
}

// Settled requires that no volume is in the middle of a change, and that a claim and its volume agree. Where
// both name each other, as ours always do, the binder requires only the same volume mode. Any other
// difference is an unfinished change, or worth knowing.
func Settled(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	if len(i.Plan.Moved()) == 0 {
		return nil, nil
	}
	shelf, err := On(ctx, i, i.From)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	seen := map[string]bool{}
	for o := range i.Ordinals.All() {
		for _, c := range i.Plan.Moved() {
			claim, err := i.Claim(ctx, i.From, i.Plan.ClaimName(i.From, c.Template, o))
			if err != nil {
				return nil, err
			}
			if claim == nil || shelf.ByName[claim.Spec.VolumeName] == nil {
				continue // the check claims-bound reports it
			}
			pv := shelf.ByName[claim.Spec.VolumeName]
			for _, f := range slices.Concat(unfinished(claim), mismatch(claim, pv), tooLarge(claim, pv)) {
				f.Object = "claim " + claim.Name
				out = append(out, f)
			}
			f, err := attributesClass(ctx, i, claim, seen)
			if err != nil {
				return nil, err
			}
			out = append(out, f...)
		}
	}
	return out, nil
}

// unfinished reports an expansion, or a change of the volume's attributes, that is in progress.
func unfinished(c *corev1.PersistentVolumeClaim) []check.Finding {
	var out []check.Finding
	for _, cond := range c.Status.Conditions {
		switch cond.Type { //nolint:exhaustive // the others do not matter
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending:
			if cond.Status == corev1.ConditionTrue {
				out = append(out, check.Finding{Saw: fmt.Sprintf("its volume is being expanded (%s)", cond.Type), Want: "a finished expansion", Remedy: "wait for it; a pod restart may be needed (`kubectl describe pvc` says so)"})
			}
		}
	}
	for resource, status := range c.Status.AllocatedResourceStatuses {
		if len(out) == 0 {
			out = append(out, check.Finding{Saw: fmt.Sprintf("its %s is being expanded (%s)", resource, status), Want: "a finished expansion", Remedy: "wait for it; where it is infeasible, ask for a size that the volume can have (`kubectl describe pvc` says why)"})
		}
	}
	if m := c.Status.ModifyVolumeStatus; m != nil {
		out = append(out, check.Finding{Saw: fmt.Sprintf("its volume is being changed to VolumeAttributesClass %s (%s)", m.TargetVolumeAttributesClassName, m.Status), Want: "a finished change", Remedy: "wait for it, or set the class back"})
	}
	return out
}

// annotationReserve is how many bytes of a volume's annotations are reserved for our own.
const annotationReserve = 2 << 10

// tooLarge reports a claim whose manifest does not fit into the annotations of its volume. The write would be
// refused when the volume is protected or, if the manifest has grown since, with the ordinal down.
func tooLarge(c *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) []check.Finding {
	manifest, err := storage.Manifest(c)
	if err != nil {
		return []check.Finding{{Saw: err.Error(), Want: "a claim that can be written down", Remedy: "report this"}}
	}
	size := len(plans.ClaimAnnotation) + len(manifest) + annotationReserve
	for k, v := range pv.Annotations {
		if k != plans.ClaimAnnotation {
			size += len(k) + len(v)
		}
	}
	if size <= validation.TotalAnnotationSizeLimitB {
		return nil
	}
	return []check.Finding{{
		Saw:    fmt.Sprintf("its manifest is %d KiB, and is kept among the annotations of volume %s", len(manifest)>>10, pv.Name),
		Want:   fmt.Sprintf("no more than %d KiB of annotations there in all", validation.TotalAnnotationSizeLimitB>>10),
		Remedy: "take large annotations off the claim or the volume; `kubectl get pvc " + c.Name + " -o yaml` shows them",
	}}
}

// mismatch reports where a claim and its volume do not agree.
func mismatch(c *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) []check.Finding {
	var out []check.Finding
	add := func(level check.Level, saw, want, remedy string) {
		out = append(out, check.Finding{Level: level, Saw: saw, Want: want, Remedy: remedy})
	}
	asked, has := c.Spec.Resources.Requests[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	if asked.Cmp(has) > 0 {
		add(check.Fail, fmt.Sprintf("it asks for %s and volume %s has %s", asked.String(), pv.Name, has.String()), "a volume of at least that size", "let the expansion finish, or ask for no more than the volume has")
	}
	if a, b := attributes(c.Spec.VolumeAttributesClassName), attributes(pv.Spec.VolumeAttributesClassName); a != b && c.Status.ModifyVolumeStatus == nil {
		add(check.Fail, fmt.Sprintf("it has VolumeAttributesClass %q and volume %s has %q", a, pv.Name, b), "a finished change", "let the driver change the volume, or set the class of the claim back")
	}
	if class := c.Spec.StorageClassName; class != nil && *class != pv.Spec.StorageClassName {
		add(check.Warn, fmt.Sprintf("it has StorageClass %q and volume %s has %q", *class, pv.Name, pv.Spec.StorageClassName), "the same class", "its claim on the destination gets the class of the volume; set that to the claim's if it is the right one")
	}
	for _, m := range c.Spec.AccessModes {
		if !slices.Contains(pv.Spec.AccessModes, m) {
			add(check.Warn, fmt.Sprintf("it asks for %s and volume %s has %v", m, pv.Name, pv.Spec.AccessModes), "access modes that the volume has", "add the mode to the volume if the storage can do it")
		}
	}
	if a, b := modeOf(c.Spec.VolumeMode), modeOf(pv.Spec.VolumeMode); a != b {
		add(check.Fail, fmt.Sprintf("it has volume mode %s and volume %s has %s", a, pv.Name, b), "the same mode", "repair the binding first")
	}
	return out
}

func attributes(class *string) string {
	if class == nil {
		return ""
	}
	return *class
}

func modeOf(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

// attributesClass requires the VolumeAttributesClass of a claim in the other cluster.
func attributesClass(ctx context.Context, i check.Inspection, c *corev1.PersistentVolumeClaim, seen map[string]bool) ([]check.Finding, error) {
	name := c.Spec.VolumeAttributesClassName
	if name == nil || *name == "" || i.Plan.OneCluster() || seen[*name] {
		return nil, nil
	}
	seen[*name] = true
	err := i.On[i.To()].Get(ctx, client.ObjectKey{Name: *name}, &storagev1.VolumeAttributesClass{})
	object := "claim " + c.Name
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return []check.Finding{{Object: object, Saw: "it has VolumeAttributesClass " + *name + ", which the " + string(i.To()) + " does not have", Want: "a class of that name, for the same driver", Remedy: "create it there"}}, nil
	case apierrors.IsForbidden(err):
		return []check.Finding{{Object: object, Level: check.Warn, Saw: "it has VolumeAttributesClass " + *name + ", and you may not look whether the " + string(i.To()) + " has it", Want: "a class of that name", Remedy: "ask a user who may read it"}}, nil
	}
	return nil, err
}

// claimsKey is the key of check.Once for the claims of the source's namespace.
type claimsKey struct{}
