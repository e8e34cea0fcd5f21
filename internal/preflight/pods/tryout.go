package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/answers"
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/internal/preflight/volumes"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/build"
	"github.com/stsmigrate/stsmigrate/storage"
)

// PodAccepted sends a pod of the side that the ordinals come to as a dry run. LimitRanges, Pod Security, webhooks and
// policies see it as they will see the real pods. The move itself never writes a pod: without the right to
// create one the dry run is left out, with a warning.
func PodAccepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	object := "a pod of the set on the " + string(i.To())
	may, err := mayTry(ctx, i)
	if err != nil {
		return nil, err
	}
	if !may {
		return []check.Finding{{
			Level: check.Warn, Object: object, Saw: "you may not create pods there, so that none could be tried (dry run)",
			Want: "to know that LimitRange, Pod Security and webhooks let it in", Remedy: "ask for the right, or let a user who has it try: " + i.Kubectl(i.To()) + " create --dry-run=server",
		}}, nil
	}
	t, err := dryRunPod(ctx, i)
	if err != nil {
		return nil, err
	}
	if t.refusal != nil && strings.Contains(t.refusal.Error(), answers.FullQuota) {
		if held, err := placeholders(ctx, i); err != nil || len(held) > 0 {
			return nil, err // the check quota asks, and knows what they give free
		}
	}
	if f, refused, err := refusal(object, t.refusal); refused || err != nil {
		return f, err
	}
	out := alteredPod(object, t.set, t.sent, t.pod)
	for _, w := range t.warnings {
		out = append(out, check.Finding{
			Level: check.Warn, Object: object, Saw: "it is let in with a warning: " + w, Want: "no warning",
			Remedy: "see whether the pods should be changed with --patch",
		})
	}
	return out, nil
}

// refusal turns the error of a dry run into findings.
func refusal(object string, err error) (f []check.Finding, refused bool, _ error) {
	switch {
	case err == nil:
		return nil, false, nil
	case apierrors.IsNotFound(err):
		return nil, true, nil // no namespace; the check namespace reports it
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"):
		return []check.Finding{{
			Level: check.Warn, Object: object, Saw: "it could not be tried: " + err.Error(), Want: "to know that it is let in",
			Remedy: "ask the operator of that webhook whether it lets the pods in",
		}}, true, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsInternalError(err):
		return []check.Finding{{
			Object: object, Saw: "the API server refuses it (dry run): " + err.Error(), Want: "it to be let in", Passing: answers.MayPass(err),
			Remedy: "change what the namespace demands (its labels, LimitRange, ResourceQuota, policies), or the pods with --patch",
		}}, true, nil
	}
	return nil, true, err
}

// mayTry reports whether the user may make pods, which is what their dry runs need.
func mayTry(ctx context.Context, i check.Inspection) (bool, error) {
	return access.Allowed(ctx, i, i.To(), part.Right{Resource: "pods"}, "create")
}

// MayDelete reports whether the user may delete pods of the side that the ordinals leave, which the move itself never does.
func MayDelete(ctx context.Context, i check.Inspection) (bool, error) {
	return access.Allowed(ctx, i, i.From, part.Right{Resource: "pods"}, "delete")
}

// podDryRun is the first pod as the destination's API server returns it, with defaults, or the error of the
// refusal.
type podDryRun struct {
	set      *appsv1.StatefulSet
	sent     *corev1.Pod
	pod      *corev1.Pod
	warnings []string
	refusal  error
}

func dryRunPod(ctx context.Context, i check.Inspection) (podDryRun, error) {
	return check.Once(i, podTrialKey{}, func() (podDryRun, error) { return sendDryRunPod(ctx, i) })
}

func sendDryRunPod(ctx context.Context, i check.Inspection) (podDryRun, error) {
	set, err := i.Receives()
	if err != nil {
		return podDryRun{}, err
	}
	pod := build.Pod(set, i.Plan.Start)
	// A missing object that is still to be copied, or that another check reports, must not hide other
	// objections of the API server.
	if d := (plans.Dependency{Kind: "ServiceAccount", Name: pod.Spec.ServiceAccountName}); d.Name != "" {
		o, err := i.Dependency(ctx, i.To(), d)
		if err != nil {
			return podDryRun{}, err
		}
		if o == nil {
			pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
		}
	}
	for _, p := range clusterObjectsOf(pod.Spec) {
		if o, err := propertyOn(ctx, i, i.To(), p); o != nil || err != nil {
			continue
		}
		switch p.kind {
		case "PriorityClass":
			pod.Spec.PriorityClassName = ""
		case "RuntimeClass":
			pod.Spec.RuntimeClassName = nil
		}
	}
	pod.Name += "-dry-run"
	sent := pod.DeepCopy()
	ctx, heard := clusters.Hearing(ctx)
	err = i.On[i.To()].Create(ctx, pod, client.DryRunAll)
	return podDryRun{set, sent, pod, *heard, err}, nil
}

