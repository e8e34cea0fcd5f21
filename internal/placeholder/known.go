package placeholder

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

const (
	// tellsWithin is how soon a kubelet tells the API server of an image that it has pulled: it lists its images every thirty
	// seconds, and tells what has changed every ten.
	tellsWithin = 42 * time.Second
	// worth is what a pull must have taken at least: less is soon done again on another node.
	worth = 5 * time.Second
	// tellsOf is how many images a kubelet tells of by default: the largest ones.
	tellsOf = 50
)

// known waits for a moment after images were pulled for a placeholder, until its node has told of them. Of nodes alike the
// scheduler then prefers this one for the pod of the ordinal; before that it chooses by chance. It is worth no more than that
// moment, and nothing if they were there at once.
func (s Steps) known(ctx context.Context, m plans.StepContext, pod *corev1.Pod) (plans.Observation, error) {
	since := began(pod)
	if s.Plan.Placeholder.Proof != plans.Warm || s.Now == nil || since.Sub(pod.CreationTimestamp.Time) < worth {
		return plans.Done(), nil
	}
	left := tellsWithin - s.Now().Sub(since)
	if left <= 0 || left > tellsWithin { // by a clock that is ahead of ours nothing can be told
		return plans.Done(), nil
	}
	node, err := clusters.Get[corev1.Node](ctx, s.On[m.To()], "", pod.Spec.NodeName, "the "+string(m.To()))
	if err != nil || node == nil || tells(node, pod) {
		return plans.Done(), err
	}
	wait := plans.Wait(reasons.PlaceNotReady, fmt.Sprintf("node %s has not told yet of the images that it has for %s; when it has, the scheduler prefers it", node.Name, s.called(m.To(), pod.Name))).Idly()
	wait.Again = left
	return wait, nil
}

// began returns when the last container was started, or could not be, by the clock of its node.
func began(pod *corev1.Pod) (at time.Time) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Running != nil {
				at = later(at, state.Running.StartedAt.Time)
			}
			if state.Terminated != nil {
				at = later(at, state.Terminated.FinishedAt.Time)
			}
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tells reports whether a node tells of the images of all containers of a pod, or of none at all, or of so many that smaller
// ones are left out.
func tells(node *corev1.Node, pod *corev1.Pod) bool {
	if len(node.Status.Images) == 0 || len(node.Status.Images) >= tellsOf {
		return true
	}
	var names []string
	for _, image := range node.Status.Images {
		names = append(names, image.Names...)
	}
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return !slices.Contains(names, c.Image) && !slices.Contains(names, c.ImageID)
	})
}
