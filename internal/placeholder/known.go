package placeholder

import (
	"cmp"
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
	// firstPause is how long a kubelet waits at least before it starts a container again. After maxPauses it is no longer of
	// interest how long ago the first time was.
	firstPause = 10 * time.Second
	maxPauses  = 5
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

// began returns when the last container was started for the first time, or could not be, by the clock of its node; zero if
// none was. One that cannot be started has only an end. It is tried again and again, and each time is later than the pauses
// of the kubelet before it: ten seconds, and twice as long each time.
func began(pod *corev1.Pod) (at time.Time) {
	for _, c := range pod.Status.ContainerStatuses {
		var last time.Time
		switch ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); {
		case c.State.Running != nil:
			last = c.State.Running.StartedAt.Time
		case ended != nil && ended.StartedAt.Unix() > 0:
			last = ended.StartedAt.Time
		case ended != nil:
			last = ended.FinishedAt.Time
		default:
			continue
		}
		first := last.Add(-firstPause * (1<<min(c.RestartCount, maxPauses) - 1))
		if first.After(at) {
			at = first
		}
	}
	return at
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
