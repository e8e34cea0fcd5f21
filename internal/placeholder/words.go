package placeholder

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stsmigrate/stsmigrate/plans"
)

// Has reports whether what a plan wants proven is.
func (p Proof) Has(want plans.Proof) bool {
	return !p.Ended && !p.Unasked && (p.Warm || want == plans.Scheduled && p.Node != "")
}

// Waits says that an ordinal stays up since its placeholder does not have its place.
func Waits(p *plans.Plan, step plans.Step, ordinal int32, lacks string) string {
	return fmt.Sprintf("placeholder %s of %s does not have its place yet, so %s stays up: %s", p.Place(step.To(), ordinal), p.On(step.To()), p.Pod(step.From, ordinal), lacks)
}

// Words says what a placeholder lacks, and who has to do what next: the user, or no one.
func (p Proof) Words() string {
	next := "it is on its way, and the plan continues by itself when it is there"
	if p.Why == "ContainerCreating" || p.Why == "PodInitializing" { // a kubelet says in events alone which volume it cannot mount
		next += "; if it stays so, a Secret, a ConfigMap or another volume may be missing, and the events of `kubectl describe pod` of it say which"
	}
	if p.Node == "" && p.Why == "" && !p.Ended {
		next = "nothing is to be done yet, and the plan continues by itself when it is there; if it stays so, see that this scheduler runs in that cluster, or go on without (`resume` with --skip-places, or a new plan with --placeholder off)"
	}
	if p.Stuck {
		next = "you must act: " + p.next() + "; the plan continues by itself when its place is there"
	}
	return p.Lacks + "; " + next
}

// next says what the user can do, by the word of the scheduler or the kubelet.
func (p Proof) next() string {
	switch p.Why {
	case corev1.PodReasonUnschedulable:
		return "unless a node for it is on its way, make room, or loosen what its pod asks of nodes"
	case corev1.PodReasonSchedulingGated:
		return "lift its scheduling gates as you lift those of the pods of the set"
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "SignatureValidationFailed":
		return "see that its node can pull this image (the name, the registry, the pull secret of its account)"
	case notReached:
		return "let that node reach these (routes, firewalls, the DNS; NetworkPolicies see no label of the set in a placeholder), or take them out of reach in a new plan; it is tried again"
	case "CreateContainerConfigError":
		return "make the Secret or ConfigMap that it names, or the key in it"
	}
	return "`kubectl describe` of it says more"
}

// Took returns how long it took from the creation of a placeholder until it had proven what a plan wants, by its own
// conditions and to the second; 0 if these do not say.
func Took(pod *corev1.Pod, want plans.Proof) time.Duration {
	var until time.Time
	if want == plans.Warm {
		until = began(pod)
	} else if c := scheduled(pod); c != nil && c.Status == corev1.ConditionTrue {
		until = c.LastTransitionTime.Time
	}
	if until.IsZero() {
		return 0
	}
	return max(until.Sub(pod.CreationTimestamp.Time), 0)
}
