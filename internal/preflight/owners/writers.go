package owners

import (
	"context"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// kubectl returns the beginning of a command line for a side's cluster and namespace.
func kubectl(i check.Inspection, side plans.Side) string {
	return i.Kubectl(side) + " -n " + i.Plan.On(side).Namespace
}

// lines returns a remedy: a sentence and the commands to type.
func lines(sentence string, commands ...string) string {
	return sentence + "\n" + strings.Join(commands, "\n")
}

// Owner refuses sets that another controller scales: it would revert the move. It warns of an owner that is
// not the controller: the set may be deleted together with that owner.
func Owner(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for side, set := range i.Sets {
		for _, o := range set.OwnerReferences {
			f := check.Finding{
				Object: i.Name(side), Saw: fmt.Sprintf("it is controlled by %s %s", o.Kind, o.Name), Want: "no controller that would scale it back",
				Remedy: "pause that operator for this set and take the owner reference off, or use the operator's own way to move",
			}
			if o.Controller == nil || !*o.Controller {
				f.Level, f.Saw, f.Want = check.Warn, fmt.Sprintf("it is owned by %s %s", o.Kind, o.Name), "no owner whose deletion deletes the set"
				f.Remedy = "leave that object alone until the move is over; the destination set is not owned by it"
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// targets reports whether the target reference of an autoscaler means the set of a side.
func targets(i check.Inspection, side plans.Side, kind, name string) bool {
	return plans.IsSet(kind) && name == i.Plan.On(side).Name
}

// Autoscaler refuses a HorizontalPodAutoscaler on either set, even where the set does not exist yet: on the
// destination it would make the ordinal after the last one.
func Autoscaler(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		var list autoscalingv2.HorizontalPodAutoscalerList
		if err := i.On[side].List(ctx, &list, client.InNamespace(i.Plan.On(side).Namespace)); err != nil {
			return nil, fmt.Errorf("listing the HorizontalPodAutoscalers of %s: %w", i.Plan.On(side), err)
		}
		for _, h := range list.Items {
			if !targets(i, side, h.Spec.ScaleTargetRef.Kind, h.Spec.ScaleTargetRef.Name) {
				continue
			}
			f := check.Finding{Object: i.Name(side), Saw: "HorizontalPodAutoscaler " + h.Name + " scales it", Want: "no autoscaler"}
			if o := metav1.GetControllerOf(&h); o != nil && o.Kind == "ScaledObject" {
				f.Saw += ", which KEDA makes from ScaledObject " + o.Name
				f.Remedy = pauseKEDA(i, side, o.Name)
			} else {
				hpa := kubectl(i, side) + " %s hpa " + h.Name
				f.Remedy = lines("save it and delete it for the time of the move, and recreate it at the end, on the side where the set is then",
					fmt.Sprintf(hpa, "get")+" -o yaml > "+h.Name+"-hpa.yaml", fmt.Sprintf(hpa, "delete"))
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// custom lists objects of a kind that the cluster of a side need not know. It turns Forbidden into a warning:
// the move does not need the right to list them.
func custom(ctx context.Context, i check.Inspection, side plans.Side, kind schema.GroupVersionKind) ([]unstructured.Unstructured, []check.Finding, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	namespace := i.Plan.On(side).Namespace
	err := i.On[side].List(ctx, &list, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil, nil, nil
	case apierrors.IsForbidden(err):
		return nil, []check.Finding{{
			Level: check.Warn, Unseen: true, Object: fmt.Sprintf("%ss of namespace %s on the %s", kind.Kind, namespace, side), Saw: "you may not list them, though the cluster knows them",
			Want: "to be able to look", Remedy: "let a user who may list them run: `" + kubectl(i, side) + " get " + strings.ToLower(kind.Kind) + "`",
		}}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("listing the %ss of %s: %w", kind.Kind, i.Plan.On(side), err)
	}
	return list.Items, nil, nil
}

// Keda refuses a ScaledObject over either set that is not paused. A ScaledObject that is paused at a number
// of replicas keeps writing that number.
func Keda(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		objects, unseen, err := custom(ctx, i, side, schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"})
		if err != nil {
			return nil, err
		}
		out = append(out, unseen...)
		for _, o := range objects {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "kind")
			name, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "name")
			if !targets(i, side, kind, name) || pausedKEDA(o.GetAnnotations()) {
				continue
			}
			out = append(out, check.Finding{
				Object: i.Name(side), Saw: "ScaledObject " + o.GetName() + " of KEDA scales it", Want: "none, or a paused one", Remedy: pauseKEDA(i, side, o.GetName()),
			})
		}
	}
	return out, nil
}

func pausedKEDA(annotations map[string]string) bool {
	paused, there := annotations["autoscaling.keda.sh/paused"]
	_, number := annotations["autoscaling.keda.sh/paused-replicas"]
	return there && paused != "false" && !number
}

func pauseKEDA(i check.Inspection, side plans.Side, name string) string {
	annotate := kubectl(i, side) + " annotate scaledobject " + name
	return lines("pause it for the time of the move (the second command ends that)",
		annotate+" --overwrite autoscaling.keda.sh/paused=true autoscaling.keda.sh/paused-replicas-", annotate+" autoscaling.keda.sh/paused-")
}

// VerticalAutoscaler warns of a VerticalPodAutoscaler that evicts pods. It does not write the set, and its
// evictions respect the budgets, so it cannot break a move. But it restarts pods between two ordinals, and
// pods on a side without it start with the template's requests again.
func VerticalAutoscaler(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, side := range plans.Sides() {
		objects, unseen, err := custom(ctx, i, side, schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"})
		if err != nil {
			return nil, err
		}
		out = append(out, unseen...)
		for _, o := range objects {
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "targetRef", "kind")
			name, _, _ := unstructured.NestedString(o.Object, "spec", "targetRef", "name")
			mode, _, _ := unstructured.NestedString(o.Object, "spec", "updatePolicy", "updateMode")
			if !targets(i, side, kind, name) || mode == "Off" || mode == "Initial" {
				continue
			}
			if mode == "" {
				mode = "Auto"
			}
			out = append(out, check.Finding{
				Level: check.Warn, Object: i.Name(side), Saw: fmt.Sprintf("VerticalPodAutoscaler %s evicts its pods (updateMode %s)", o.GetName(), mode), Want: "updateMode Off or Initial",
				Remedy: lines("turn that off for the time of the move",
					fmt.Sprintf(`%s patch verticalpodautoscaler %s --type merge -p '{"spec":{"updatePolicy":{"updateMode":"Off"}}}'`, kubectl(i, side), o.GetName())),
			})
		}
	}
	return out, nil
}

// Helm warns of the marks of Helm: no controller would write the set, but a user may. The check flux covers a
// HelmRelease of Flux.
func Helm(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	var out []check.Finding
	for _, g := range guardedObjects(i) {
		release := g.object.GetAnnotations()[releaseName]
		if g.object.GetLabels()[managedBy] != "Helm" || release == "" || g.object.GetLabels()[fluxHelm+"/name"] != "" {
			continue
		}
		namespace := g.object.GetAnnotations()[releaseNamespace]
		if namespace == "" {
			namespace = g.object.GetNamespace()
		}
		out = append(out, check.Finding{
			Level: check.Warn, Object: g.name, Saw: fmt.Sprintf("Helm release %s/%s has it", namespace, release),
			Want: fmt.Sprintf("no upgrade, rollback or uninstall of the release during the move, and after `finalize` a release of namespace %s that has what is there", i.Plan.Destination.Namespace),
			Remedy: lines(fmt.Sprintf("after `finalize` the release still has the set in its manifest: an upgrade would make it again in namespace %s, with empty volumes. `finalize` prints how the objects change hands before it asks; until that is done, none of", namespace),
				"helm upgrade "+release+" -n "+namespace, "helm rollback "+release+" -n "+namespace, "helm uninstall "+release+" -n "+namespace),
		})
	}
	return out, nil
}
