package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// ClaimsAwaited refuses pods on the destination that name a claim which the set will have there: they would get the disk
// the moment that the claim is there (S20). It warns of workloads on both sides whose template names one. They may have
// no pod now, and one at night, with the ordinals on the way. The pods of the source are those of claims-unshared.
func ClaimsAwaited(ctx context.Context, i check.Inspection) ([]check.Finding, error) {
	claims := movedClaims(i)
	if len(claims) == 0 {
		return nil, nil
	}
	there, err := i.EveryPod(ctx, plans.Destination)
	if err != nil {
		return nil, err
	}
	var out []check.Finding
	for k := range there {
		for _, claim := range claims {
			if pod := &there[k]; storage.Names(pod, claim) && !i.Plan.HasPod(plans.Destination, pod.Name) {
				out = append(out, check.Finding{
					Object: "pod " + pod.Namespace + "/" + pod.Name, Saw: fmt.Sprintf("%s on the destination names claim %s, which the set will have there", storage.Stranger(pod), claim),
					Want: "no pod that waits for a claim of the set", Remedy: storage.Dismissal(pod),
				})
			}
		}
	}
	for _, side := range plans.Sides() {
		found, err := templates(ctx, i, side, claims)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// movedClaims returns the names of the claims of the inspected ordinals that move.
func movedClaims(i check.Inspection) (out []string) {
	for o := range i.Ordinals.All() {
		for _, c := range i.Plan.Moved() {
			out = append(out, i.Plan.ClaimName(plans.Destination, c.Template, o))
		}
	}
	return out
}

// workload is a kind of object that makes pods, and how to have none of it.
type workload struct {
	kind, stop string
	list       client.ObjectList
	template   func(client.Object) corev1.PodSpec
}

func workloads() []workload {
	return []workload{
		{"CronJob", "suspend it", &batchv1.CronJobList{}, func(o client.Object) corev1.PodSpec {
			return as[*batchv1.CronJob](o).Spec.JobTemplate.Spec.Template.Spec
		}},
		{"Job", "delete it", &batchv1.JobList{}, func(o client.Object) corev1.PodSpec { return as[*batchv1.Job](o).Spec.Template.Spec }},
		{"Deployment", "scale it to 0", &appsv1.DeploymentList{}, func(o client.Object) corev1.PodSpec { return as[*appsv1.Deployment](o).Spec.Template.Spec }},
		{"StatefulSet", "scale it to 0", &appsv1.StatefulSetList{}, func(o client.Object) corev1.PodSpec { return as[*appsv1.StatefulSet](o).Spec.Template.Spec }},
		{"DaemonSet", "delete it", &appsv1.DaemonSetList{}, func(o client.Object) corev1.PodSpec { return as[*appsv1.DaemonSet](o).Spec.Template.Spec }},
	}
}

func as[T client.Object](o client.Object) T {
	t, _ := o.(T)
	return t
}

// over reports whether a Job makes no more pods.
func over(o client.Object) bool {
	job, ok := o.(*batchv1.Job)
	return ok && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

// templates warns of the workloads of a side whose pods would mount a claim of the set.
func templates(ctx context.Context, i check.Inspection, side plans.Side, claims []string) (out []check.Finding, err error) {
	namespace, set := i.Plan.On(side).Namespace, i.Plan.On(side).Name
	var unseen []string
	for _, w := range workloads() {
		err := i.On[side].List(ctx, w.list, client.InNamespace(namespace))
		switch {
		case apierrors.IsForbidden(err):
			unseen = append(unseen, w.kind+"s")
			continue
		case err != nil:
			return nil, fmt.Errorf("listing the %ss of namespace %s: %w", w.kind, namespace, err)
		}
		err = meta.EachListItem(w.list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok || w.kind == "StatefulSet" && o.GetName() == set || over(o) {
				return nil
			}
			pod := &corev1.Pod{Spec: w.template(o)}
			if n := slices.IndexFunc(claims, func(c string) bool { return storage.Mounts(pod, c) }); n >= 0 {
				out = append(out, check.Finding{
					Level: check.Warn, Object: fmt.Sprintf("%s %s/%s", w.kind, namespace, o.GetName()), Saw: fmt.Sprintf("its pods mount claim %s on the %s", claims[n], side),
					Want: "no workload but the set that mounts its claims", Remedy: w.stop + consequence(side),
				})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(unseen) > 0 {
		out = append(out, check.Finding{
			Level: check.Warn, Object: fmt.Sprintf("namespace %s on the %s", namespace, side), Saw: "you may not list its " + strings.Join(unseen, ", "), Want: "to see which workloads mount the set's claims",
			Remedy: "ask for the right, or look yourself; the move continues without it",
		})
	}
	return out, nil
}

// consequence says what a pod that waits for a claim does on a side.
func consequence(side plans.Side) string {
	if side == plans.Source {
		return " until the end of the plan: when the ordinals have left, its pods wait for their claims, and an abort waits for those pods"
	}
	return " until every ordinal has arrived: the move waits while one of its pods waits for a claim"
}
