package placeholder

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/stsmigrate/stsmigrate/internal/preflight/scheduling"
)

// An anchor is a second pod on the node of a placeholder. It stays when the placeholder goes, until the pod of the ordinal has a
// node: the scheduler chooses that anew, and counts for a node what the pods there prefer to have beside them. It asks for
// nothing and proves nothing, and an ordinal goes without one.

// AnchorLabel on an anchor has the name of the set. It has no SetLabel: the rules of placeholders to one another are not
// about it.
const AnchorLabel = "stsmigrate.dev/anchor-for"

// The kinds of pods that have Label.
const (
	aPlaceholder = "placeholder"
	anAnchor     = "anchor"
)

// kind tells them apart by their labels.
func kind(of map[string]string) string {
	if of[AnchorLabel] != "" {
		return anAnchor
	}
	return aPlaceholder
}

// pull is how many terms of the greatest weight an anchor has. Pods of a set that prefer to be apart weigh twice that weight
// for each that is there.
const pull = 10

// Anchor returns the anchor for the node of a placeholder, or nil if it would itself keep the pod of the ordinal from there.
func Anchor(p Place, name string, place *corev1.Pod) (*corev1.Pod, error) {
	of := p.Pod.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: of.Namespace, Name: name, Labels: map[string]string{Label: p.Plan, AnchorLabel: p.Set, "app.kubernetes.io/managed-by": "stsmigrate"},
	}}
	if away, err := repels(of, pod.Labels); err != nil || away {
		return nil, err
	}
	if p.Owner.UID != "" {
		pod.OwnerReferences = []metav1.OwnerReference{p.Owner}
	}
	pod.Spec = corev1.PodSpec{
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{place.Spec.NodeName}}},
			}}}},
			PodAffinity: &corev1.PodAffinity{},
		},
		Containers:  []corev1.Container{p.idle(of)},
		Tolerations: of.Spec.Tolerations, SchedulerName: of.Spec.SchedulerName, OS: of.Spec.OS, SecurityContext: of.Spec.SecurityContext,
		ServiceAccountName: of.Spec.ServiceAccountName, ImagePullSecrets: of.Spec.ImagePullSecrets,
	}
	if ptr.Deref(place.Spec.Priority, 0) <= 0 { // with a higher one, no pod is to be preempted for it
		pod.Spec.PriorityClassName = place.Spec.PriorityClassName
	}
	for range pull {
		prefers := &pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*prefers = append(*prefers, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{appsv1.StatefulSetPodNameLabel: of.Name}},
		}})
	}
	p.rest(&pod.Spec)
	return pod, nil
}

// idle returns the container of an anchor: the program that waits, or what fails to start with an image that is there.
func (p Place) idle(of *corev1.Pod) corev1.Container {
	c := of.Spec.Containers[0]
	out := corev1.Container{Name: "anchor", Image: c.Image, ImagePullPolicy: c.ImagePullPolicy, SecurityContext: c.SecurityContext, Command: []string{toolsDir + "/placeholder", "wait"}}
	if p.brings(&of.Spec) {
		out.Image, out.ImagePullPolicy, out.SecurityContext, out.Command = p.Program.Image, "", restricted(), []string{"/placeholder", "wait"}
	}
	nothing := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}
	out.Resources = corev1.ResourceRequirements{Requests: nothing, Limits: little()}
	return out
}

// repels reports whether rules of a pod that must be kept are about a pod with these labels beside it.
func repels(pod *corev1.Pod, beside map[string]string) (bool, error) {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if selects, err := selects(pod, t, beside); err != nil || selects {
				return selects, err
			}
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		s, err := metav1.LabelSelectorAsSelector(scheduling.Meant(pod.Labels, c.LabelSelector, c.MatchLabelKeys, nil))
		if err != nil || c.WhenUnsatisfiable == corev1.DoNotSchedule && s.Matches(labels.Set(beside)) {
			return true, err
		}
	}
	return false, nil
}

// hold is how an anchor stands.
type hold struct {
	// there reports that it is on the node of the place.
	there bool
	// no says why it is of no use and goes, or is "".
	no string
	// again reports that another one may be made then.
	again bool
}

// holds says how an anchor stands for a place on a node.
func holds(anchor *corev1.Pod, node string) hold {
	if on := anchored(anchor); on != node {
		return hold{no: "since the place is on " + node + ", and not on " + on, again: true}
	}
	for name, q := range podresource.PodRequests(anchor, podresource.PodResourcesOptions{}) {
		if !q.IsZero() {
			return hold{no: "since it was given a request of " + string(name) + " when it was made"}
		}
	}
	if anchor.Status.Phase == corev1.PodFailed || anchor.Status.Phase == corev1.PodSucceeded {
		return hold{no: "since it has ended"}
	}
	if anchor.Spec.NodeName != "" {
		return hold{there: true}
	}
	if why := unscheduled(anchor); why != "" {
		return hold{no: "since no node takes it: " + why}
	}
	return hold{}
}

// anchored returns the node for which an anchor was made.
func anchored(anchor *corev1.Pod) string {
	if a := anchor.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range t.MatchFields {
				if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return ""
}

// unscheduled returns the word of a scheduler that has looked at a pod and found no node, or "".
func unscheduled(pod *corev1.Pod) string {
	if c := scheduled(pod); c != nil && c.Status == corev1.ConditionFalse {
		return cmp.Or(c.Message, c.Reason, "no reason is given")
	}
	return ""
}

// rest says of the pod of a place what makes it one that does nothing, is no member of anything, and ends by itself.
func (p Place) rest(spec *corev1.PodSpec) {
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: notServing}}
	spec.AutomountServiceAccountToken = new(bool)
	spec.RestartPolicy = corev1.RestartPolicyAlways // one that has ended gives its place away
	spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	spec.ActiveDeadlineSeconds = &p.Deadline
}