// claims returns the claims of the inspected ordinals as the move will make them on the side that they come to. It
// leaves out a claim that is absent on the other side, which another check reports.
func claims(ctx context.Context, i check.Inspection) ([]*corev1.PersistentVolumeClaim, error) {
	if len(i.Plan.Claims) == 0 {
		return nil, nil
	}
	if i.From == plans.Destination {
		return returning(ctx, i)
	}
	list, err := moving(ctx, i)
	if err != nil {
		return nil, err
	}
	var out []*corev1.PersistentVolumeClaim
	for k := range list {
		next, err := successor(i, &list[k])
		if err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, nil
}

// returning returns the claims that an abort makes on the source: those that the ordinals had there, as they are recorded
// on the volumes. The claims of ordinals that started empty have stayed.
func returning(ctx context.Context, i check.Inspection) (out []*corev1.PersistentVolumeClaim, err error) {
	for o := range i.Ordinals.All() {
		b, err := i.Volumes(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, v := range b.Volumes {
			pv, _, why, err := storage.Made(ctx, i.Plan, i.On, plans.Source, v.Name)
			if err != nil {
				return nil, err
			}
			if pv == nil || why != "" {
				continue // the looks report it
			}
			claim, err := storage.ClaimFrom(pv, i.Plan.Source.Namespace)
			if err == nil {
				out = append(out, claim) // else the looks report a volume without its marks
			}
		}
	}
	return out, nil
}

// moving reads these claims on the source. Between two waves it reads them one by one, and leaves out the
// claims that all ordinals share, which the destination has by then.
func moving(ctx context.Context, i check.Inspection) (out []corev1.PersistentVolumeClaim, err error) {
	names := map[string]bool{}
	for o := range i.Ordinals.All() {
		for _, t := range i.Plan.Claims {
			names[i.Plan.ClaimName(plans.Source, t.Template, o)] = true
		}
	}
	if i.Midway {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			var claim corev1.PersistentVolumeClaim
			key := client.ObjectKey{Namespace: i.Plan.Source.Namespace, Name: name}
			if err := i.On[plans.Source].Get(ctx, key, &claim); err == nil {
				out = append(out, claim)
			} else if !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("reading claim %s on the source: %w", key, err)
			}
		}
		return out, nil
	}
	for _, s := range i.Plan.Shared {
		names[s.Claim] = true
	}
	all, err := volumes.Leaving(ctx, i)
	return slices.DeleteFunc(slices.Clone(all), func(c corev1.PersistentVolumeClaim) bool { return !names[c.Name] }), err
}

// successor returns the claim of the destination for a claim of the source. The claim of an ordinal that
// starts empty will be made from the set's template; for a dry run this one is equivalent.
func successor(i check.Inspection, have *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	manifest, err := storage.Manifest(have)
	if err != nil {
		return nil, err
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: have.Spec.VolumeName, Annotations: map[string]string{plans.ClaimAnnotation: manifest}}}
	pv.Spec.StorageClassName = i.Plan.Storage.Class(class(have))
	return storage.ClaimFrom(pv, i.Plan.Destination.Namespace)
}

// ClaimsAccepted sends claims of the side that the ordinals come to as a dry run: the first of each size, access modes and
// class.
func ClaimsAccepted(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	claims, err := claims(ctx, i)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	tried := map[string]bool{}
	for _, c := range claims {
		kind := fmt.Sprint(c.Spec.Resources.Requests.Storage(), c.Spec.AccessModes, class(c))
		if tried[kind] {
			continue
		}
		tried[kind] = true
		object := fmt.Sprintf("claim %s/%s", c.Namespace, c.Name)
		have := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: i.Plan.On(i.From).Namespace, Name: c.Name}}
		c.Name += "-dry-run"
		sent := c.DeepCopy()
		found, refused, err := refusal(object, writes.Copy(ctx, i.On[i.From], have, i.On[i.To()], c, client.DryRunAll))
		if err != nil {
			return nil, err
		}
		if !refused {
			found = append(found, alteredClaim(object, sent, c)...)
		}
		out = append(out, found...)
	}
	return out, nil
}

func class(c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName == nil {
		return ""
	}
	return *c.Spec.StorageClassName
}

// podTrialKey is the key of check.Once for the dry run of the pod.
type podTrialKey struct{}
