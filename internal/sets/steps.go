package sets

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
)

// PausedFrom is the annotation of a StatefulSet whose update is paused: a partition protects all of its pods, and the
// value is the partition that it gets back.
const PausedFrom = plans.PausedAnnotation

// Steps reads the sets and pods of one plan.
type Steps struct {
	clusters.Pair
	// Tighten looks at the budgets of a wave. Only an engine has it.
	Tighten plans.Look
	// Twins remembers the templates that were compared; nil to compare them each time.
	Twins *Twins
	// Twice remembers when what pods name was the same on both sides; nil to compare it each time.
	Twice *Twice
}

// comparison compares what the pods of both sides start with.
type comparison struct {
	clusters.Pair
	twins *Twins
	twice *Twice
}

func comparisonOf(w Steps) comparison { return comparison{w.Pair, w.Twins, w.Twice} }

// ranges looks at the range and identity of the sets, and changes a range.
type ranges struct{ clusters.Pair }

func rangesOf(w clusters.Pair) ranges { return ranges{w} }

// Ready returns the reason why a pod is not ready to serve, or "".
func Ready(pod *corev1.Pod) string {
	switch {
	case pod == nil:
		return "does not exist yet"
	case pod.DeletionTimestamp != nil:
		return "is terminating"
	case pod.Spec.NodeName == "":
		return "is not scheduled" + unscheduled(pod)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("is %s and not Ready%s", pod.Status.Phase, because(pod, corev1.PodReady))
}

// readySince returns when a pod that is Ready became so, by the clock of its node and to the second.
func readySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// unscheduled returns why a pod has no node, as far as its scheduler says so. One that no scheduler looks at has no
// condition: there is none of its name, or it does not run.
func unscheduled(pod *corev1.Pod) string {
	why, name := because(pod, corev1.PodScheduled), pod.Spec.SchedulerName
	if why == "" && name != "" && name != corev1.DefaultSchedulerName {
		return fmt.Sprintf(": no scheduler has looked at it (its schedulerName is %s)", name)
	}
	return why
}

func because(pod *corev1.Pod, t corev1.PodConditionType) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == t && c.Message != "" {
			return ": " + c.Message
		}
	}
	return ""
}

// Unsettled returns the reason why a set is in the middle of another change, or "" (S13).
func Unsettled(p *plans.Plan, side plans.Side, set *appsv1.StatefulSet) string {
	switch {
	case unseen(set):
		return fmt.Sprintf("%s: waiting for its controller to see generation %d", p.On(side).Set(), set.Generation)
	case plans.SliceOf(set).Replicas > 0 && set.Status.CurrentRevision != set.Status.UpdateRevision && !replaced(set):
		return fmt.Sprintf("%s is in the middle of a rolling update (%s -> %s); let it finish", p.On(side).Set(), set.Status.CurrentRevision, set.Status.UpdateRevision)
	}
	return ""
}

// unseen reports whether the controller of a set has not acted on its spec yet.
func unseen(set *appsv1.StatefulSet) bool { return set.Status.ObservedGeneration < set.Generation }

// replaced reports whether every pod of a set with OnDelete has the latest revision. Kubernetes never changes
// the current revision of such a set, but counts the pods by their label.
func replaced(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && set.Status.UpdatedReplicas >= plans.SliceOf(set).Replicas
}
