package orchestrator

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Clusters holds one live client per side. With both sides in one cluster they
// may be the same client.
type Clusters map[plans.Side]client.Client

// world reads the sets and pods of one plan.
type world struct {
	plan *plans.Plan
	on   Clusters
	// tighten looks at the budgets of a wave. Only an engine has it.
	tighten plans.Look
}

// set reads the StatefulSet of a side; nil means that there is none.
func (w world) set(ctx context.Context, side plans.Side) (*appsv1.StatefulSet, error) {
	return readSet(ctx, w.on[side], w.plan.On(side))
}

// everyPod reads all pods of the namespace of a side.
func (w world) everyPod(ctx context.Context, side plans.Side) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := w.on[side].List(ctx, &list, client.InNamespace(w.plan.On(side).Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", w.plan.On(side), err)
	}
	return list.Items, nil
}

// pods reads the pods that a set controls, by ordinal name.
func (w world) pods(ctx context.Context, side plans.Side, set *appsv1.StatefulSet) (map[string]*corev1.Pod, error) {
	all, err := w.everyPod(ctx, side)
	out := map[string]*corev1.Pod{}
	for i := range all {
		if metav1.IsControlledBy(&all[i], set) {
			out[all[i].Name] = &all[i]
		}
	}
	return out, err
}

// ready gives the reason why a pod is not ready to serve, or "".
func ready(pod *corev1.Pod) string {
	switch {
	case pod == nil:
		return "does not exist yet"
	case pod.DeletionTimestamp != nil:
		return "is terminating"
	case pod.Spec.NodeName == "":
		return "is not scheduled" + because(pod, corev1.PodScheduled)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("is %s and not Ready%s", pod.Status.Phase, because(pod, corev1.PodReady))
}

func because(pod *corev1.Pod, t corev1.PodConditionType) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == t && c.Message != "" {
			return ": " + c.Message
		}
	}
	return ""
}

// unsettled gives the reason why a set is in the middle of something else (S13).
func (w world) unsettled(side plans.Side, set *appsv1.StatefulSet) string {
	switch {
	case set.Status.ObservedGeneration < set.Generation:
		return fmt.Sprintf("%s: waiting for its controller to see generation %d", w.plan.On(side).Set(), set.Generation)
	case plans.SliceOf(set).Replicas > 0 && set.Status.CurrentRevision != set.Status.UpdateRevision && !replaced(set):
		return fmt.Sprintf("%s is in the middle of a rolling update (%s -> %s); let it finish", w.plan.On(side).Set(), set.Status.CurrentRevision, set.Status.UpdateRevision)
	}
	return ""
}

// replaced says whether every pod of a set with OnDelete has the latest revision. Kubernetes never moves
// the current revision of such a set, but counts the pods by their label.
func replaced(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && set.Status.UpdatedReplicas >= plans.SliceOf(set).Replicas
}
