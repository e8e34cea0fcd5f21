package simulation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/internal/placeholder/waiting"
	"github.com/stsmigrate/stsmigrate/plans"
)

// placeholder returns how the places of the ordinals are taken.
func (sc options) placeholder() plans.Placeholder {
	p := plans.Placeholder{Proof: sc.Places, Reach: sc.Reach}
	if len(sc.Reach) > 0 {
		p.Image = "waits:1"
	}
	return p
}

// reaches is the container of a placeholder that asks what must be reached.
const reaches = "stsmigrate-reach"

// asksAround reports whether a pod asks what must be reached.
func asksAround(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == reaches })
}

// misses has the program of a pod reach nothing, and reports whether that is news. The kubelet starts it again.
func misses(s *store, pod *corev1.Pod) bool {
	if len(pod.Status.InitContainerStatuses) > 0 {
		return false
	}
	a := waiting.Answers{Asked: 1, Each: []waiting.Answer{{Target: "web-0.web:80", Error: "lookup web-0.web: no such host"}}}
	next := clone(pod)
	next.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: reaches, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: string(a.Encode(waiting.MaxMessage))}},
	}}
	s.put(next)
	return true
}
