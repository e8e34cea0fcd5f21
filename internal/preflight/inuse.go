package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// What is in use where a set is to go belongs to another user. A user who meets it there has most likely named the wrong place. So no
// remedy is to scale it down or to delete it.

// elsewhere is the remedy for a place that is in use.
const elsewhere = "this is no empty place: you have probably named the wrong cluster or namespace (--to-context, --to-namespace). Choose another one; nothing that is in use is to be scaled down or deleted for a move"

// occupied returns the one finding of a destination whose set has ordinals. Its pods and claims are its own.
func occupied(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	set := i.Now.Existing
	all, err := i.EveryPod(ctx, plans.Destination)
	if err != nil {
		return nil, err
	}
	ready, named := 0, 0
	for k := range all {
		if metav1.IsControlledBy(&all[k], set) {
			named++
			if clusters.IsReady(&all[k]) {
				ready++
			}
		}
	}
	var images []string
	for _, c := range set.Spec.Template.Spec.Containers {
		images = append(images, c.Image)
	}
	return []check.Finding{{
		Object: i.Name(plans.Destination),
		Saw:    fmt.Sprintf("it has the ordinals %s, and is in use: %d of its %d pods are Ready (%s; %s)", plans.SliceOf(set), ready, named, check.Few(images), whose(set)),
		Want:   "no ordinals (replicas 0)", Remedy: elsewhere,
	}}, nil
}

// podInTheWay is the finding of a pod that has the name of an ordinal.
func podInTheWay(ctx context.Context, i check.Inspection, name string) ([]check.Finding, error) {
	pod := &corev1.Pod{}
	f := check.Finding{Object: "pod " + i.Plan.On(i.To()).Namespace + "/" + name, Saw: "it exists on the " + string(i.To()), Want: "the name to be free"}
	err := i.On[i.To()].Get(ctx, client.ObjectKey{Namespace: i.Plan.On(i.To()).Namespace, Name: name}, pod)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	switch {
	case err != nil || ended(pod):
		f.Remedy = "delete the pod, which has ended"
	default:
		var images []string
		for _, c := range pod.Spec.Containers {
			images = append(images, c.Image)
		}
		f.Saw += fmt.Sprintf(", and is in use: it is %s (%s; %s)", stateOf(pod), check.Few(images), whose(pod))
		f.Remedy = elsewhere
		if i.Midway {
			f.Remedy = "it was made since the plan began: find out whose it is, and let its owner end it"
		}
	}
	return []check.Finding{f}, nil
}

// claimInTheWay is the finding of a claim whose name is needed.
func claimInTheWay(ctx context.Context, i check.Inspection, claim *corev1.PersistentVolumeClaim, why string) ([]check.Finding, error) {
	f := check.Finding{
		Object: "claim " + claim.Namespace + "/" + claim.Name, Saw: "it exists on the " + string(i.To()), Want: "the name to be free",
		Remedy: "delete the claim if its data is not needed; " + why,
	}
	if claim.Spec.VolumeName == "" {
		return []check.Finding{f}, nil
	}
	all, err := i.EveryPod(ctx, i.To())
	if err != nil {
		return nil, err
	}
	users := storage.Users(slices.DeleteFunc(all, func(p corev1.Pod) bool { return ended(&p) }), claim.Name)
	f.Saw += fmt.Sprintf(", bound to volume %s (%s)", claim.Spec.VolumeName, whose(claim))
	switch {
	case users != "" && i.Midway:
		f.Saw, f.Remedy = f.Saw+", and pod "+users+" mounts it", "find out whose it is, and let its owner move the data elsewhere; "+why
	case users != "":
		f.Saw, f.Remedy = f.Saw+", and pod "+users+" mounts it", elsewhere
	case !i.Midway:
		f.Remedy = "no pod mounts it, but it has data of another user: is this the cluster and the namespace that you mean? Ask its owner, or choose another namespace. Only if the data is needed no more, delete the claim; " + why
	}
	return []check.Finding{f}, nil
}

// whose says when an object was made, and by what.
func whose(o client.Object) string {
	by := "by an unknown client"
	if owner := metav1.GetControllerOf(o); owner != nil {
		by = "of " + owner.Kind + " " + owner.Name
	} else if release := o.GetAnnotations()["meta.helm.sh/release-name"]; release != "" {
		by = "of the Helm release " + release
	} else if tool := o.GetLabels()["app.kubernetes.io/managed-by"]; tool != "" {
		by = "managed by " + tool
	} else if fields := o.GetManagedFields(); len(fields) > 0 {
		by = "written by " + fields[0].Manager
	}
	made := o.GetCreationTimestamp()
	if made.IsZero() {
		return by
	}
	return "made " + made.UTC().Format("2006-01-02 15:04 MST") + ", " + by
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func stateOf(p *corev1.Pod) string {
	if clusters.IsReady(p) {
		return "Ready"
	}
	if p.Status.Phase == "" {
		return "not Ready"
	}
	return strings.ToLower(string(p.Status.Phase)) + " and not Ready"
}
